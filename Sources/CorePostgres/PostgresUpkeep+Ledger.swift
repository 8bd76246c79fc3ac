import Core
import Foundation
import Postgres

/// Pruning of the alerts' ledger: block by block, in all partitions at once, from where the last step has ended. Its
/// rows lie in the order of their time, so a block is mostly kept or emptied as a whole, and no index has to be written
/// for it (docs/decisions/0036-ledger.md).
extension PostgresUpkeep {
    /// Of all partitions together. A row has 56 bytes, so a block holds 136 of them: 8,704 rows at most.
    static let ledgerBlocksMax: Int64 = 64
    /// A walk has this part of the ledger, so that hour by hour all of it is seen once a day.
    static let ledgerParts = 24
    /// But no fewer steps than these, so that a ledger up to a quarter of a gigabyte is walked each hour.
    static let ledgerStepsMin = 512
    /// No match that began before the time was moved runs any more after this.
    static let ledgerSettleSeconds: TimeInterval = 1800
    /// A step that waits for a row gives way long before PostgreSQL looks for a deadlock, which it does after a second
    /// of waiting: it might choose whoever deletes an alert.
    static let ledgerLockMilliseconds = 100

    public func ledgerWalk(now: Date) async throws -> LedgerWalk? {
        let found = try await mapped {
            try await db.short.first(
                """
                SELECT l.forgotten_before, p.partitions, p.blocks
                FROM alert_ledger l CROSS JOIN (
                  SELECT count(*) AS partitions,
                         coalesce(max(pg_relation_size(relid) / current_setting('block_size')::bigint), 0) AS blocks
                  FROM pg_partition_tree('alert_deliveries') WHERE isleaf) p
                WHERE l.forgotten_before IS NOT NULL AND l.moved_at <= \(now - Self.ledgerSettleSeconds)
                """
            ) { row in
                (
                    before: try row.get(0, as: Date.self), partitions: try row.get(1, as: Int64.self),
                    blocks: try row.get(2, as: Int64.self)
                )
            }
        }
        guard let found, found.partitions > 0, found.blocks > 0 else { return nil }
        let ofStep = max(1, Self.ledgerBlocksMax / found.partitions)
        let all = Int((found.blocks + ofStep - 1) / ofStep)
        let part = (all + Self.ledgerParts - 1) / Self.ledgerParts
        return LedgerWalk(
            before: found.before, steps: min(all, max(Self.ledgerStepsMin, part)), blocks: found.blocks,
            blocksOfStep: ofStep)
    }

    public func stepLedger(_ walk: LedgerWalk) async throws -> Int? {
        try await mapped {
            do {
                return try await db.transaction(lockMilliseconds: Self.ledgerLockMilliseconds) { transaction in
                    let next = try await transaction.first("SELECT next_block FROM alert_ledger FOR UPDATE") {
                        try $0.get(0, as: Int64.self)
                    }
                    let start = (next ?? 0) < walk.blocks ? next ?? 0 : 0
                    let end = start + walk.blocksOfStep
                    let (first, last) = ("(\(start),0)", "(\(end),0)")
                    // A block is of each partition, and so are the rows in it.
                    let counts = try await transaction.batch([
                        """
                        DELETE FROM alert_deliveries
                        WHERE ctid >= \(first)::tid AND ctid < \(last)::tid
                          AND created_at < \(walk.before) AND NOT pending
                        """,
                        "UPDATE alert_ledger SET next_block = \(end < walk.blocks ? end : 0)",
                    ])
                    return counts.first ?? 0
                }
            } catch let error as PostgresError where error.isLockTimeout {
                return nil
            }
        }
    }

    public func forgetLedger(before: Date, now: Date) async throws {
        try await mapped {
            _ = try await db.write.execute(
                """
                UPDATE alert_ledger SET forgotten_before = \(before), moved_at = \(now)
                WHERE forgotten_before IS NULL OR forgotten_before < \(before)
                """)
        }
    }
}

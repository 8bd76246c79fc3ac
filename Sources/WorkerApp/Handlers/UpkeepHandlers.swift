import Core
import Foundation
import ServiceKit

/// Deletes objects that nothing refers to any more.
public struct DeleteFiles: WorkHandler {
    private struct Payload: Decodable {
        let keys: [String]
    }

    public let kind = WorkItem.Kind.deleteFiles
    private let store: any WorkingStore

    public init(store: any WorkingStore) { self.store = store }

    public func run(_ item: WorkItem) async throws {
        let keys = try item.decode(Payload.self).keys
        try await store.patiently {
            for key in keys { try await store.delete(key) }
        }
    }
}

public struct RefreshSearchFacts: WorkHandler {
    public let kind = WorkItem.Kind.refreshSearchFacts
    private let upkeep: any UpkeepRepository

    public init(upkeep: any UpkeepRepository) { self.upkeep = upkeep }

    public func run(_ item: WorkItem) async throws { try await upkeep.refreshSearchFacts() }
}

/// Deletes rows that have had their time, and temporary files.
public struct Prune: WorkHandler {
    /// Of one walk through the alerts' ledger; it goes on there in an hour. Shorter than the hour by more than matching
    /// is given to end (`ledgerWalk`), so that the next one finds rows that may go.
    static let ledgerSecondsMax: TimeInterval = 1200
    /// Times, one after the other, that somebody may be in the way of a walk before it is left for the next hour.
    static let blockedMax = 10

    public let kind = WorkItem.Kind.prune
    private let upkeep: any UpkeepRepository
    private let store: any WorkingStore
    private let ledgerSeconds: TimeInterval
    private let clock: any ServiceClock
    private let log: Log
    private let metrics: Metrics
    private let ledgerRows: Counter

    /// - Parameter ledgerDays: how long rows of the alerts' ledger are kept.
    public init(
        upkeep: any UpkeepRepository, store: any WorkingStore, ledgerDays: Int, clock: any ServiceClock, log: Log,
        metrics: Metrics
    ) {
        self.upkeep = upkeep
        self.store = store
        ledgerSeconds = TimeInterval(ledgerDays) * 86400
        self.clock = clock
        self.log = log
        self.metrics = metrics
        ledgerRows = Self.rows(of: "alert_deliveries", metrics)
    }

    private static func rows(of table: String, _ metrics: Metrics) -> Counter {
        metrics.counter("martlet_pruned_rows_total", "Rows that had had their time.", labels: ["table": table])
    }

    public func run(_ item: WorkItem) async throws {
        let now = clock.now()
        for (table, rows) in try await upkeep.prune(now: now) {
            Self.rows(of: table, metrics).add(rows)
            if rows > 0 { log.info("pruned", ["table": .string(table), "rows": .int(Int64(rows))]) }
        }
        let files = try await store.sweep(now: now)
        if files > 0 { log.info("removed temporary files", ["files": .int(Int64(files))]) }
        try await walkLedger()
        // After the walk: what is forgotten from now on goes in the next one.
        let end = clock.now()
        try await upkeep.forgetLedger(before: end - ledgerSeconds, now: end)
    }

    private func walkLedger() async throws {
        let began = clock.now()
        guard let walk = try await upkeep.ledgerWalk(now: began) else { return }
        var (steps, blocked, rows) = (0, 0, 0)
        while steps < walk.steps, blocked < Self.blockedMax {
            // A worker that stops does not wait for the whole walk.
            try Task.checkCancellation()
            guard clock.now().timeIntervalSince(began) < Self.ledgerSecondsMax else { break }
            guard let gone = try await upkeep.stepLedger(walk) else {
                blocked += 1
                continue
            }
            (steps, blocked, rows) = (steps + 1, 0, rows + gone)
            ledgerRows.add(gone)
        }
        if rows > 0 { log.info("pruned", ["table": "alert_deliveries", "rows": .int(Int64(rows))]) }
        guard steps < walk.steps else { return }
        log.warning(
            "the alerts' ledger was not pruned to the end; it goes on in an hour",
            ["steps": .int(Int64(steps)), "wanted": .int(Int64(walk.steps))])
    }
}

import Core
import Postgres

/// Pauses of one program at a time. Their fence is the number of changes, which goes up whenever one begins or ends.
extension PostgresWorkQueue {
    /// Takes back what was done of a hold that was not to be had.
    private struct Taken: Error {}

    public func hold(
        _ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double
    ) async throws -> WorkHold? {
        // In one order, so that of two programs one waits for the other at the first of them.
        let names = kinds.map(\.rawValue).sorted()
        return try await mapped {
            do {
                return try await db.transaction { transaction in
                    let rows = try await transaction.rows(
                        """
                        INSERT INTO work_pauses AS p (kind, holder, until)
                        SELECT kind, \(holder.rawValue)::text,
                               clock_timestamp() + make_interval(secs => \(seconds)::float8)
                        FROM unnest(\(names)::text[]) kind
                        ON CONFLICT (kind, holder) DO UPDATE
                        SET paused = true, until = excluded.until, since = now(), changes = p.changes + 1
                        WHERE NOT p.paused OR p.until <= clock_timestamp()
                        RETURNING kind, changes
                        """
                    ) { (kind: try $0.get(0, as: String.self), number: try $0.get(1, as: Int64.self)) }
                    guard rows.count == names.count else { throw Taken() }
                    return WorkHold(holder: holder, kinds: rows.map(\.kind), numbers: rows.map(\.number))
                }
            } catch is Taken {
                return nil
            }
        }
    }

    public func renew(_ hold: WorkHold, seconds: Double) async throws -> Bool {
        try await mapped {
            let renewed = try await db.write.execute(
                """
                UPDATE work_pauses p SET until = now() + make_interval(secs => \(seconds)::float8)
                FROM unnest(\(hold.kinds)::text[], \(hold.numbers)::bigint[]) AS h (kind, number)
                WHERE p.kind = h.kind AND p.holder = \(hold.holder.rawValue) AND p.changes = h.number
                  AND p.paused AND p.until > now()
                """)
            return renewed == hold.kinds.count
        }
    }

    public func release(_ hold: WorkHold) async throws -> Bool {
        let end: SQL = """
            UPDATE work_pauses p SET paused = false, changes = p.changes + 1
            FROM unnest(\(hold.kinds)::text[], \(hold.numbers)::bigint[]) AS h (kind, number)
            WHERE p.kind = h.kind AND p.holder = \(hold.holder.rawValue) AND p.changes = h.number AND p.paused
            RETURNING p.until > now()
            """
        return try await mapped {
            let lasted = try await db.write.rows(end) { try $0.get(0, as: Bool.self) }
            if notify, !lasted.isEmpty { try await db.write.execute(Enqueue.wake) }
            return lasted.count == hold.kinds.count && lasted.allSatisfy { $0 }
        }
    }
}

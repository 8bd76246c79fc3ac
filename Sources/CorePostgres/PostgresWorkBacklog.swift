import Core
import Postgres

extension PostgresWorkQueue {
    /// Each part by its index and to its bound, so that a flooded queue is not read through for a number.
    public func backlog() async throws -> [WorkBacklog] {
        let parts = try await mapped {
            try await db.long.rows(
                """
                SELECT kind, state, count(*), greatest(coalesce(extract(epoch FROM now() - min(since)), 0), 0)::float8
                FROM (
                  (SELECT kind, CASE WHEN leased_until IS NULL THEN 'ready' ELSE 'leased' END AS state, run_at AS since
                   FROM work_items WHERE NOT waiting ORDER BY tx, id LIMIT 10000)
                  UNION ALL
                  (SELECT kind, 'waiting', run_at FROM work_items WHERE waiting ORDER BY run_at LIMIT 10000)
                  UNION ALL
                  (SELECT kind, 'dead', died_at FROM work_dead ORDER BY died_at DESC LIMIT 10000)) part
                GROUP BY kind, state ORDER BY kind, state
                """
            ) { row in
                (
                    kind: try row.get(0, as: String.self), state: try row.get(1, as: String.self),
                    count: try row.get(2, as: Int.self), oldest: try row.get(3, as: Double.self)
                )
            }
        }
        return parts.compactMap { part in
            WorkBacklog.State(rawValue: part.state).map {
                WorkBacklog(kind: part.kind, state: $0, count: part.count, oldestSeconds: part.oldest)
            }
        }
    }
}

import Core
import Foundation
import Postgres

/// What an operator sees of the queue, and the pauses.
extension PostgresWorkQueue {
    public func pauseState() async throws -> WorkPauseState {
        try await mapped {
            let state = try await db.short.first(
                """
                SELECT coalesce(sum(changes), 0)::bigint,
                       count(*) FILTER (WHERE paused AND (until IS NULL OR until > now()))
                FROM work_pauses
                """
            ) { WorkPauseState(changes: try $0.get(0), pauses: try $0.get(1)) }
            return state ?? WorkPauseState(changes: 0, pauses: 0)
        }
    }

    public func pauses() async throws -> [WorkPause] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT kind, holder, since, until FROM work_pauses
                WHERE paused AND (until IS NULL OR until > now()) ORDER BY kind, holder
                """
            ) { row in
                WorkPause(
                    kind: try row.get(0), holder: try row.get(1), since: try row.get(2),
                    until: try row.get(3, as: Date?.self))
            }
        }
    }

    public func pause(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double?) async throws {
        try await mapped {
            _ = try await db.write.execute(
                """
                INSERT INTO work_pauses AS p (kind, holder, until)
                SELECT kind, \(holder.rawValue)::text, now() + make_interval(secs => \(seconds as Double?)::float8)
                FROM unnest(\(kinds.map(\.rawValue))::text[]) kind
                ON CONFLICT (kind, holder) DO UPDATE
                SET paused = true, until = excluded.until,
                    since = CASE WHEN p.paused THEN p.since ELSE now() END,
                    changes = p.changes + (NOT p.paused OR coalesce(p.until <= now(), false))::int
                """)
        }
    }

    public func resume(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder) async throws -> [String] {
        let end: SQL = """
            UPDATE work_pauses SET paused = false, changes = changes + 1
            WHERE kind = ANY (\(kinds.map(\.rawValue))::text[]) AND holder = \(holder.rawValue) AND paused
            RETURNING kind
            """
        return try await mapped {
            let ended = try await db.write.rows(end) { try $0.get(0, as: String.self) }
            if notify, !ended.isEmpty { try await db.write.execute(Enqueue.wake) }
            return ended.sorted()
        }
    }

    public func items(_ filter: WorkFilter, after: WorkItem.ID?, limit: Int) async throws -> [QueuedItem] {
        let kind = filter.kind?.rawValue
        if filter.state == .dead {
            return try await mapped {
                try await db.long.rows(
                    """
                    SELECT id, kind, 'dead', attempts, died_at, coalesce(worker, ''), coalesce(last_error, ''),
                           payload::text
                    FROM work_dead
                    WHERE (\(kind as String?)::text IS NULL OR kind = \(kind as String?))
                      AND id < coalesce(\(after?.value as Int64?)::bigint, 9223372036854775807)
                    ORDER BY id DESC LIMIT \(limit)
                    """, as: Self.queuedItem)
            }
        }
        return try await mapped {
            try await db.long.rows(
                """
                SELECT \(Self.aliveColumns)
                FROM work_items
                WHERE (\(kind as String?)::text IS NULL OR kind = \(kind as String?))
                  AND id > coalesce(\(after?.value as Int64?)::bigint, 0)
                  AND (\(filter.state?.rawValue as String?)::text IS NULL
                       OR CASE WHEN waiting THEN 'waiting' WHEN leased_until IS NULL THEN 'ready' ELSE 'running' END
                          = \(filter.state?.rawValue as String?))
                ORDER BY id LIMIT \(limit)
                """, as: Self.queuedItem)
        }
    }

    public func items(_ ids: [WorkItem.ID]) async throws -> [QueuedItem] {
        let values = ids.map(\.value)
        return try await mapped {
            try await db.long.rows(
                """
                SELECT \(Self.aliveColumns) FROM work_items WHERE id = ANY (\(values)::bigint[])
                UNION ALL
                SELECT id, kind, 'dead', attempts, died_at, coalesce(worker, ''), coalesce(last_error, ''),
                       payload::text
                FROM work_dead WHERE id = ANY (\(values)::bigint[])
                ORDER BY 1
                """, as: Self.queuedItem)
        }
    }

    static let aliveColumns: SQL = """
        id, kind, CASE WHEN waiting THEN 'waiting' WHEN leased_until IS NULL THEN 'ready' ELSE 'running' END,
        attempts, CASE WHEN waiting THEN run_at ELSE created_at END, coalesce(worker, ''), coalesce(last_error, ''),
        payload::text
        """

    private static func queuedItem(_ row: Row) throws -> QueuedItem {
        QueuedItem(
            id: WorkItem.ID(try row.get(0)), kind: try row.get(1),
            state: QueuedItem.State(rawValue: try row.get(2)) ?? .ready, attempts: try row.get(3),
            time: try row.get(4), worker: try row.get(5), lastError: try row.get(6), payload: try row.get(7))
    }
}

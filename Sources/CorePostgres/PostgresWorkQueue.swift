import Core
import Foundation
import Postgres

/// The queue in `work_items`. Why it is read by a cursor over (tx, id), and why a claim changes no indexed column:
/// docs/decisions/0011-work-queue.md.
public struct PostgresWorkQueue: WorkQueue {
    /// Items that one upkeep statement moves, so that it never holds many locks.
    static let movedMax = 500
    /// Of an error's text: enough for an operator, not a second log.
    static let errorLengthMax = 2000

    let db: Database
    let notify: Bool

    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    public func enqueue(_ kind: WorkItem.Kind, payload: String, uniqueKey: String?, runAt: Date?) async throws {
        let item = Enqueue.item(kind, payload: payload, uniqueKey: uniqueKey, runAt: runAt)
        try await mapped { _ = try await db.write.batch(notify ? [item, Enqueue.wake] : [item]) }
    }

    public func bound() async throws -> UInt64 {
        try await mapped {
            try await db.short.first("SELECT pg_snapshot_xmin(pg_current_snapshot())") { row in
                try row.get(0, as: PostgresXID.self).value
            } ?? 0
        }
    }

    public func claim(
        worker: String, kinds: [WorkItem.Kind], limit: Int, after: WorkPosition
    ) async throws -> WorkClaim {
        let rows = try await mapped {
            try await db.write.rows(
                """
                UPDATE work_items
                SET attempts = attempts + 1, fence = (SELECT nextval('work_fence')), worker = \(worker),
                    leased_until = now() + make_interval(secs => \(Double(WorkItem.leaseSeconds)))
                WHERE id = ANY (ARRAY(
                  SELECT id FROM work_items
                  WHERE (tx, id) > (\(PostgresXID(after.tx))::xid8, \(after.id)::bigint)
                    AND NOT waiting AND leased_until IS NULL AND kind = ANY (\(kinds.map(\.rawValue))::text[])
                    AND kind <> ALL (ARRAY(
                      SELECT p.kind FROM work_pauses p WHERE p.paused AND (p.until IS NULL OR p.until > now())))
                  ORDER BY tx, id LIMIT \(limit) FOR UPDATE SKIP LOCKED))
                RETURNING id, tx, fence, kind, payload::text, attempts, postponed, traceparent
                """
            ) { row in
                let id: Int64 = try row.get(0)
                let item = WorkItem(
                    id: WorkItem.ID(id), fence: try row.get(2), kind: try row.get(3), payload: try row.get(4),
                    attempt: try row.get(5), postponed: try row.get(6), traceparent: try row.get(7))
                return (item, WorkPosition(tx: try row.get(1, as: PostgresXID.self).value, id: id))
            }
        }
        // RETURNING has no order of its own.
        let sorted = rows.sorted { $0.1 < $1.1 }
        return WorkClaim(items: sorted.map(\.0), last: sorted.last?.1 ?? after)
    }

    public func renew(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID] {
        try await mapped {
            try await db.write.rows(
                """
                UPDATE work_items SET leased_until = now() + make_interval(secs => \(Double(WorkItem.leaseSeconds)))
                WHERE id = ANY (\(ids.map(\.value))::bigint[]) AND fence = \(fence) RETURNING id
                """, as: Self.itemID)
        }
    }

    public func complete(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID] {
        let values = ids.map(\.value)
        return try await mapped {
            var done = try await db.write.rows(
                """
                DELETE FROM work_items
                WHERE id = ANY (\(values)::bigint[]) AND fence = \(fence) AND NOT again RETURNING id
                """, as: Self.itemID)
            // Rare, and looked for afterwards: whoever set `again` may have committed while the DELETE ran.
            if done.count < ids.count {
                done += try await db.write.rows(
                    """
                    UPDATE work_items
                    SET tx = pg_current_xact_id(), leased_until = NULL, fence = NULL, worker = NULL, attempts = 0,
                        again = false
                    WHERE id = ANY (\(values)::bigint[]) AND fence = \(fence) AND again RETURNING id
                    """, as: Self.itemID)
            }
            return done
        }
    }

    public func release(_ ids: [WorkItem.ID], fence: Int64) async throws {
        try await mapped {
            _ = try await db.write.execute(
                """
                UPDATE work_items
                SET tx = pg_current_xact_id(), leased_until = NULL, fence = NULL, worker = NULL, again = false,
                    attempts = attempts - 1
                WHERE id = ANY (\(ids.map(\.value))::bigint[]) AND fence = \(fence)
                """)
        }
    }

    public func fail(_ item: WorkItem, error: String, retryAfterSeconds: Double, final: Bool) async throws {
        let text = Self.kept(error)
        if final || item.attempt >= WorkItem.attemptsMax {
            try await bury(item, error: text)
            return
        }
        let seconds = max(0, retryAfterSeconds)
        try await mapped {
            _ = try await db.write.execute(
                """
                UPDATE work_items
                SET tx = pg_current_xact_id(), leased_until = NULL, fence = NULL, worker = NULL, again = false,
                    last_error = \(text), run_at = now() + make_interval(secs => \(seconds)), waiting = \(seconds > 0)
                WHERE id = \(item.id.value) AND fence = \(item.fence)
                """)
        }
    }

    public func postpone(_ item: WorkItem, reason: String, afterSeconds: Double) async throws {
        let seconds = max(0, afterSeconds)
        try await mapped {
            _ = try await db.write.execute(
                """
                UPDATE work_items
                SET tx = pg_current_xact_id(), leased_until = NULL, fence = NULL, worker = NULL, again = false,
                    attempts = attempts - 1, postponed = postponed + 1, last_error = \(Self.kept(reason)),
                    run_at = now() + make_interval(secs => \(seconds)), waiting = \(seconds > 0)
                WHERE id = \(item.id.value) AND fence = \(item.fence)
                """)
        }
    }

    /// Of an error. PostgreSQL's text has no NUL, and an error may quote anything.
    private static func kept(_ error: String) -> String {
        String(error.prefix(errorLengthMax)).replacingOccurrences(of: "\0", with: " ")
    }

    /// A second enqueue of its key, which came while it failed for the last time, is the dead letter's too: it would
    /// fail the same way, and retrying the letter does both.
    private func bury(_ item: WorkItem, error: String) async throws {
        try await mapped {
            _ = try await db.write.execute(
                """
                WITH gone AS (
                  DELETE FROM work_items WHERE id = \(item.id.value) AND fence = \(item.fence)
                  RETURNING id, kind, payload, unique_key, attempts, worker, created_at, traceparent)
                INSERT INTO work_dead (
                  id, kind, payload, unique_key, attempts, last_error, worker, created_at, traceparent)
                SELECT id, kind, payload, unique_key, attempts, \(error), worker, created_at, traceparent FROM gone
                """)
        }
    }

    private static func itemID(_ row: Row) throws -> WorkItem.ID { WorkItem.ID(try row.get(0)) }
}

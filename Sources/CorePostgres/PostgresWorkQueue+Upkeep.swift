import Core
import Foundation
import Postgres

/// What keeps items moving that nobody holds. Every worker does it; rows that another one is at are skipped.
extension PostgresWorkQueue {
    public func promote() async throws -> Int {
        try await mapped {
            try await db.write.execute(
                """
                UPDATE work_items SET waiting = false, tx = pg_current_xact_id()
                WHERE id = ANY (ARRAY(
                  SELECT id FROM work_items WHERE waiting AND run_at <= now()
                  ORDER BY run_at LIMIT \(Self.movedMax) FOR UPDATE SKIP LOCKED))
                """)
        }
    }

    /// The look is a reader's, so that no claim waits for it: under a snapshot that somebody holds it may read many
    /// rows that are gone. What it finds is looked at once more by key.
    public func rescue(after: WorkPosition, upTo: WorkPosition) async throws -> WorkRescue {
        try await mapped {
            let look = try await look(after: after, upTo: upTo)
            guard !look.lost.isEmpty else {
                return WorkRescue(ready: 0, buried: 0, floor: look.floor, era: look.era)
            }
            let ready = try await db.write.execute(
                """
                UPDATE work_items
                SET tx = pg_current_xact_id(), leased_until = NULL, fence = NULL, worker = NULL, again = false
                WHERE id = ANY (ARRAY(
                  SELECT id FROM work_items
                  WHERE id = ANY (\(look.lost)::bigint[]) AND leased_until < now()
                    AND attempts < \(WorkItem.attemptsMax)
                  FOR UPDATE SKIP LOCKED))
                """)
            let buried = try await db.write.execute(
                """
                WITH gone AS (
                  DELETE FROM work_items WHERE id = ANY (ARRAY(
                    SELECT id FROM work_items
                    WHERE id = ANY (\(look.lost)::bigint[]) AND leased_until < now()
                      AND attempts >= \(WorkItem.attemptsMax)
                    FOR UPDATE SKIP LOCKED))
                  RETURNING id, kind, payload, unique_key, attempts, last_error, worker, created_at, traceparent)
                INSERT INTO work_dead (
                  id, kind, payload, unique_key, attempts, last_error, worker, created_at, traceparent)
                SELECT id, kind, payload, unique_key, attempts,
                       coalesce(last_error, 'Its worker did not come back from any attempt.'), worker, created_at,
                       traceparent
                FROM gone
                """)
            return WorkRescue(ready: ready, buried: buried, floor: look.floor, era: look.era)
        }
    }

    private typealias Look = (lost: [Int64], floor: WorkPosition, era: String)

    /// What the snapshot does not see yet has at least the transaction of its xmin.
    private func look(after: WorkPosition, upTo: WorkPosition) async throws -> Look {
        let found = try await db.long.first(
            """
            SELECT ARRAY(
                     SELECT id FROM work_items
                     WHERE NOT waiting AND (tx, id) > (\(PostgresXID(after.tx))::xid8, \(after.id)::bigint)
                       AND (tx, id) <= (\(PostgresXID(upTo.tx))::xid8, \(upTo.id)::bigint) AND leased_until < now()
                     ORDER BY tx, id LIMIT \(Self.movedMax)),
                   pg_snapshot_xmin(pg_current_snapshot()), first.tx, first.id,
                   pg_postmaster_start_time()::text || ' ' || 'work_items'::regclass::oid
            FROM (SELECT) one LEFT JOIN LATERAL (
              SELECT tx, id FROM work_items
              WHERE NOT waiting AND (tx, id) > (\(PostgresXID(after.tx))::xid8, \(after.id)::bigint)
              ORDER BY tx, id LIMIT 1) first ON true
            """
        ) { row -> Look in
            let unseen = WorkPosition(tx: try row.get(1, as: PostgresXID.self).value)
            let era: String = try row.get(4)
            guard let tx = try row.get(2, as: PostgresXID?.self), let id = try row.get(3, as: Int64?.self) else {
                return (try row.get(0), unseen, era)
            }
            return (try row.get(0), min(unseen, WorkPosition(tx: tx.value, id: id - 1)), era)
        }
        guard let found else { throw AppError.unavailable }
        return found
    }

    public func fireSchedule(_ name: String, kind: WorkItem.Kind, payload: String, at due: Date) async throws -> Bool {
        try await mapped {
            let moved = try await db.write.first(
                """
                WITH moved AS (
                  INSERT INTO work_schedules (name, fired_for) VALUES (\(name), \(due))
                  ON CONFLICT (name) DO UPDATE SET fired_for = excluded.fired_for
                  WHERE work_schedules.fired_for < excluded.fired_for
                  RETURNING name),
                put AS (
                  INSERT INTO work_items (kind, payload, unique_key)
                  SELECT \(kind.rawValue)::text, \(JSONText(payload))::jsonb, 'schedule ' || name FROM moved
                  ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO UPDATE
                  SET again = work_items.leased_until IS NOT NULL WHERE work_items.leased_until IS NOT NULL)
                SELECT count(*) FROM moved
                """
            ) { try $0.get(0, as: Int64.self) }
            return moved == 1
        }
    }
}

extension PostgresWorkQueue: WorkQueueOperations {
    public func depth() async throws -> [WorkDepth] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT kind, sum(ready)::bigint, sum(leased)::bigint, sum(waiting)::bigint, sum(dead)::bigint,
                       coalesce(extract(epoch FROM now() - min(since)), 0)::float8
                FROM (
                  SELECT kind, count(*) FILTER (WHERE NOT waiting AND NOT runs) AS ready,
                         count(*) FILTER (WHERE runs) AS leased,
                         count(*) FILTER (WHERE waiting) AS waiting, 0 AS dead,
                         min(run_at) FILTER (WHERE NOT waiting AND NOT runs) AS since
                  FROM (SELECT kind, waiting, run_at, coalesce(leased_until > now(), false) AS runs
                        FROM work_items) item GROUP BY kind
                  UNION ALL
                  SELECT kind, 0, 0, 0, count(*), NULL FROM work_dead GROUP BY kind) part
                GROUP BY kind ORDER BY kind
                """
            ) { row in
                WorkDepth(
                    kind: try row.get(0), ready: try row.get(1), leased: try row.get(2), waiting: try row.get(3),
                    dead: try row.get(4), oldestSeconds: try row.get(5))
            }
        }
    }

    public func dead(kind: WorkItem.Kind?, limit: Int, before: Date?) async throws -> [DeadWorkItem] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT id, kind, payload::text, attempts, coalesce(last_error, ''), died_at FROM work_dead
                WHERE (\(kind?.rawValue as String?)::text IS NULL OR kind = \(kind?.rawValue as String?))
                  AND died_at < coalesce(\(before as Date?)::timestamptz, 'infinity')
                ORDER BY died_at DESC, id DESC LIMIT \(limit)
                """
            ) { row in
                DeadWorkItem(
                    id: WorkItem.ID(try row.get(0)), kind: try row.get(1), payload: try row.get(2),
                    attempts: try row.get(3), lastError: try row.get(4), diedAt: try row.get(5))
            }
        }
    }

    public func retry(_ ids: [WorkItem.ID]) async throws -> Int { try await revive(ids, kind: nil) }

    public func retryAll(kind: WorkItem.Kind) async throws -> Int { try await revive([], kind: kind) }

    /// A letter whose key is in the queue again has nothing to add to that later item, and goes.
    private func revive(_ ids: [WorkItem.ID], kind: WorkItem.Kind?) async throws -> Int {
        let move: SQL = """
            WITH gone AS (
              DELETE FROM work_dead
              WHERE id = ANY (\(ids.map(\.value))::bigint[]) OR kind = \(kind?.rawValue as String?)
              RETURNING kind, payload, unique_key, traceparent)
            INSERT INTO work_items (kind, payload, unique_key, traceparent)
            SELECT kind, payload, unique_key, traceparent FROM gone
            ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING
            """
        return try await mapped { try await db.write.batch(notify ? [move, Enqueue.wake] : [move])[0] }
    }

    public func cancel(_ id: WorkItem.ID) async throws -> Bool {
        try await mapped { try await db.write.execute("DELETE FROM work_items WHERE id = \(id.value)") == 1 }
    }
}

import Core
import Foundation
import Postgres
import Tracing

/// Statements that put background work into the queue. They belong in the transaction that causes the work.
public enum Enqueue {
    /// An item of the queue.
    ///
    /// With a unique key there is one item until it is done. Put in again while it waits its turn, it moves to this
    /// transaction, so that no worker runs it before the change is committed that it is about; put in again while it
    /// runs, it runs once more, because what it has read may be old. The transaction holds the item's row until it
    /// ends.
    /// - Parameters:
    ///   - payload: JSON of the ids it is about.
    ///   - uniqueKey: at most 200 characters.
    ///   - runAt: not before this time; nil for at once.
    ///
    /// It belongs to the trace of the task that makes the statement.
    public static func item(
        _ kind: WorkItem.Kind, payload: String, uniqueKey: String? = nil, runAt: Date? = nil
    ) -> SQL {
        """
        INSERT INTO work_items (kind, payload, unique_key, run_at, waiting, traceparent)
        VALUES (\(kind.rawValue), \(JSONText(payload)), \(uniqueKey as String?),
                coalesce(\(runAt as Date?)::timestamptz, now()),
                coalesce(\(runAt as Date?)::timestamptz > now(), false), \(traceparent)::varchar)
        ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO UPDATE
        SET payload = excluded.payload, traceparent = excluded.traceparent,
            again = work_items.leased_until IS NOT NULL,
            tx = CASE WHEN work_items.leased_until IS NULL THEN pg_current_xact_id() ELSE work_items.tx END
        WHERE NOT work_items.waiting
        """
    }

    /// Of the present task, for the column; nil where it is about nothing that is traced.
    static var traceparent: String? { TraceContext.current?.traceparent }

    /// Wakes the workers. The last statement of a transaction that put items in, once however many they were; the
    /// payload is empty, because the rows are the truth.
    public static let wake: SQL = "SELECT pg_notify('martlet_work', '')"
}

extension SQLExecutor {
    /// As `Enqueue.item`.
    public func enqueue(
        _ kind: WorkItem.Kind, payload: String, uniqueKey: String? = nil, runAt: Date? = nil
    ) async throws {
        try await execute(Enqueue.item(kind, payload: payload, uniqueKey: uniqueKey, runAt: runAt))
    }

    /// As `Enqueue.wake`, or nothing where NOTIFY is off and workers poll.
    public func wakeWorkers(notify: Bool) async throws {
        if notify { try await execute(Enqueue.wake) }
    }
}

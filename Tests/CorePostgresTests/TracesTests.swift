import Core
import Foundation
import Postgres
import TestSupport
import Testing
import Tracing

@testable import CorePostgres

@Suite("Traces in rows")
struct TracesTests {
    private static let context = TraceContext(trace: TraceID(high: 1, low: 2), span: 3, isSampled: true)

    @Test("work belongs to the trace of the task that puts it in; where nothing is traced to none")
    func work() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            try await TraceContext.$current.withValue(Self.context) {
                try await queue.enqueue(.prune, payload: "{}", uniqueKey: "k", runAt: nil)
            }
            func claim() async throws -> [WorkItem] {
                try await queue.claim(worker: "w", kinds: [.prune], limit: 10, after: WorkPosition()).items
            }
            let items = try await claim()
            #expect(items.map(\.traceparent) == [nil, Self.context.traceparent])
            // It fails and comes again; put in once more, it belongs to who did so.
            try await queue.fail(items[1], error: "x", retryAfterSeconds: 0, final: false)
            #expect(try await claim().map(\.traceparent) == [Self.context.traceparent])
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: "k", runAt: nil)
            try await queue.fail(items[1], error: "x", retryAfterSeconds: 0, final: false)
            let stored = try await db.write.rows("SELECT traceparent FROM work_items WHERE unique_key = 'k'") {
                try $0.get(0, as: String?.self)
            }
            #expect(stored == [nil])
        }
    }

    @Test("a dead letter that is retried belongs to the trace of what caused it, however it died")
    func deadLetters() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            try await TraceContext.$current.withValue(Self.context) {
                for key in ["failed", "lost"] {
                    try await queue.enqueue(.prune, payload: "{}", uniqueKey: key, runAt: nil)
                }
            }
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: "untraced", runAt: nil)
            func claim() async throws -> [WorkItem] {
                try await queue.claim(worker: "w", kinds: [.prune], limit: 10, after: WorkPosition()).items
            }
            let items = try await claim()
            for item in [items[0], items[2]] {
                try await queue.fail(item, error: "x", retryAfterSeconds: 0, final: true)
            }
            // Its worker has not come back from any attempt.
            try await db.write.execute(
                "UPDATE work_items SET attempts = \(WorkItem.attemptsMax), leased_until = now() - interval '1 second'")
            #expect(try await queue.rescue(after: WorkPosition(), upTo: .end).buried == 1)
            // As the release before buries one.
            try await db.write.execute(
                """
                INSERT INTO work_dead (id, kind, payload, unique_key, attempts, last_error, worker, created_at)
                VALUES (900, 'prune', '{}', 'before', 12, 'x', 'w', now())
                """)
            #expect(try await queue.retry([items[0].id]) == 1)
            #expect(try await claim().map(\.traceparent) == [Self.context.traceparent])
            #expect(try await queue.retryAll(kind: .prune) == 3)
            let trace = Self.context.traceparent
            let stored = try await db.write.rows("SELECT unique_key, traceparent FROM work_items ORDER BY 1") {
                (try $0.get(0, as: String.self), try $0.get(1, as: String?.self))
            }
            #expect(stored.map(\.0) == ["before", "failed", "lost", "untraced"])
            #expect(stored.map(\.1) == [nil, trace, trace, nil])
        }
    }

    @Test("what a rejected file and an import leave to be done belongs to the trace of who did that")
    func causes() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let media = scene.world.media
            let file = try await media.create(file(.attachment, "a"), owner: scene.applicant.id)
            let posting = ImportedPosting(
                source: "test", externalID: "1", companyName: "Acme",
                draft: try JobPosting.Draft(title: "Baker", safeDescription: "", terms: JobPosting.Terms()),
                publishedAt: Date(timeIntervalSince1970: 1_700_000_000), contentHash: digest(1))
            try await TraceContext.$current.withValue(Self.context) {
                _ = try await media.finish(file.id, .rejected(reason: "malformed", message: "No."))
                _ = try await PostgresImport(db: db).store([posting])
            }
            let traced = try await db.write.rows(
                "SELECT kind FROM work_items WHERE traceparent = \(Self.context.traceparent) ORDER BY kind"
            ) { try $0.get(0, as: String.self) }
            #expect(traced == ["delete_files", "match_alerts"])
        }
    }

    @Test("a message keeps the trace of its send, whichever way it is stored; who does not trace is not told")
    func messages() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 2, rooms: [[1, 2]])
            let (rooms, plain) = (PostgresRooms(db: db, traces: true), PostgresRooms(db: db))
            func draft(_ id: String, _ content: Message.Draft.Content, traced: Bool) throws -> Message.Draft {
                var draft = try Message.Draft(roomID: Room.ID(1), senderID: User.ID(1), clientID: id, content: content)
                draft.traceparent = traced ? Self.context.traceparent : nil
                return draft
            }
            let batches = try [
                [draft("a", .text("a", media: nil), traced: false), draft("b", .text("b", media: nil), traced: true)],
                [draft("c", .text("c", media: nil), traced: false)],
                // The careful way: an edit, and one that was stored before.
                [draft("d", .edit(1, "x"), traced: true), draft("c", .text("c", media: nil), traced: true)],
                [draft("e", .delete(1), traced: false)],
            ]
            for batch in batches { _ = try await rooms.send(batch, notify: "x") }
            let trace = Self.context.traceparent
            let cursors = [(room: Room.ID(1), seq: Int64(0))]
            let read = try await rooms.messages(after: cursors, limitPerRoom: 10)
            #expect(read.map(\.traceparent) == [nil, trace, nil, trace, nil])
            #expect(read.map(\.kind) == [.text, .text, .text, .edit, .delete])
            let untold = try await plain.messages(after: cursors, limitPerRoom: 10)
            #expect(untold.map(\.seq) == read.map(\.seq) && untold.allSatisfy { $0.traceparent == nil })
        }
    }
}

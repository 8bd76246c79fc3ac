import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite("Pauses of the work queue")
struct WorkPausesTests {
    private func claim(_ queue: PostgresWorkQueue, after: WorkPosition = WorkPosition()) async throws -> [WorkItem] {
        try await queue.claim(worker: "w", kinds: WorkItem.Kind.allCases, limit: 10, after: after).items
    }

    @Test("nothing of a paused kind is claimed, all else is; what runs is completed; resume lets it go on")
    func pause() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            let running = try await claim(queue)
            let before = try await queue.pauseState()
            try await queue.pause([.prune, .deleteFiles], holder: .operator, seconds: nil)
            #expect(try await queue.pauseState() != before)
            for kind in [WorkItem.Kind.prune, .sendMail] {
                try await queue.enqueue(kind, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            #expect(try await claim(queue).map(\.kind) == ["send_mail"])
            #expect(try await queue.complete(running.map(\.id), fence: running[0].fence) == running.map(\.id))
            #expect(try await queue.pauses().map(\.kind) == ["delete_files", "prune"])
            #expect(try await queue.resume([.prune, .sendMail], holder: .operator) == ["prune"])
            #expect(try await claim(queue).map(\.kind) == ["prune"])
        }
    }

    @Test("each holder ends its own pause only; one with an end goes on while it is renewed, and then ends by itself")
    func holders() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            try await queue.pause([.prune], holder: .operator, seconds: nil)
            try await queue.pause([.prune], holder: .backup, seconds: 600)
            let state = try await queue.pauseState()
            try await queue.pause([.prune], holder: .backup, seconds: 600)
            #expect(try await queue.pauseState() == state, "who renews makes nobody look again")
            #expect(try await queue.resume([.prune], holder: .operator) == ["prune"])
            #expect(try await claim(queue).isEmpty)
            // As if its program had been killed, and the time had passed.
            try await db.write.execute("UPDATE work_pauses SET until = now() - interval '1 s' WHERE holder = 'backup'")
            #expect(try await queue.pauseState() != state, "its end is seen, though it changed no row")
            #expect(try await queue.pauses().isEmpty)
            #expect(try await claim(queue).count == 1)
        }
    }

    @Test(
        "of many who want to hold the same kinds one does; it cannot be renewed or ended by another, nor after its end")
    func hold() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            let kinds = [WorkItem.Kind.sweepObjects, .deleteFiles]
            let holds = await atOnce(8) { _ in try await queue.hold(kinds, holder: .backup, seconds: 600) }
                .successes().compactMap(\.self)
            #expect(holds.count == 1)
            let hold = try #require(holds.first)
            #expect(try await queue.renew(hold, seconds: 600))
            // As if the machine had slept.
            try await db.write.execute(
                "UPDATE work_pauses SET until = now() - interval '1 s' WHERE kind = 'delete_files'")
            #expect(try await queue.renew(hold, seconds: 600) == false)
            try await db.write.execute("UPDATE work_pauses SET until = now() - interval '1 s'")
            let next = try #require(try await queue.hold(kinds, holder: .backup, seconds: 600))
            #expect(try await queue.renew(hold, seconds: 600) == false)
            #expect(try await queue.release(hold) == false)
            #expect(try await queue.pauses().map(\.kind) == ["delete_files", "sweep_objects"])
            #expect(try await queue.hold([.deleteFiles], holder: .backup, seconds: 600) == nil)
            #expect(try await queue.release(next))
            #expect(try await queue.renew(next, seconds: 600) == false)
            #expect(try await queue.pauses().isEmpty)
        }
    }

    @Test("an item whose worker is gone does not run: it counts as ready")
    func expired() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await queue.enqueue(.deleteFiles, payload: "{}", uniqueKey: nil, runAt: nil)
            #expect(try await claim(queue).count == 1)
            #expect(try await queue.depth().map(\.leased) == [1])
            try await db.write.execute("UPDATE work_items SET leased_until = now() - interval '1 s'")
            let depth = try await queue.depth()
            #expect(depth.map(\.leased) == [0] && depth.map(\.ready) == [1])
        }
    }

    @Test("an item that is cancelled while it runs is acknowledged to nobody, and does not come back")
    func cancelled() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: "k", runAt: nil)
            let running = try await claim(queue)
            #expect(try await queue.cancel(running[0].id))
            #expect(try await queue.renew(running.map(\.id), fence: running[0].fence).isEmpty)
            #expect(try await queue.complete(running.map(\.id), fence: running[0].fence).isEmpty)
            try await queue.fail(running[0], error: "late", retryAfterSeconds: 0, final: true)
            #expect(try await queue.items(running.map(\.id)).isEmpty)
            // The key is free again.
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: "k", runAt: nil)
            #expect(try await claim(queue).count == 1)
        }
    }
}

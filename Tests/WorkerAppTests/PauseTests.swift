import Core
import CorePostgres
import Foundation
import TestSupport
import Testing

@testable import WorkerApp

@Suite("Pauses, as workers obey them")
struct PauseTests {
    @Test("a worker passes by what is paused, goes on with the rest, and finds what it passed by when it may")
    func pause() async throws {
        try await withTestDatabase { db in
            let ran = Notes()
            let queue = PostgresWorkQueue(db: db, notify: false)
            func put(_ kind: WorkItem.Kind) async throws {
                try await queue.enqueue(kind, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            try await queue.pause([.prune], holder: .operator, seconds: nil)
            try await put(.prune)
            let worker = worker(
                db, [Handler(.prune) { _ in ran.add("prune") }, Handler(.sendMail) { _ in ran.add("mail") }])
            await worker.start()
            // What came later is done: the worker has been past the paused item, time and again.
            for round in 1...3 {
                try await put(.sendMail)
                try await eventually { ran.all.count == round }
            }
            #expect(ran.all == ["mail", "mail", "mail"])
            #expect(try await queue.resume([.prune], holder: .operator) == ["prune"])
            try await eventually { ran.all.last == "prune" }
            try await eventually { try await items(db) == 0 }
            await worker.stop(graceSeconds: 5)
        }
    }
}

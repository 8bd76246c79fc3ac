import Core
import CorePostgres
import Foundation
import Postgres
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import WorkerApp

final class Notes: Sendable {
    private let entries = Mutex<[String]>([])
    func add(_ entry: String) { entries.withLock { $0.append(entry) } }
    var all: [String] { entries.withLock { $0 } }
}

@Suite struct WorkerTests {
    @Test("items are run, once each, and gone afterwards, with nobody waking the worker")
    func runs() async throws {
        try await withTestDatabase { db in
            let ran = Notes()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(db, [Handler(.prune) { ran.add($0.payload) }], lanes: [lane(batch: 7)])
            await worker.start()
            for number in 0..<50 {
                try await queue.enqueue(.prune, payload: #"{"n": \#(number)}"#, uniqueKey: nil, runAt: nil)
            }
            try await eventually { try await items(db) == 0 }
            #expect(ran.all.count == 50)
            #expect(Set(ran.all).count == 50)
            #expect(worker.problem == nil)
            await worker.stop(graceSeconds: 5)
        }
    }

    @Test("an item that fails is tried again; one that fails for good, or has no handler, is a dead letter at once")
    func failures() async throws {
        struct Trouble: Error {}
        try await withTestDatabase { db in
            let runs = Notes()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(
                db,
                [
                    Handler(.prune) { item in
                        runs.add("prune")
                        if item.attempt < 3 { throw Trouble() }
                    },
                    Handler(.sendMail) { _ in
                        runs.add("mail")
                        throw WorkFailure.permanent("never")
                    },
                ])
            for kind in [WorkItem.Kind.prune, .sendMail, .deleteFiles] {
                try await queue.enqueue(kind, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            await worker.start()
            try await eventually { try await items(db) == 0 }
            #expect(runs.all.filter { $0 == "prune" }.count == 3)
            #expect(runs.all.filter { $0 == "mail" }.count == 1)
            let dead = try await queue.dead(kind: nil, limit: 10, before: nil)
            #expect(Set(dead.map(\.lastError)) == ["never", "this worker has no handler for delete_files"])
            await worker.stop(graceSeconds: 5)
        }
    }

    @Test("a lane runs no more than it may at once, and does not stand before another lane")
    func bounds() async throws {
        try await withTestDatabase { db in
            let gate = Gate()
            let done = Notes()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(
                db,
                [Handler(.processUpload) { _ in try await gate.pass() }, Handler(.sendMail) { _ in done.add("mail") }],
                lanes: [lane([.processUpload], running: 2), lane([.sendMail])])
            for _ in 0..<10 { try await queue.enqueue(.processUpload, payload: "{}", uniqueKey: nil, runAt: nil) }
            try await queue.enqueue(.sendMail, payload: "{}", uniqueKey: nil, runAt: nil)
            await worker.start()
            try await eventually {
                try await number(db, "SELECT count(*) FROM work_items WHERE kind = 'send_mail'") == 0
            }
            try await eventually {
                _ = try await items(db)
                return gate.waiting == 2
            }
            #expect(try await number(db, "SELECT count(*) FROM work_items WHERE leased_until IS NOT NULL") == 2)
            gate.open()
            try await eventually { try await items(db) == 0 }
            await worker.stop(graceSeconds: 5)
        }
    }

    @Test("stopping lets work finish that ends in time")
    func drains() async throws {
        try await withTestDatabase { db in
            let gate = Gate()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(db, [Handler(.prune) { _ in try await gate.pass() }])
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            await worker.start()
            try await eventually {
                _ = try await items(db)
                return gate.waiting == 1
            }
            async let stopped: Void = worker.stop(graceSeconds: 30)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            gate.open()
            await stopped
            #expect(gate.cancelled == 0)
            #expect(try await number(db, "SELECT count(*) FROM work_items WHERE leased_until IS NOT NULL") == 0)
        }
    }

    @Test("stopping hands back what does not end in time, and does not count the attempt")
    func handsBack() async throws {
        try await withTestDatabase { db in
            let gate = Gate()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(db, [Handler(.prune) { _ in try await gate.pass() }])
            for _ in 0..<3 { try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil) }
            await worker.start()
            try await eventually {
                _ = try await items(db)
                return gate.waiting == 3
            }
            await worker.stop(graceSeconds: 2.1)
            #expect(gate.cancelled == 3)
            let claim = try await queue.claim(worker: "x", kinds: [.prune], limit: 10, after: WorkPosition())
            #expect(claim.items.map(\.attempt) == [1, 1, 1])
        }
    }

    @Test("leases are renewed while work runs, and a cancelled item's task is ended, with NOTIFY off")
    func renewsAndCancels() async throws {
        try await withTestDatabase { db in
            let clock = ManualClock()
            let gate = Gate()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(db, [Handler(.prune) { _ in try await gate.pass() }], clock: clock)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            await worker.start()
            try await eventually {
                _ = try await items(db)
                return gate.waiting == 1
            }
            try await db.write.execute("UPDATE work_items SET leased_until = now() + interval '20 seconds'")
            try await eventually {
                clock.advance(seconds: Worker.renewSeconds)
                return try await number(
                    db, "SELECT count(*) FROM work_items WHERE leased_until > now() + interval '30 seconds'") == 1
            }
            let id = try await number(db, "SELECT id FROM work_items")
            #expect(try await queue.cancel(WorkItem.ID(Int64(id))))
            try await eventually {
                clock.advance(seconds: Worker.renewSeconds)
                _ = try await items(db)
                return gate.cancelled == 1
            }
            async let stopped: Void = worker.stop(graceSeconds: 0)
            try await eventually {
                clock.advance(seconds: 1)
                return try await items(db) == 0
            }
            await stopped
        }
    }

    @Test("what a killed worker held is run by another one when its lease is over")
    func killed() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            let lost = try await queue.claim(worker: "killed", kinds: [.prune], limit: 1, after: WorkPosition())
            let ran = Notes()
            let worker = worker(db, [Handler(.prune) { ran.add("attempt \($0.attempt)") }])
            await worker.start()
            try await db.write.execute("UPDATE work_items SET leased_until = now() - interval '1 second'")
            try await eventually { try await items(db) == 0 }
            #expect(ran.all == ["attempt 2"])
            #expect(try await queue.complete(lost.items.map(\.id), fence: lost.items[0].fence).isEmpty)
            await worker.stop(graceSeconds: 5)
        }
    }

    @Test("the queue's absence is survived, and what was put in meanwhile is run")
    func outage() async throws {
        try await withTestDatabase { db, test in
            let ran = Notes()
            let other = try test.open()
            let worker = worker(db, [Handler(.prune) { _ in ran.add("ran") }])
            await worker.start()
            try await eventually {
                _ = try await items(other)
                return worker.problem == nil
            }
            for _ in 0..<5 {
                try await test.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                        + "AND pid <> pg_backend_pid()")
                try await eventually {
                    do {
                        try await PostgresWorkQueue(db: other, notify: false)
                            .enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
                        return true
                    } catch { return false }
                }
            }
            try await eventually { try await items(other) == 0 }
            #expect(ran.all.count >= 5)
            await worker.stop(graceSeconds: 5)
            await other.close()
        }
    }
}

import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite struct WorkQueueTests {
    func claimAll(_ queue: PostgresWorkQueue, limit: Int = 100) async throws -> [WorkItem] {
        try await queue.claim(worker: "w", kinds: WorkItem.Kind.allCases, limit: limit, after: WorkPosition()).items
    }

    func put(
        _ queue: PostgresWorkQueue, _ count: Int = 1, kind: WorkItem.Kind = .prune, key: String? = nil
    ) async throws {
        for index in 0..<count {
            try await queue.enqueue(kind, payload: #"{"n": \#(index)}"#, uniqueKey: key, runAt: nil)
        }
    }

    /// As if the lease's time had passed.
    func expireLeases(_ db: Database) async throws {
        try await db.write.execute(
            "UPDATE work_items SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")
    }

    func rescue(_ queue: PostgresWorkQueue) async throws -> WorkRescue {
        try await queue.rescue(after: WorkPosition(), upTo: .end)
    }

    func count(_ db: Database, _ sql: SQL) async throws -> Int64? {
        try await db.write.first(sql) { try $0.get(0, as: Int64.self) }
    }

    @Test("items are claimed once, in the order they came, and completed with their fence")
    func claimAndComplete() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, 3)
            let claim = try await queue.claim(
                worker: "w", kinds: WorkItem.Kind.allCases, limit: 2, after: WorkPosition())
            #expect(claim.items.map(\.payload) == [#"{"n": 0}"#, #"{"n": 1}"#])
            #expect(claim.items.allSatisfy { $0.attempt == 1 && $0.kind == "prune" })
            let rest = try await queue.claim(
                worker: "v", kinds: WorkItem.Kind.allCases, limit: 2, after: claim.last)
            #expect(rest.items.map(\.payload) == [#"{"n": 2}"#])
            #expect(try await claimAll(queue).isEmpty)

            let fence = claim.items[0].fence
            #expect(rest.items[0].fence != fence)
            #expect(try await queue.complete(claim.items.map(\.id), fence: fence).count == 2)
            #expect(try await queue.complete(rest.items.map(\.id), fence: fence).isEmpty)
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 1)
        }
    }

    @Test("only the kinds asked for are claimed")
    func kinds() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, kind: .prune)
            try await put(queue, kind: .sendMail)
            let claim = try await queue.claim(worker: "w", kinds: [.sendMail], limit: 9, after: WorkPosition())
            #expect(claim.items.map(\.kind) == ["send_mail"])
        }
    }

    @Test("an item whose lease ran out is run again, and its first worker can do nothing more with it")
    func staleFence() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue)
            let first = try #require(try await claimAll(queue).first)
            let floor = try await rescue(queue).floor
            try await expireLeases(db)
            #expect(try await queue.rescue(after: floor, upTo: WorkPosition()).ready == 0)
            let rescued = try await queue.rescue(after: floor, upTo: .end)
            #expect(rescued.ready == 1 && rescued.buried == 0)
            let second = try #require(try await claimAll(queue).first)
            #expect(second.id == first.id && second.attempt == 2 && second.fence != first.fence)

            #expect(try await queue.renew([first.id], fence: first.fence).isEmpty)
            #expect(try await queue.complete([first.id], fence: first.fence).isEmpty)
            try await queue.fail(first, error: "late", retryAfterSeconds: 0, final: true)
            try await queue.release([first.id], fence: first.fence)
            #expect(try await queue.renew([second.id], fence: second.fence) == [second.id])
            #expect(try await queue.complete([second.id], fence: second.fence) == [second.id])
            #expect(try await count(db, "SELECT count(*) FROM work_dead") == 0)
        }
    }

    @Test("a failed item waits for its time, then it is ready again with its error")
    func failAndPromote() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue)
            let item = try #require(try await claimAll(queue).first)
            try await queue.fail(item, error: "no\0 luck", retryAfterSeconds: 3600, final: false)
            #expect(try await claimAll(queue).isEmpty)
            #expect(try await queue.promote() == 0)
            try await db.write.execute("UPDATE work_items SET run_at = now()")
            #expect(try await queue.promote() == 1)
            #expect(try await claimAll(queue).map(\.attempt) == [2])
            let error = try await db.write.first("SELECT last_error FROM work_items") { try $0.get(0, as: String.self) }
            #expect(error == "no  luck")
        }
    }

    @Test("an item for later is not ready before")
    func later() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await queue.enqueue(
                .prune, payload: "{}", uniqueKey: nil, runAt: Date(timeIntervalSinceNow: 3600))
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: Date(timeIntervalSinceNow: -1))
            #expect(try await claimAll(queue).count == 1)
            #expect(try await queue.promote() == 0)
        }
    }

    @Test("an item handed back has not used up an attempt")
    func release() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue)
            let item = try #require(try await claimAll(queue).first)
            try await queue.release([item.id], fence: item.fence)
            #expect(try await claimAll(queue).map(\.attempt) == [1])
        }
    }

    @Test("an item that waits for something has used up no attempt, however often it did")
    func postpone() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue)
            for round in 0..<(WorkItem.attemptsMax * 2) {
                let item = try #require(try await claimAll(queue).first)
                #expect(item.attempt == 1 && item.postponed == round)
                try await queue.postpone(item, reason: "no\0 scanner", afterSeconds: 0)
                // Not ours any more.
                try await queue.postpone(item, reason: "late", afterSeconds: 3600)
            }
            let item = try #require(try await claimAll(queue).first)
            try await queue.postpone(item, reason: "no scanner", afterSeconds: 3600)
            #expect(try await claimAll(queue).isEmpty)
            #expect(try await queue.promote() == 0)
            #expect(try await rescue(queue).buried == 0)
            let error = try await db.write.first("SELECT last_error FROM work_items") { try $0.get(0, as: String.self) }
            #expect(error == "no scanner")
            try await db.write.execute("UPDATE work_items SET run_at = now()")
            #expect(try await queue.promote() == 1)
            #expect(try await claimAll(queue).map(\.attempt) == [1])
        }
    }

    @Test("an item that kills its worker every time stops at the last attempt, in the dead letters")
    func poison() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, key: "poison")
            var runs = 0
            while true {
                let items = try await claimAll(queue)
                if items.isEmpty { break }
                runs += 1
                try await expireLeases(db)
                let rescued = try await rescue(queue)
                let isLast = runs == WorkItem.attemptsMax
                #expect(rescued.ready == (isLast ? 0 : 1) && rescued.buried == (isLast ? 1 : 0))
            }
            #expect(runs == WorkItem.attemptsMax)
            #expect(try await rescue(queue).buried == 0)
            let dead = try await queue.dead(kind: .prune, limit: 10, before: nil)
            #expect(dead.map(\.attempts) == [WorkItem.attemptsMax])
            #expect(try await queue.dead(kind: .sendMail, limit: 10, before: nil).isEmpty)
        }
    }

    @Test("an item that fails its last attempt, or for good, is a dead letter that an operator may retry")
    func deadAndRetry() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, 2)
            for item in try await claimAll(queue) {
                try await queue.fail(item, error: "broken", retryAfterSeconds: 0, final: true)
            }
            let dead = try await queue.dead(kind: nil, limit: 10, before: nil)
            #expect(dead.count == 2 && dead.allSatisfy { $0.lastError == "broken" })
            #expect(try await queue.retry([dead[0].id]) == 1)
            #expect(try await queue.retry([dead[0].id]) == 0)
            #expect(try await queue.retryAll(kind: .sendMail) == 0)
            #expect(try await queue.retryAll(kind: .prune) == 1)
            #expect(try await claimAll(queue).map(\.attempt) == [1, 1])
            #expect(try await queue.depth().map(\.leased) == [2])
        }
    }

    @Test("a cancelled item is gone, and the worker that runs it learns so")
    func cancel() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            try await put(queue)
            let item = try #require(try await claimAll(queue).first)
            #expect(try await queue.cancel(item.id))
            #expect(try await !queue.cancel(item.id))
            #expect(try await queue.renew([item.id], fence: item.fence).isEmpty)
            #expect(try await queue.complete([item.id], fence: item.fence).isEmpty)
        }
    }

    @Test("claims never touch an index: every one is HOT")
    func claimsAreHOT() async throws {
        // One connection, so that its figures are all figures.
        try await withTestDatabase(configure: { $0.writeMax = 1 }) { db, _ in
            let queue = PostgresWorkQueue(db: db)
            try await db.write.execute(
                "INSERT INTO work_items (kind, payload) SELECT 'prune', '{}' FROM generate_series(1, 5000)")
            var claimed = 0
            var after = WorkPosition()
            while true {
                let claim = try await queue.claim(worker: "w", kinds: [.prune], limit: 100, after: after)
                if claim.items.isEmpty { break }
                claimed += claim.items.count
                after = claim.last
            }
            #expect(claimed == 5000)
            try await db.write.execute("SELECT pg_stat_force_next_flush()")
            let figures = try await db.write.first(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'work_items'"
            ) { try [$0.get(0, as: Int64.self), $0.get(1, as: Int64.self)] }
            #expect(figures == [5000, 5000])
        }
    }

    @Test("a hundred enqueues of one key at once make one item")
    func uniqueKey() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 { group.addTask { try await put(queue, key: "one") } }
                try await group.waitForAll()
            }
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 1)
            try await put(queue, key: "two")
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 2)
        }
    }

    @Test("a key that is put in again while its item runs makes it run once more, and only once")
    func again() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, key: "one")
            let first = try #require(try await claimAll(queue).first)
            try await put(queue, 3, key: "one")
            #expect(try await claimAll(queue).isEmpty)
            #expect(try await queue.complete([first.id], fence: first.fence) == [first.id])
            let second = try #require(try await claimAll(queue).first)
            #expect(second.attempt == 1)
            #expect(try await queue.complete([second.id], fence: second.fence) == [second.id])
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 0)
        }
    }

    @Test("a key that is put in again by an open transaction is not run before that is committed")
    func uniqueKeyWaits() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db)
            try await put(queue, key: "one")
            var cursor = WorkCursor(at: 0)
            func claim(at seconds: Double) async throws -> [WorkItem] {
                let bound = cursor.needsBound(at: seconds) ? try await queue.bound() : nil
                let after = cursor.begin(bound: bound, at: seconds)
                let claim = try await queue.claim(worker: "w", kinds: [.prune], limit: 10, after: after)
                cursor.end(claim, limit: 10, at: seconds)
                return claim.items
            }
            try await db.transaction { transaction in
                try await transaction.enqueue(.prune, payload: #"{"n": 7}"#, uniqueKey: "one")
                #expect(try await claim(at: 0).isEmpty)
                #expect(try await claim(at: 1).isEmpty)
            }
            // The cursor had passed the row, and finds it where the enqueue has moved it.
            #expect(try await claim(at: 2).map(\.payload) == [#"{"n": 7}"#])
        }
    }

    @Test("a schedule fires once for each time, however many ask, and not for a time that has passed")
    func schedule() async throws {
        try await withTestDatabase { db, test in
            let dbs = try (0..<5).map { _ in try test.open() }
            let start = Date(timeIntervalSince1970: 1_800_000_000)
            for minute in 0..<10 {
                let due = start.addingTimeInterval(Double(minute) * 60)
                let fired = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for db in dbs {
                        group.addTask {
                            try await PostgresWorkQueue(db: db).fireSchedule(
                                "digests", kind: .sendDigests, payload: "{}", at: due)
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(fired == 1)
                for item in try await claimAll(PostgresWorkQueue(db: db)) {
                    #expect(try await PostgresWorkQueue(db: db).complete([item.id], fence: item.fence) == [item.id])
                }
            }
            let queue = PostgresWorkQueue(db: db)
            #expect(try await !queue.fireSchedule("digests", kind: .sendDigests, payload: "{}", at: start))
            #expect(try await queue.fireSchedule("other", kind: .prune, payload: "{}", at: start))
            for db in dbs { await db.close() }
        }
    }

    @Test("an item that is put in with a change is there with it, or not at all")
    func transactional() async throws {
        struct Stop: Error {}
        try await withTestDatabase { db in
            await #expect(throws: Stop.self) {
                try await db.transaction { transaction in
                    try await transaction.enqueue(.prune, payload: "{}")
                    throw Stop()
                }
            }
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 0)
            try await db.transaction { transaction in
                try await transaction.enqueue(.prune, payload: "{}")
                try await transaction.wakeWorkers(notify: true)
            }
            #expect(try await count(db, "SELECT count(*) FROM work_items") == 1)
        }
    }
}

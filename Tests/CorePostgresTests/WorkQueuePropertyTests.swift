import Core
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import CorePostgres

/// Many enqueuers and workers at once, everything going wrong that can: what is committed is completed once or is a
/// dead letter, what is rolled back never runs.
@Suite struct WorkQueuePropertyTests {
    struct Ledger {
        var committed: Set<Int> = []
        var rolledBack: Set<Int> = []
        var ran: [Int: Int] = [:]
        var completed: [Int: Int] = [:]
        var enqueuing = 0
        var abandoned: [WorkItem] = []
        var floor = WorkPosition()
    }

    struct RollBack: Error {}

    final class Run: Sendable {
        let ledger = Mutex(Ledger())
        let next = Atomic<Int>(0)
        let queue: PostgresWorkQueue
        let db: Database

        init(db: Database) {
            self.db = db
            queue = PostgresWorkQueue(db: db, notify: false)
        }

        func enqueue(transactions: Int) async throws {
            for _ in 0..<transactions {
                let numbers = (0..<Int.random(in: 1...4)).map { _ in
                    next.wrappingAdd(1, ordering: .relaxed).oldValue
                }
                do {
                    try await db.transaction { transaction in
                        for number in numbers {
                            try await transaction.enqueue(.prune, payload: #"{"n": \#(number)}"#)
                        }
                        if Int.random(in: 0..<3) == 0 {
                            try await transaction.execute("SELECT pg_sleep(\(Double.random(in: 0..<0.08)))")
                        }
                        if Int.random(in: 0..<4) == 0 { throw RollBack() }
                    }
                    ledger.withLock { $0.committed.formUnion(numbers) }
                } catch is RollBack {
                    ledger.withLock { $0.rolledBack.formUnion(numbers) }
                }
            }
            ledger.withLock { $0.enqueuing -= 1 }
        }

        func number(_ item: WorkItem) throws -> Int {
            let object = try JSONSerialization.jsonObject(with: Data(item.payload.utf8)) as? [String: Int]
            return try #require(object?["n"])
        }

        var isDone: Bool {
            get async throws {
                guard ledger.withLock({ $0.enqueuing == 0 }) else { return false }
                let left = try await db.write.first("SELECT count(*) FROM work_items") { try $0.get(0, as: Int.self) }
                return left == 0
            }
        }

        func work(_ name: String, deadline: ContinuousClock.Instant) async throws {
            let start = ContinuousClock.now
            // No full scans: the cursor alone must pass nothing.
            var cursor = WorkCursor(at: 0, fullScanSecondsMin: .infinity)
            while try await !isDone {
                guard ContinuousClock.now < deadline else { return }
                let seconds = (ContinuousClock.now - start) / .seconds(1)
                let bound = cursor.needsBound(at: seconds) ? try await queue.bound() : nil
                let floor = ledger.withLock { $0.floor }
                let after = cursor.begin(bound: bound, floor: floor, at: seconds)
                let claim = try await queue.claim(worker: name, kinds: [.prune], limit: 7, after: after)
                cursor.end(claim, limit: 7, at: seconds)
                for item in claim.items {
                    let number = try number(item)
                    ledger.withLock { $0.ran[number, default: 0] += 1 }
                }
                guard let fence = claim.items.first?.fence else { continue }
                var good: [WorkItem] = []
                for item in claim.items {
                    switch Int.random(in: 0..<20) {
                    case 0: ledger.withLock { $0.abandoned.append(item) }
                    case 1: try await queue.fail(item, error: "x", retryAfterSeconds: 0, final: false)
                    case 2: try await queue.fail(item, error: "x", retryAfterSeconds: 0.05, final: false)
                    case 3: try await queue.release([item.id], fence: fence)
                    default: good.append(item)
                    }
                }
                let done = Set(try await queue.complete(good.map(\.id), fence: fence))
                #expect(done.count == good.count)
                for item in good where done.contains(item.id) {
                    let number = try number(item)
                    ledger.withLock { $0.completed[number, default: 0] += 1 }
                }
            }
        }

        /// Looks for lost leases from the floor of the look before, and at what is at the new one or before: nothing.
        func raiseFloor() async throws {
            let rescue = try await queue.rescue(after: ledger.withLock { $0.floor }, upTo: .end)
            let floor = rescue.floor
            ledger.withLock { ledger in
                #expect(ledger.floor <= floor)
                ledger.floor = floor
            }
            let before = try await db.write.first(
                """
                SELECT count(*) FROM work_items
                WHERE NOT waiting AND (tx, id) <= (\(PostgresXID(floor.tx))::xid8, \(floor.id)::bigint)
                """
            ) { try $0.get(0, as: Int.self) }
            #expect(before == 0)
        }

        /// Ends the leases of abandoned items, as time would; their worker comes back late, and nothing is its own.
        func rescue(deadline: ContinuousClock.Instant) async throws {
            while try await !isDone {
                guard ContinuousClock.now < deadline else { return }
                let lost = ledger.withLock { ledger in
                    defer { ledger.abandoned = [] }
                    return ledger.abandoned
                }
                try await db.write.execute(
                    """
                    UPDATE work_items SET leased_until = now() - interval '1 second'
                    WHERE id = ANY (\(lost.map(\.id.value))::bigint[])
                    """)
                _ = try await queue.promote()
                try await raiseFloor()
                for item in lost { #expect(try await queue.complete([item.id], fence: item.fence).isEmpty) }
            }
        }
    }

    @Test("whatever goes wrong, each committed item is completed once or dead, and no other ever runs")
    func everyItemOnce() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 6 }) { db, _ in
            let run = Run(db: db)
            let deadline = ContinuousClock.now + .seconds(600)
            run.ledger.withLock { $0.enqueuing = 5 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<5 { group.addTask { try await run.enqueue(transactions: 60) } }
                for index in 0..<4 { group.addTask { try await run.work("w\(index)", deadline: deadline) } }
                group.addTask { try await run.rescue(deadline: deadline) }
                try await group.waitForAll()
            }
            let dead = try await run.queue.dead(kind: nil, limit: 1000, before: nil)
            let deadNumbers = try dead.map { letter in
                let object = try JSONSerialization.jsonObject(with: Data(letter.payload.utf8)) as? [String: Int]
                return try #require(object?["n"])
            }
            let ledger = run.ledger.withLock { $0 }
            #expect(ledger.committed.count > 400)
            #expect(ledger.floor > WorkPosition())
            #expect(Set(ledger.completed.keys).union(deadNumbers) == ledger.committed)
            #expect(ledger.completed.values.allSatisfy { $0 == 1 })
            #expect(ledger.rolledBack.isDisjoint(with: ledger.ran.keys))
            #expect(Set(ledger.completed.keys).isDisjoint(with: deadNumbers))
        }
    }
}

import Core
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import CorePostgres

@Suite("Searches that no index answers")
struct EntryScanTests {
    @Test("one runs at a time, the others in the order in which they came; a failed one lets the next in")
    func turns() async throws {
        // It stands still: on a busy machine the turns would take longer than anybody waits.
        let clock = Clock()
        let scans = EntryScans(now: { clock.time.withLock { $0 } })
        let (started, finish) = (Signal<Int>(), Signal<Int>())
        let tasks = try await begin(0..<4, scans, started, finish)
        for number in 0..<4 {
            #expect(try await started.wait(count: number + 1) == Array(0...number))
            #expect(scans.waitingCount == 3 - number)
            finish.send(number)
        }
        for (number, task) in tasks.enumerated() {
            if number == 2 {
                await #expect(throws: TestFailure.self) { try await task.value }
            } else {
                try await task.value
            }
        }
        // And again, from the start.
        #expect(try await scans.run { 7 } == 7)
    }

    @Test("more than may wait are told at once to come back, and so is who has waited too long by the time of its turn")
    func bounds() async throws {
        let clock = Clock()
        let scans = EntryScans(now: { clock.time.withLock { $0 } })
        let (started, finish) = (Signal<Int>(), Signal<Int>())
        let early = try await begin(0..<3, scans, started, finish)
        clock.time.withLock { $0 += EntryScans.waitMax }
        let later = try await begin(3..<EntryScans.waitingMax + 1, scans, started, finish)
        #expect(scans.waitingCount == EntryScans.waitingMax)
        let error = await refused(.unavailable) { try await scans.run {} }
        #expect(error?.retryAfterSeconds == 2)

        clock.time.withLock { $0 += .milliseconds(1) }
        finish.send(0)
        try await early[0].value
        for task in early[1...] { await refused(.unavailable) { try await task.value } }
        for (number, task) in later.enumerated() {
            try await started.wait(count: number + 2)
            finish.send(number + 3)
            try await task.value
        }
        #expect(started.values == [0] + Array(3...EntryScans.waitingMax))
        #expect(scans.waitingCount == 0)
    }

    @Test("what cannot be found in time is refused, if no index answers it; otherwise the database is busy")
    func timeout() async throws {
        try await withTestDatabase(configure: { $0.longMilliseconds = 10_000 }) { db, database in
            try await EntryWorld.fill(database)
            let entries = PostgresEntries(db: db)
            let title = try EntryFilter.compare(.posting(.title), .contains("x", ignoringCase: true))
            let slow = try EntryQuery(.posting, filter: title, counted: true)
            let quick = try EntryQuery(.posting, counted: true)
            // Who waits for a lock is out of time as surely as who reads a million rows.
            try await db.transaction { transaction in
                try await transaction.execute("LOCK TABLE job_postings IN ACCESS EXCLUSIVE MODE")
                let error = await refused(.refused) {
                    try await entries.entries(slow, viewer: nil, now: EntryWorld.now)
                }
                #expect(error?.message.contains("narrow") == true)
                await refused(.unavailable) { try await entries.entries(quick, viewer: nil, now: EntryWorld.now) }
            }
            #expect(try await entries.entries(slow, viewer: nil, now: EntryWorld.now).total == 0)
        }
    }

    private struct TestFailure: Error {}

    private final class Clock: Sendable {
        let time = Mutex(ContinuousClock.now)
    }

    /// Starts work that says that it has begun and ends when it is told to; each is at its place before the next comes.
    private func begin(
        _ numbers: Range<Int>, _ scans: EntryScans, _ started: Signal<Int>, _ finish: Signal<Int>
    ) async throws -> [Task<Void, any Error>] {
        var tasks: [Task<Void, any Error>] = []
        for number in numbers {
            tasks.append(
                Task {
                    try await scans.run {
                        started.send(number)
                        try await finish.wait { $0.contains(number) }
                        if number == 2 { throw TestFailure() }
                    }
                })
            if number == 0 { try await started.wait(count: 1) }
            let wanted = number
            try await eventually { scans.waitingCount == wanted }
        }
        return tasks
    }
}

import Core
import EventLoop
import Foundation
import MediaStore
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import WorkerApp

@Suite("Pruning")
struct PruneTests {
    /// A ledger with so many steps, each of which takes a while.
    private final class Ledger: UpkeepRepository {
        struct State {
            var answers: [Int?]
            var steps = 0
            var forgotten: [Date] = []
        }

        let clock: ManualClock
        let secondsOfStep: Double
        let cancelAt: Int?
        let state: Mutex<State>

        init(_ answers: [Int?], clock: ManualClock, secondsOfStep: Double = 0, cancelAt: Int? = nil) {
            self.clock = clock
            self.secondsOfStep = secondsOfStep
            self.cancelAt = cancelAt
            state = Mutex(State(answers: answers))
        }

        func refreshSearchFacts() async throws {}
        func prune(now: Date) async throws -> [String: Int] { ["mails": 3, "sessions": 0] }
        func ledgerWalk(now: Date) async throws -> LedgerWalk? {
            let steps = state.withLock { $0.answers.count { $0 != nil } }
            return steps == 0 ? nil : LedgerWalk(before: now, steps: steps, blocks: 100, blocksOfStep: 1)
        }
        func stepLedger(_ walk: LedgerWalk) async throws -> Int? {
            clock.advance(seconds: secondsOfStep)
            return state.withLock { state in
                state.steps += 1
                if state.steps == cancelAt { withUnsafeCurrentTask { $0?.cancel() } }
                return state.answers.isEmpty ? nil : state.answers.removeFirst()
            }
        }
        func forgetLedger(before: Date, now: Date) async throws { state.withLock { $0.forgotten.append(before) } }
    }

    private let start = Date(timeIntervalSince1970: 1_800_000_000)
    private let item = WorkItem(id: .init(1), fence: 1, kind: "prune", payload: "{}", attempt: 1)

    private func run(_ ledger: Ledger, metrics: Metrics = Metrics()) async throws {
        let place = UploadTests.Place()
        let store = try FolderStore(
            root: place.root, offload: OffloadPool(name: "prune", threads: 1, queueMax: 8))
        let prune = Prune(
            upkeep: ledger, store: store, ledgerDays: 180, clock: ledger.clock, log: .silent, metrics: metrics)
        try await prune.run(item)
        withExtendedLifetime(place) {}
    }

    @Test("a walk goes on at once while there is something to walk, past those in its way, and all rows are counted")
    func walks() async throws {
        let ledger = Ledger([10_000, nil, 9_999, 0, nil, nil, 7], clock: ManualClock(start), secondsOfStep: 10)
        let metrics = Metrics()
        try await run(ledger, metrics: metrics)
        #expect(ledger.state.withLock(\.steps) == 7)
        let text = metrics.text()
        #expect(text.contains(#"martlet_pruned_rows_total{table="alert_deliveries"} 20006"#))
        #expect(text.contains(#"martlet_pruned_rows_total{table="mails"} 3"#))
        #expect(text.contains(#"martlet_pruned_rows_total{table="sessions"} 0"#))
        // As of the end of the walk: until then nobody was told of it.
        #expect(ledger.state.withLock(\.forgotten) == [start + 70 - 180 * 86400])
    }

    @Test("a walk ends with its time, with a worker that stops, and when somebody stays in its way")
    func ends() async throws {
        let long = Ledger(Array(repeating: 1, count: 5000), clock: ManualClock(start), secondsOfStep: 1)
        try await run(long)
        #expect(long.state.withLock(\.steps) == 1200)
        #expect(long.state.withLock(\.forgotten).count == 1)

        let blocked = Ledger([1] + Array(repeating: nil, count: 50) + [1], clock: ManualClock(start))
        try await run(blocked)
        #expect(blocked.state.withLock(\.steps) == 1 + Prune.blockedMax)

        let stopped = Ledger([1, 1, 1, 1], clock: ManualClock(start), cancelAt: 2)
        await #expect(throws: CancellationError.self) { try await Task { try await run(stopped) }.value }
        #expect(stopped.state.withLock(\.steps) == 2)
        #expect(stopped.state.withLock(\.forgotten) == [])
    }
}

import Foundation
import Synchronization
import Testing

/// The chat under ten thousand schedules (docs/decisions/0022-simulator.md).
@Suite("The chat, simulated")
struct SimulatorTests {
    /// MARTLET_SIM_SEEDS: how many seeds, MARTLET_SIM_FIRST: from which on; MARTLET_SIM_SEED: this one alone, with its
    /// trace.
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["MARTLET_SIM_SEEDS"].flatMap { UInt64($0) } ?? 10_000
    private static let first = environment["MARTLET_SIM_FIRST"].flatMap { UInt64($0) } ?? 1
    private static let only = environment["MARTLET_SIM_SEED"].flatMap { UInt64($0) }
    /// Lines of a trace that are shown: what went wrong is near the end.
    private static let linesMax = 400

    @Test("each member sees each room in order, once, without a gap, whatever breaks", .enabled(if: only == nil))
    func seeds() async {
        let failed = await Self.run(Self.first..<Self.first + Self.count)
        for (seed, violation) in failed.prefix(5) {
            let trace = await Self.onThread {
                let again = Simulation(seed: seed, keepsLines: true)
                return again.run() == nil ? ["It does not fail again."] : again.world.lines
            }
            Issue.record(
                """
                Seed \(seed): \(violation)
                MARTLET_SIM_SEED=\(seed) make simulate
                \(trace.suffix(60).joined(separator: "\n"))
                """)
        }
        #expect(failed.isEmpty, "\(failed.count) seeds of \(Self.count) failed: \(failed.prefix(50).map(\.0))")
    }

    @Test("the same seed is the same run", .enabled(if: environment["SWIFT_DETERMINISTIC_HASHING"] != nil))
    func replays() async {
        for seed in UInt64(1)...40 {
            let runs = await Self.onThread {
                [false, true].map { keepsLines in
                    let simulation = Simulation(seed: seed, keepsLines: keepsLines)
                    _ = simulation.run()
                    return [simulation.world.hash, UInt64(simulation.world.count)]
                }
            }
            #expect(runs[0] == runs[1], "seed \(seed)")
        }
        let hashes = await Self.onThread {
            Set(
                (UInt64(1)...40).map { seed in
                    let simulation = Simulation(seed: seed)
                    _ = simulation.run()
                    return simulation.world.hash
                })
        }
        #expect(hashes.count == 40)
    }

    @Test("one seed, with its trace", .enabled(if: only != nil))
    func alone() async {
        guard let seed = Self.only else { return }
        let (lines, violation) = await Self.onThread {
            let simulation = Simulation(seed: seed, keepsLines: true)
            let violation = simulation.run()
            return (simulation.world.lines, violation)
        }
        for line in lines.suffix(Self.linesMax) { print(line) }
        #expect(violation == nil)
    }

    /// The seeds that are still to be run, and those that failed.
    private final class Board: Sendable {
        private let state: Mutex<(next: UInt64, failed: [(UInt64, Violation)])>
        private let end: UInt64

        init(_ seeds: Range<UInt64>) {
            state = Mutex((seeds.lowerBound, []))
            end = seeds.upperBound
        }

        var failed: [(UInt64, Violation)] { state.withLock { $0.failed }.sorted { $0.0 < $1.0 } }

        private func next() -> UInt64? {
            state.withLock { state in
                guard state.next < end else { return nil }
                state.next += 1
                return state.next - 1
            }
        }

        func work() {
            while let seed = next() {
                guard let violation = Simulation(seed: seed).run() else { continue }
                state.withLock { $0.failed.append((seed, violation)) }
            }
        }
    }

    /// The runs of these seeds on as many threads as there are cores: a simulation must not run inside of a task, whose
    /// place its own tasks would take.
    private static func run(_ seeds: Range<UInt64>) async -> [(UInt64, Violation)] {
        let board = Board(seeds)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
                group.addTask { await onThread { board.work() } }
            }
        }
        return board.failed
    }

    static func onThread<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
        await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: body()) }
            thread.stackSize = 4 << 20
            thread.start()
        }
    }
}

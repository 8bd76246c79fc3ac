import Core
import CorePostgres
import EventLoop
import Foundation
import Postgres
import ServiceKit
import Synchronization
import WorkerApp

/// The worker over the real queue, with work that does nothing: what `make bench` puts beside other queues, not a
/// program to ship.
///
/// - `drain COUNT BATCH`: works until COUNT items, which are there already, are done, and says how long it took.
/// - `steady SECONDS BATCH`: works for so long beside somebody who enqueues, and says every `windowSeconds` how many
///   were done, how long they had waited from their INSERT to their start, and how long claims took, in milliseconds.
///
/// The items are of the kind `prune`; `at` in a payload is when it was put in, in seconds since 1970.
@main
enum Main {
    static let windowSeconds = 10
    /// Batches under way: one being claimed, one that runs, and two whose ends are being written.
    static let batchesMax = 4

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard
            arguments.count == 4, let count = Int(arguments[2]), let batch = Int(arguments[3]),
            let url = ProcessInfo.processInfo.environment["MARTLET_DATABASE_URL"]
        else {
            print("QueueBench drain COUNT BATCH | steady SECONDS BATCH, with MARTLET_DATABASE_URL")
            exit(64)
        }
        let clock = SystemClock()
        let loops = LoopGroup(count: 1, name: "bench")
        let db = Database(try PostgresConfiguration(url: url), loops: loops)
        let tally = Tally(target: arguments[1] == "drain" ? count : nil)
        let lane = WorkLane(name: "bench", kinds: [.prune], runningMax: batch * batchesMax, batchMax: batch)
        let worker = Worker(
            queue: TimedQueue(PostgresWorkQueue(db: db), tally: tally), handlers: [NoWork(tally: tally)],
            settings: Worker.Settings(name: "bench-\(getpid())", lanes: [lane]), loop: loops.loops[0],
            clock: clock, log: .silent, metrics: Metrics())
        let listener = try await db.listen(["martlet_work"], onWake: { _ in worker.wake() }, onReconnect: worker.wake)
        let began = ContinuousClock.now
        await worker.start()
        if arguments[1] == "drain" {
            await tally.whenDone()
        } else {
            for _ in 0..<(count / windowSeconds) {
                try await clock.sleep(seconds: Double(windowSeconds))
                tell(tally.window())
            }
        }
        // Also writes what is not written of the last completions.
        await worker.stop(graceSeconds: 10)
        if arguments[1] == "drain" { tell(["seconds": (ContinuousClock.now - began) / .seconds(1)]) }
        withExtendedLifetime(listener) {}
        await db.close()
    }

    private static func tell(_ figures: [String: Double]) {
        let fields = figures.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }
        print("{\(fields.joined(separator: ", "))}")
        fflush(nil)
    }
}

/// What has been seen, in the present window and in all.
private final class Tally: Sendable {
    private struct State {
        var done = 0
        var waits: [Double] = []
        var claims: [Double] = []
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let target: Int?
    private let state = Mutex(State())

    init(target: Int?) { self.target = target }

    func began(_ item: WorkItem) {
        // A drained backlog has waited for nothing that counts.
        let waited = target == nil ? Payload.secondsWaited(item) : nil
        let waiter: CheckedContinuation<Void, Never>? = state.withLock { state in
            state.done += 1
            if let waited { state.waits.append(waited * 1000) }
            guard let target, state.done >= target else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func claimed(seconds: Double) { state.withLock { $0.claims.append(seconds * 1000) } }

    func whenDone() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.done >= target ?? 0 { return true }
                state.waiter = continuation
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    /// Of the time since the last call.
    func window() -> [String: Double] {
        let (waits, claims) = state.withLock { state in
            defer { (state.waits, state.claims) = ([], []) }
            return (state.waits.sorted(), state.claims.sorted())
        }
        func part(_ sorted: [Double], _ share: Double) -> Double {
            sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * share)]
        }
        return [
            "done": Double(waits.count), "claims": Double(claims.count),
            "wait_p50": part(waits, 0.5), "wait_p99": part(waits, 0.99),
            "claim_p50": part(claims, 0.5), "claim_p99": part(claims, 0.99),
        ]
    }
}

private struct Payload: Decodable {
    let at: Double

    static func secondsWaited(_ item: WorkItem) -> Double? {
        guard let payload = try? JSONDecoder().decode(Payload.self, from: Data(item.payload.utf8)) else { return nil }
        return Date().timeIntervalSince1970 - payload.at
    }
}

private struct NoWork: WorkHandler {
    let tally: Tally
    var kind: WorkItem.Kind { .prune }

    func run(_ item: WorkItem) async throws { tally.began(item) }
}

/// The queue, with its claims timed.
private struct TimedQueue: WorkQueue {
    let queue: PostgresWorkQueue
    let tally: Tally

    init(_ queue: PostgresWorkQueue, tally: Tally) {
        self.queue = queue
        self.tally = tally
    }

    func claim(
        worker: String, kinds: [WorkItem.Kind], limit: Int, after: WorkPosition
    ) async throws -> WorkClaim {
        let began = ContinuousClock.now
        let claim = try await queue.claim(worker: worker, kinds: kinds, limit: limit, after: after)
        // One that finds nothing is not what anybody waits for.
        if !claim.items.isEmpty { tally.claimed(seconds: (ContinuousClock.now - began) / .seconds(1)) }
        return claim
    }

    func enqueue(_ kind: WorkItem.Kind, payload: String, uniqueKey: String?, runAt: Date?) async throws {
        try await queue.enqueue(kind, payload: payload, uniqueKey: uniqueKey, runAt: runAt)
    }
    func bound() async throws -> UInt64 { try await queue.bound() }
    func renew(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID] {
        try await queue.renew(ids, fence: fence)
    }
    func complete(_ ids: [WorkItem.ID], fence: Int64) async throws -> [WorkItem.ID] {
        try await queue.complete(ids, fence: fence)
    }
    func release(_ ids: [WorkItem.ID], fence: Int64) async throws { try await queue.release(ids, fence: fence) }
    func fail(_ item: WorkItem, error: String, retryAfterSeconds: Double, final: Bool) async throws {
        try await queue.fail(item, error: error, retryAfterSeconds: retryAfterSeconds, final: final)
    }
    func postpone(_ item: WorkItem, reason: String, afterSeconds: Double) async throws {
        try await queue.postpone(item, reason: reason, afterSeconds: afterSeconds)
    }
    func promote() async throws -> Int { try await queue.promote() }
    func rescue(after: WorkPosition, upTo: WorkPosition) async throws -> WorkRescue {
        try await queue.rescue(after: after, upTo: upTo)
    }
    func fireSchedule(_ name: String, kind: WorkItem.Kind, payload: String, at due: Date) async throws -> Bool {
        try await queue.fireSchedule(name, kind: kind, payload: payload, at: due)
    }
    func depth() async throws -> [WorkDepth] { try await queue.depth() }
    func pauseState() async throws -> WorkPauseState { try await queue.pauseState() }
    func backlog() async throws -> [WorkBacklog] { try await queue.backlog() }
}

import Core
import Synchronization

/// Lets one search at a time that no index answers into the lane that searches and lists share: each may read a table
/// from end to end, and the lane has few connections. The next ones wait for a moment, in their order.
///
/// Nobody waits much longer than `waitMax`, without a clock that wakes: what runs has its statement timeout, and those
/// who have waited too long by then are told to come back.
final class EntryScans: Sendable {
    static let runningMax = 1
    /// Each holds a request. A search of an ordinary board takes milliseconds, so that this many are through in one
    /// `waitMax`.
    static let waitingMax = 64
    static let waitMax = Duration.seconds(1)

    private struct Waiter {
        let since: ContinuousClock.Instant
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var running = 0
        var waiting: [Waiter] = []
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) { self.now = now }

    static let busy = AppError(
        .unavailable, "Too many searches that take long are running. Filter by what is indexed, or try again.",
        retryAfterSeconds: 2)

    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Runs the work when it is its turn.
    /// - Throws: `unavailable` when too many wait, or this one has waited too long; what the work throws.
    func run<T>(_ work: () async throws -> T) async throws -> T {
        guard await enter() else { throw Self.busy }
        defer { leave() }
        return try await work()
    }

    private func enter() async -> Bool {
        let since = now()
        return await withCheckedContinuation { continuation in
            let answer: Bool? = state.withLock { state in
                if state.running < Self.runningMax {
                    state.running += 1
                    return true
                }
                guard state.waiting.count < Self.waitingMax else { return false }
                state.waiting.append(Waiter(since: since, continuation: continuation))
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    private func leave() {
        let now = now()
        let (late, next) = state.withLock { state in
            let late = state.waiting.prefix { now - $0.since > Self.waitMax }
            state.waiting.removeFirst(late.count)
            let next = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
            if next == nil { state.running -= 1 }
            return (Array(late), next)
        }
        for waiter in late { waiter.continuation.resume(returning: false) }
        next?.continuation.resume(returning: true)
    }
}

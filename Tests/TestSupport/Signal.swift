import EventLoop
import Synchronization

/// Gathers what callbacks on other threads report, and lets a test wait for it, with a deadline instead of a sleep.
public final class Signal<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [Int: Waiter] = [:]
        var next = 0
    }
    private struct Waiter {
        let isMet: @Sendable ([Value]) -> Bool
        let continuation: CheckedContinuation<[Value], any Error>
    }

    private let state = Mutex(State())

    public init() {}

    public var values: [Value] { state.withLock { $0.values } }

    public func send(_ value: Value) {
        let (values, met) = state.withLock { state in
            state.values.append(value)
            let values = state.values
            let met = state.waiters.filter { $0.value.isMet(values) }
            for key in met.keys { state.waiters[key] = nil }
            return (values, met.values.map(\.continuation))
        }
        for continuation in met { continuation.resume(returning: values) }
    }

    /// All values, as soon as they are what is waited for.
    /// - Parameter seconds: on a slow machine other tests may have all threads for minutes.
    /// - Throws: `TestDeadline` after so many seconds.
    @discardableResult
    public func wait(
        seconds: Int = 300, until isMet: @escaping @Sendable ([Value]) -> Bool
    ) async throws -> [Value] {
        try await withCheckedThrowingContinuation { continuation in
            let key = state.withLock { state -> Int? in
                guard !isMet(state.values) else { return nil }
                state.next += 1
                state.waiters[state.next] = Waiter(isMet: isMet, continuation: continuation)
                return state.next
            }
            guard let key else { return continuation.resume(returning: values) }
            Deadline.shared.after(milliseconds: seconds * 1000) { [weak self] in
                let waiter = self?.state.withLock { $0.waiters.removeValue(forKey: key) }
                waiter?.continuation.resume(throwing: TestDeadline())
            }
        }
    }

    /// Waits until so many values have come.
    @discardableResult
    public func wait(count: Int, seconds: Int = 300) async throws -> [Value] {
        try await wait(seconds: seconds) { $0.count >= count }
    }
}

/// What was waited for did not happen in time.
public struct TestDeadline: Error {}

/// Asks again until the answer is yes: for states of the server that nobody reports.
/// - Throws: `TestDeadline` after so many seconds, or what `condition` throws.
public func eventually(seconds: Int = 300, _ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while true {
        if try await condition() { return }
        guard ContinuousClock.now < end else { throw TestDeadline() }
        // Asking as fast as one can would only keep the server from getting there.
        await withCheckedContinuation { continuation in
            Deadline.shared.after(milliseconds: 5) { continuation.resume() }
        }
    }
}

/// Timers for deadlines, on a loop that nothing under test shares.
private final class Deadline: Sendable {
    static let shared = Deadline()
    private let loop = EventLoop(name: "test-deadline")

    func after(milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
        let loop = loop
        loop.execute {
            var kept: LoopTimer?
            let timer = LoopTimer(on: loop) {
                body()
                _ = kept
                kept = nil
            }
            kept = timer
            timer.start(milliseconds: UInt64(milliseconds))
        }
    }
}

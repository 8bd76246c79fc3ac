import Foundation
import Synchronization

/// A bounded pool of threads for what would block a loop: password hashing, files, blocking libraries.
public final class OffloadPool: Sendable {
    public struct Full: Error {}

    private struct State {
        var queue: [@Sendable () -> Void] = []
        var head = 0
        var stopping = false
    }

    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)
    private let queueMax: Int
    private let threads: Int

    /// - Parameter queueMax: more waiting work than this is refused with `Full`, so that a flood cannot grow the queue.
    public init(name: String, threads: Int, queueMax: Int) {
        self.queueMax = queueMax
        self.threads = threads
        for index in 0..<threads {
            let thread = Thread { [self] in work() }
            thread.name = "\(name)-\(index)"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    /// Runs `body` on one of the pool's threads and resumes the caller where it was.
    public func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let accepted = state.withLock { state in
                guard !state.stopping, state.queue.count - state.head < queueMax else { return false }
                state.queue.append { continuation.resume(with: Result { try body() }) }
                return true
            }
            if accepted { available.signal() } else { continuation.resume(throwing: Full()) }
        }
    }

    /// Ends the threads after what is queued.
    public func stop() {
        state.withLock { $0.stopping = true }
        for _ in 0..<threads { available.signal() }
    }

    private func work() {
        while true {
            available.wait()
            let next: (@Sendable () -> Void)? = state.withLock { state in
                guard state.head < state.queue.count else { return nil }
                defer {
                    state.head += 1
                    // Also when it never runs empty: what was taken must not pile up.
                    if state.head == state.queue.count || state.head > queueMax {
                        state.queue.removeFirst(state.head)
                        state.head = 0
                    }
                }
                return state.queue[state.head]
            }
            guard let next else { return }
            next()
        }
    }
}

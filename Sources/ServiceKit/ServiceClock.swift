import Foundation
import Synchronization

/// Time as the services see it. Injected, so that tests say what time it is.
public protocol ServiceClock: Sendable {
    func now() -> Date
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    func sleep(seconds: Double) async throws
}

extension ServiceClock {
    public var seconds: Int64 { Int64(now().timeIntervalSince1970) }
}

public struct SystemClock: ServiceClock {
    public init() {}
    public func now() -> Date { Date() }
    public func sleep(seconds: Double) async throws { try await Task.sleep(for: .seconds(seconds)) }
}

/// A clock for tests: stands still until it is told to go on, and wakes whoever's time has come.
public final class ManualClock: ServiceClock {
    private struct State {
        var now: Date
        var sleepers: [(id: Int, until: Date, continuation: CheckedContinuation<Void, any Error>)] = []
        var nextID = 0
    }

    /// A Mutex cannot be captured; a class that holds one can.
    private final class Box: Sendable {
        let lock: Mutex<State>
        init(_ now: Date) { lock = Mutex(State(now: now)) }
    }

    private let state: Box

    public init(_ now: Date = Date(timeIntervalSince1970: 1_800_000_000)) { state = Box(now) }

    public func now() -> Date { state.lock.withLock { $0.now } }

    /// Who waits for their time.
    public var sleepers: Int { state.lock.withLock { $0.sleepers.count } }

    public func advance(seconds: Double) {
        let due = state.lock.withLock { state in
            state.now += seconds
            let due = state.sleepers.filter { $0.until <= state.now }
            state.sleepers.removeAll { $0.until <= state.now }
            return due
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    public func sleep(seconds: Double) async throws {
        let state = state
        let id = state.lock.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let early = state.lock.withLock { state -> Bool in
                    if seconds <= 0 || Task.isCancelled { return true }
                    state.sleepers.append((id, state.now + seconds, continuation))
                    return false
                }
                if early { continuation.resume() }
            }
            try Task.checkCancellation()
        } onCancel: {
            let sleeper = state.lock.withLock { state in
                let sleeper = state.sleepers.first { $0.id == id }
                state.sleepers.removeAll { $0.id == id }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}

import Core
import Foundation
import ServiceKit
import Synchronization

/// The ended sessions whose tokens could still be valid, in memory: verifying a token needs no query.
///
/// Loaded before the process is ready, kept up by wake-ups and by polling. When its knowledge is older than
/// `staleSecondsMax`, tokens are refused for the moment: a session that was ended must not live on because the
/// database is away.
public final class SessionGuard: Sendable {
    public static let staleSecondsMax = 5.0
    /// Where nothing wakes, an end is known after this and a query: that is to be within a second everywhere.
    static let pollSeconds = 0.5

    private struct State {
        var ended: [Session.ID: Date] = [:]
        var bound: UInt64 = 0
        var refreshedAt: Date?
        var listeners: [@Sendable (Set<Session.ID>) -> Void] = []
        var waiting: CheckedContinuation<Void, Never>?
        var woken = false
        var polling: Task<Void, Never>?
    }

    private let state = Mutex(State())
    private let sessions: any SessionRepository
    private let clock: any ServiceClock
    private let log: Log
    private let staleSecondsMax: Double

    /// - Parameter staleSecondsMax: how old its knowledge may be while tokens are taken.
    public init(
        sessions: any SessionRepository, clock: any ServiceClock, log: Log,
        staleSecondsMax: Double = SessionGuard.staleSecondsMax
    ) {
        self.staleSecondsMax = staleSecondsMax
        self.sessions = sessions
        self.clock = clock
        self.log = log
    }

    /// Called with the sessions that ended since the last refresh, from the refreshing task.
    public func onEnd(_ listener: @escaping @Sendable (Set<Session.ID>) -> Void) {
        state.withLock { $0.listeners.append(listener) }
    }

    /// - Throws: `unauthenticated` for an ended session, `unavailable` when that cannot be known.
    public func check(_ session: Session.ID) throws(AppError) {
        let now = clock.now()
        let (ended, fresh) = state.withLock { state in
            (
                state.ended[session] != nil,
                state.refreshedAt.map { now.timeIntervalSince($0) <= staleSecondsMax } ?? false
            )
        }
        guard !ended else { throw .unauthenticated }
        guard fresh else { throw .unavailable }
    }

    /// Nil when tokens can be verified.
    public var problem: String? {
        let now = clock.now()
        return state.withLock { state in
            guard let refreshedAt = state.refreshedAt else { return "ended sessions are not loaded yet" }
            let age = now.timeIntervalSince(refreshedAt)
            return age <= staleSecondsMax ? nil : "ended sessions were last read \(Int(age)) s ago"
        }
    }

    /// This process ended a session itself: known at once, before the database tells.
    public func end(_ session: Session.ID, expiresAt: Date) {
        state.withLock { $0.ended[session] = expiresAt }
        tell([session])
    }

    public func refresh() async throws {
        let bound = state.withLock { $0.bound }
        let asked = clock.now()
        let news = try await sessions.revocations(since: bound)
        let fresh = state.withLock { state -> Set<Session.ID> in
            var fresh: Set<Session.ID> = []
            for (id, expiresAt) in news.sessions where expiresAt > asked {
                if state.ended.updateValue(expiresAt, forKey: id) == nil { fresh.insert(id) }
            }
            state.bound = news.bound
            state.refreshedAt = asked
            return fresh
        }
        tell(fresh)
    }

    /// Something ended, says the bus: read now, not at the next poll.
    public func wake() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let waiting = state.waiting else {
                state.woken = true
                return nil
            }
            state.waiting = nil
            return waiting
        }
        waiting?.resume()
    }

    /// Refreshes from now on, until `stop()`.
    public func start() {
        state.withLock { state in
            guard state.polling == nil else { return }
            state.polling = Task { await run() }
        }
    }

    /// Returns when nothing is asked of the database any more, and nobody told. Tokens are refused some seconds later.
    public func stop() async {
        let polling = state.withLock { state in
            defer { state.polling = nil }
            return state.polling
        }
        polling?.cancel()
        await polling?.value
        state.withLock { $0.listeners = [] }
    }

    /// Refreshes until the task is cancelled.
    public func run() async {
        var failing = false
        while !Task.isCancelled {
            do {
                try await refresh()
                if failing { log.info("ended sessions are known again") }
                failing = false
            } catch {
                if Task.isCancelled { return }
                if !failing {
                    log.warning("ended sessions cannot be read", ["error": .string(String(describing: error))])
                }
                failing = true
            }
            forgetExpired()
            await pause()
        }
    }

    private func pause() async {
        let timer = Task { [clock] in
            // Cancelled, it must not wake: that would end the next pause at once, and so on.
            guard (try? await clock.sleep(seconds: Self.pollSeconds)) != nil else { return }
            wake()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Bool in
                    if state.woken {
                        state.woken = false
                        return true
                    }
                    state.waiting = continuation
                    return false
                }
                if now { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
        timer.cancel()
    }

    private func forgetExpired() {
        let now = clock.now()
        state.withLock { state in
            guard state.ended.contains(where: { $0.value <= now }) else { return }
            state.ended = state.ended.filter { $0.value > now }
        }
    }

    private func tell(_ ended: Set<Session.ID>) {
        guard !ended.isEmpty else { return }
        for listener in state.withLock({ $0.listeners }) { listener(ended) }
    }
}

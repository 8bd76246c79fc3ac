import Core
import Crypto
import Foundation
import ServiceKit
import Synchronization
import Testing

@testable import CoreHTTP

/// Sessions that end when the test says so; may be away.
private final class FakeSessions: SessionRepository {
    struct Away: Error {}
    let state = Mutex<(ended: [(Session.ID, Date)], away: Bool, count: Int)>(([], false, 0))
    let reads = AsyncStream<Void>.makeStream()

    func start(
        _: Session.Kind, user _: User.ID, passwordHash _: String?, refreshHash _: [UInt8]?, expiresAt _: Date
    ) async throws -> Session { throw Away() }
    func prune(limit _: Int) async throws -> Int { throw Away() }
    func rotate(refreshHash _: [UInt8], newRefreshHash _: [UInt8], now _: Date) async throws -> Session { throw Away() }
    func end(_: Session.ID, user _: User.ID) async throws { throw Away() }
    func endAll(user _: User.ID) async throws { throw Away() }

    func revocations(since bound: UInt64) async throws -> Revocations {
        let (ended, away) = state.withLock { state in
            state.count += 1
            return (state.ended, state.away)
        }
        reads.continuation.yield()
        if away { throw Away() }
        return Revocations(sessions: ended.map { (id: $0.0, expiresAt: $0.1) }, bound: UInt64(ended.count))
    }
}

@Suite("Tokens")
struct SignInTests {
    private let clock = ManualClock()
    private let sessions = FakeSessions()
    private let guardian: SessionGuard
    private let signIn: SignIn
    private let session: Session

    init() throws {
        guardian = SessionGuard(sessions: sessions, clock: clock, log: .silent)
        signIn = SignIn(
            signer: TokenSigner(keys: try SigningKeys(secrets: [String(repeating: "k", count: 32)])),
            guardian: guardian,
            clock: clock)
        session = Session(
            id: Session.ID(5), userID: User.ID(7), kind: .long, generation: 0, expiresAt: clock.now() + 30 * 86_400)
    }

    @Test("a token names its user and session; another key's token does not pass")
    func verify() async throws {
        try await guardian.refresh()
        let caller = try signIn.verify(signIn.longToken(for: session))
        #expect(caller.user == User.ID(7) && caller.session == Session.ID(5))
        #expect(throws: AppError.unauthenticated) { try signIn.verify("x.y.z") }
    }

    @Test("before the first refresh, and when the last one is too old, tokens are refused for the moment")
    func stale() async throws {
        let token = signIn.longToken(for: session)
        #expect(throws: AppError.unavailable) { try signIn.verify(token) }
        #expect(guardian.problem != nil)
        try await guardian.refresh()
        clock.advance(seconds: SessionGuard.staleSecondsMax)
        #expect(throws: Never.self) { try signIn.verify(token) }
        clock.advance(seconds: 0.5)
        #expect(throws: AppError.unavailable) { try signIn.verify(token) }
    }

    @Test("an ended session's tokens are refused after the refresh, and whoever listens is told once")
    func ended() async throws {
        try await guardian.refresh()
        let told = TellCount()
        guardian.onEnd {
            told.count.withLock { $0 += 1 }
            _ = $0
        }
        sessions.state.withLock { $0.ended = [(session.id, session.expiresAt)] }
        try await guardian.refresh()
        try await guardian.refresh()
        #expect(throws: AppError.unauthenticated) { try signIn.verify(signIn.longToken(for: session)) }
        #expect(told.count.withLock { $0 } == 1)
    }

    @Test("a wake-up makes one refresh, and so does a second of the clock; between them there is none")
    func pauses() async throws {
        let running = Task { await guardian.run() }
        var reads = sessions.reads.stream.makeAsyncIterator()
        _ = await reads.next()
        for _ in 0..<20 {
            guardian.wake()
            _ = await reads.next()
        }
        // Nothing but these: the next one comes by the clock, which moves only now.
        while clock.sleepers == 0 { await Task.yield() }
        #expect(sessions.state.withLock { $0.count } == 21)
        clock.advance(seconds: 1)
        _ = await reads.next()
        #expect(sessions.state.withLock { $0.count } == 22)
        running.cancel()
        await running.value
    }

    @Test("an access token ends after its minutes, the long one with its session")
    func expiry() async throws {
        let access = signIn.accessToken(for: session)
        let long = signIn.longToken(for: session)
        clock.advance(seconds: Double(Session.accessTokenSeconds) + 1)
        try await guardian.refresh()
        #expect(throws: AppError.unauthenticated) { try signIn.verify(access) }
        #expect(throws: Never.self) { try signIn.verify(long) }
    }

    @Test("a key may be counted so often a minute, and again in the next")
    func rate() throws {
        let limiter = RateLimiter(perMinute: 2, clock: clock)
        for _ in 0..<2 { try limiter.take("a") }
        let error = #expect(throws: AppError.self) { try limiter.take("a") }
        #expect(error?.code == .tooMany && (error?.retryAfterSeconds ?? 0) > 0)
        #expect(throws: Never.self) { try limiter.take("b") }
        clock.advance(seconds: 60)
        #expect(throws: Never.self) { try limiter.take("a") }
    }

    @Test("what is given back may be taken again in its minute; in the next it gives nothing")
    func giveBack() throws {
        let limiter = RateLimiter(perMinute: 2, clock: clock)
        let (first, second) = (try limiter.take("a"), try limiter.take("a"))
        limiter.giveBack(first)
        #expect(throws: Never.self) { try limiter.take("a") }
        #expect(throws: AppError.self) { try limiter.take("a") }
        clock.advance(seconds: 60)
        for _ in 0..<2 { try limiter.take("a") }
        limiter.giveBack(second)
        #expect(throws: AppError.self) { try limiter.take("a") }
    }
}

private final class TellCount: Sendable {
    let count = Mutex(0)
}

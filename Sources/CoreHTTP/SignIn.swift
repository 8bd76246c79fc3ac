import Core
import Crypto
import Foundation
import HTTPServer
import ServiceKit

/// Who makes a request.
public struct Caller: Sendable, Equatable {
    public let user: User.ID
    public let session: Session.ID
    public let expiresAt: Date
    /// A long token ends with its session; an access token's session goes on.
    public let kind: Claims.Kind

    public init(user: User.ID, session: Session.ID, expiresAt: Date, kind: Claims.Kind = .access) {
        self.user = user
        self.session = session
        self.expiresAt = expiresAt
        self.kind = kind
    }
}

/// Makes and verifies tokens. Verifying takes no query: signature, expiry, and the ended sessions in memory.
public struct SignIn: Sendable {
    private let signer: TokenSigner
    private let guardian: SessionGuard
    private let clock: any ServiceClock

    public init(signer: TokenSigner, guardian: SessionGuard, clock: any ServiceClock) {
        self.signer = signer
        self.guardian = guardian
        self.clock = clock
    }

    /// - Throws: `unauthenticated`, or `unavailable` when ended sessions are not known.
    public func verify(_ token: String) throws(AppError) -> Caller {
        let claims: Claims
        do {
            claims = try signer.verify(token, now: clock.seconds)
        } catch {
            throw .unauthenticated
        }
        let session = Session.ID(claims.sid)
        try guardian.check(session)
        return Caller(
            user: User.ID(claims.id), session: session, expiresAt: Date(timeIntervalSince1970: Double(claims.exp)),
            kind: claims.typ)
    }

    /// Of `Authorization: Bearer …`, the scheme without case.
    /// - Throws: `unauthenticated` when there is none.
    public func caller(of request: HTTPRequest) throws(AppError) -> Caller {
        guard let caller = try optionalCaller(of: request) else { throw .unauthenticated }
        return caller
    }

    /// Nil without a header; a header that is there must be right.
    public func optionalCaller(of request: HTTPRequest) throws(AppError) -> Caller? {
        guard let header = request.headers["Authorization"] else { return nil }
        let parts = header.split(whereSeparator: \.isWhitespace)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { throw .unauthenticated }
        return try verify(String(parts[1]))
    }

    /// The stock client's token, which lives as long as its session.
    public func longToken(for session: Session) -> String {
        token(for: session, kind: .long, expiresAt: Int64(session.expiresAt.timeIntervalSince1970))
    }

    public func accessToken(for session: Session) -> String {
        token(for: session, kind: .access, expiresAt: clock.seconds + Int64(Session.accessTokenSeconds))
    }

    private func token(for session: Session, kind: Claims.Kind, expiresAt: Int64) -> String {
        signer.sign(
            Claims(
                id: session.userID.value, sid: session.id.value, gen: session.generation, typ: kind, iat: clock.seconds,
                exp: expiresAt))
    }
}

import Foundation

/// Accounts. Every method throws `AppError.unavailable` when the database is away.
public protocol UserRepository: Sendable {
    /// - Throws: `conflict` when the e-mail address or the name is taken.
    func create(_ draft: User.Draft, passwordHash: String) async throws -> User
    /// - Throws: `notFound`.
    func find(_ id: User.ID) async throws -> User
    /// By e-mail address (lower-cased) or exact name; nil when there is none. The hash is nil for accounts without a password.
    func findForSignIn(identifier: String) async throws -> (user: User, passwordHash: String?)?
    /// The hash of one's own password, for changing it.
    func passwordHash(of id: User.ID) async throws -> String?
    /// Stores the new hash and ends every session of the user but `except`, in one transaction.
    func setPassword(_ hash: String, of id: User.ID, endingSessionsExcept: Session.ID?) async throws
    /// Stores a better hash of the same password; ends nothing.
    func rehashPassword(_ hash: String, of id: User.ID) async throws
    /// - Throws: `notFound`, `conflict` when the name is taken.
    func update(_ id: User.ID, _ change: User.Change) async throws -> User
    /// Blocking ends every session of the user in the same transaction.
    func setBlocked(_ blocked: Bool, of id: User.ID, by actor: User.ID?) async throws
}

public protocol SessionRepository: Sendable {
    func start(_ kind: Session.Kind, user: User.ID, refreshHash: [UInt8]?, expiresAt: Date) async throws -> Session
    /// Exchanges a refresh token. The present one rotates; the former one within the grace rotates again from the present
    /// state (a client that lost the answer); the former one later ends the family.
    /// - Throws: `unauthenticated` for an unknown, replayed or ended one.
    func rotate(refreshHash: [UInt8], newRefreshHash: [UInt8], now: Date) async throws -> Session
    /// Ending an ended session does nothing. The revocation is committed before this returns.
    func end(_ id: Session.ID, user: User.ID) async throws
    func endAll(user: User.ID) async throws
    /// The ended sessions whose tokens could still be valid, from a bound on; 0 for all.
    func revocations(since bound: UInt64) async throws -> Revocations
}

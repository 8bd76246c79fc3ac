import Foundation

/// Accounts. Every method of every repository throws `AppError.unavailable` when the database is away.
public protocol UserRepository: Sendable {
    /// - Parameter confirmation: when given, the address is unconfirmed until the token mailed to it comes back; the
    ///   mail is asked for in the same transaction.
    /// - Throws: `conflict` when the e-mail address or the name is taken.
    func create(_ draft: User.Draft, passwordHash: String, confirmation: AccountMailing?) async throws -> User
    /// - Throws: `notFound`.
    func find(_ id: User.ID) async throws -> User
    /// By e-mail address (what has an @, in any case) or exact name; nil when there is none. The hash is nil for
    /// accounts without a password.
    func findForSignIn(identifier: String) async throws -> (user: User, passwordHash: String?)?
    /// The hash of one's own password, for changing it.
    func passwordHash(of id: User.ID) async throws -> String?
    /// Stores the new hash, ends every session of the user but `except`, and voids mailed tokens, in one transaction.
    /// - Parameter former: the hash that the present password was checked against; nil for who may set it unasked.
    /// - Throws: `notFound`; `conflict` when the password is another one than `former` by now: nothing is done then.
    func setPassword(
        _ hash: String, replacing former: String?, of id: User.ID, endingSessionsExcept: Session.ID?
    ) async throws
    /// Stores a better hash of the same password; ends nothing. Does nothing when the password is another one by now.
    func rehashPassword(_ hash: String, replacing former: String, of id: User.ID) async throws
    /// Fields and picture in one transaction; a former picture is deleted. Another e-mail address is only asked for:
    /// it becomes the user's when a token mailed to it comes back, and the present address is told. Whether somebody
    /// else has it is found out by the worker, so that the answer does not tell.
    /// - Parameter mailing: for the case that the change has another e-mail address.
    /// - Throws: `notFound`, also for a profile picture that is not the user's own; `conflict` when the name is taken;
    ///   `invalid` for a time zone that the database does not know; `tooMany` when the new or the present address has
    ///   had its mails of this hour.
    func update(
        _ id: User.ID, _ change: User.Change, picture: Media.Draft?, mailing: AccountMailing
    ) async throws -> ProfileUpdate
    /// Blocking ends every session of the user in the same transaction.
    /// - Throws: `notFound`; `conflict` when it is the last administrator who is not blocked.
    func setBlocked(_ blocked: Bool, of id: User.ID, by actor: User.ID?) async throws
}

extension UserRepository {
    public func create(_ draft: User.Draft, passwordHash: String) async throws -> User {
        try await create(draft, passwordHash: passwordHash, confirmation: nil)
    }
}

/// What a mail needs that may be asked for on the way.
public struct AccountMailing: Sendable {
    public let token: AccountToken.Stored
    public let now: Date

    public init(token: AccountToken.Stored, now: Date) {
        self.token = token
        self.now = now
    }
}

public struct ProfileUpdate: Sendable, Equatable {
    public let user: User
    /// The address that waits for its confirmation, when this change asked for one.
    public let pendingEmail: String?

    public init(user: User, pendingEmail: String?) {
        self.user = user
        self.pendingEmail = pendingEmail
    }
}

public protocol SessionRepository: Sendable {
    /// - Parameter passwordHash: The hash that the password was checked against. A password changed since then starts
    ///   no session; nil where no password was asked for.
    /// - Throws: `unauthenticated` when the user is gone, blocked, or has another password by now.
    func start(
        _ kind: Session.Kind, user: User.ID, passwordHash: String?, refreshHash: [UInt8]?, expiresAt: Date
    ) async throws -> Session
    /// Exchanges a refresh token. One of the present generation begins the next one. One of the former generation gets
    /// another token of the present one within `Session.refreshGraceSeconds` of the rotation: a client that asked in
    /// parallel, or lost the answer. Anything older is a replay and ends the family (RFC 9700, 4.14.2).
    /// - Throws: `unauthenticated` for an unknown, replayed, expired or ended one.
    func rotate(refreshHash: [UInt8], newRefreshHash: [UInt8], now: Date) async throws -> Session
    /// Ending an ended session does nothing. The revocation is committed before this returns.
    func end(_ id: Session.ID, user: User.ID) async throws
    func endAll(user: User.ID) async throws
    /// The ended sessions whose tokens could still be valid, from a bound on; 0 for all.
    func revocations(since bound: UInt64) async throws -> Revocations
    /// Deletes what no token can name any more: sessions and revocations past their time. At most `limit` of each; the
    /// caller comes again while it returns that many.
    func prune(limit: Int) async throws -> Int
}

extension SessionRepository {
    public func start(
        _ kind: Session.Kind, user: User.ID, refreshHash: [UInt8]?, expiresAt: Date
    ) async throws -> Session {
        try await start(kind, user: user, passwordHash: nil, refreshHash: refreshHash, expiresAt: expiresAt)
    }
}

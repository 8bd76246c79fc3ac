import Foundation

/// A sign-in. Every token names a session; ending the session ends all its tokens on every instance.
public struct Session: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Session>

    public enum Kind: String, Sendable, CaseIterable {
        /// The stock client's token of 30 days: it cannot refresh.
        case long
        /// Short access tokens and one rotating refresh token (RFC 9700, 4.14).
        case family
    }

    public static let longDays = 30
    public static let familyDays = 60
    public static let accessTokenSeconds = 15 * 60
    /// A client that lost the answer may ask again with the former refresh token for this long; later it is a theft.
    public static let refreshGraceSeconds = 60

    public let id: ID
    public let userID: User.ID
    public let kind: Kind
    public let generation: Int
    public let expiresAt: Date

    public init(id: ID, userID: User.ID, kind: Kind, generation: Int, expiresAt: Date) {
        self.id = id
        self.userID = userID
        self.kind = kind
        self.generation = generation
        self.expiresAt = expiresAt
    }
}

/// What a process knows of ended sessions, read on from a bound of transactions.
public struct Revocations: Sendable {
    public let sessions: [(id: Session.ID, expiresAt: Date)]
    /// Pass to the next read. Rows may come again; none is passed over.
    public let bound: UInt64

    public init(sessions: [(id: Session.ID, expiresAt: Date)], bound: UInt64) {
        self.sessions = sessions
        self.bound = bound
    }
}

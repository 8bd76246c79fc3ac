import Foundation

/// What an operator does with people's accounts.
public protocol PeopleRepository: Sendable {
    /// In the order of their ids.
    /// - Parameter after: the last id of the page before.
    func list(_ filter: UserFilter, after: User.ID?, limit: Int) async throws -> [User]
    /// - Throws: `notFound`; `conflict` for the last administrator who is not blocked.
    func setRole(_ role: User.Role, of id: User.ID) async throws
    /// Those that are not over, the newest first.
    func sessions(of id: User.ID, limit: Int) async throws -> [OpenSession]
    /// Ends all sessions of a person; returns how many there were. Their sockets are closed within a second.
    func endSessions(of id: User.ID) async throws -> Int
    /// What `erase` would take away, now.
    /// - Throws: `notFound`; `conflict` for the last administrator who is not blocked.
    func erasure(of id: User.ID) async throws -> Erasure
    /// Takes a person out of the database, in one transaction after their sessions were ended; their files are deleted
    /// by work items (docs/operations/people.md has what goes and what stays). Broken off, it is done again from the
    /// beginning; broken off after the transaction, `finishErasure` does what is missing.
    /// - Throws: as `erasure`.
    func erase(_ id: User.ID) async throws -> Erasure
    /// The last part of `erase`, of somebody who is erased: empties what was stored meanwhile by sends that had waited.
    /// Done again it does no harm; of an id that nobody was erased with it finds nothing.
    /// - Returns: how many texts.
    func finishErasure(of id: User.ID) async throws -> Int
}

/// Which people.
public struct UserFilter: Sendable, Equatable {
    public let role: User.Role?
    public let blocked: Bool?
    /// A part of the e-mail address, the username or the real name, in any case.
    public let part: String?

    public init(role: User.Role? = nil, blocked: Bool? = nil, part: String? = nil) {
        self.role = role
        self.blocked = blocked
        self.part = part
    }
}

/// A session that is not over.
public struct OpenSession: Sendable, Equatable {
    public let id: Session.ID
    public let kind: Session.Kind
    public let startedAt: Date
    /// When a refresh token was last exchanged; nil where none was.
    public let refreshedAt: Date?
    public let expiresAt: Date

    public init(id: Session.ID, kind: Session.Kind, startedAt: Date, refreshedAt: Date?, expiresAt: Date) {
        self.id = id
        self.kind = kind
        self.startedAt = startedAt
        self.refreshedAt = refreshedAt
        self.expiresAt = expiresAt
    }
}

/// How much there is of a person.
public struct Erasure: Sendable, Equatable {
    public let sessions: Int
    public let files: Int
    public let fileBytes: Int64
    public let applications: Int
    public let alerts: Int
    public let mails: Int
    public let rooms: Int
    /// Texts of theirs that have words or a file, edits included.
    public let messages: Int
    /// Postings of companies that nobody else represents: they are closed.
    public let postings: Int

    public init(
        sessions: Int, files: Int, fileBytes: Int64, applications: Int, alerts: Int, mails: Int, rooms: Int,
        messages: Int, postings: Int
    ) {
        self.sessions = sessions
        self.files = files
        self.fileBytes = fileBytes
        self.applications = applications
        self.alerts = alerts
        self.mails = mails
        self.rooms = rooms
        self.messages = messages
        self.postings = postings
    }

    /// With numbers that are known from elsewhere.
    public func with(sessions: Int? = nil, messages: Int? = nil) -> Erasure {
        Erasure(
            sessions: sessions ?? self.sessions, files: files, fileBytes: fileBytes, applications: applications,
            alerts: alerts, mails: mails, rooms: rooms, messages: messages ?? self.messages, postings: postings)
    }
}

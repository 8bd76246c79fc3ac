import Foundation

public protocol AlertRepository: Sendable {
    /// - Throws: `invalid` for a search without any positive term, place or remote filter; `conflict` for the same
    ///   search again; `tooMany` beyond `JobAlert.perUserMax`.
    func create(_ draft: JobAlert.Draft, owner: User.ID) async throws -> JobAlert
    /// - Throws: `notFound`, also for others' alerts.
    func find(_ id: JobAlert.ID, owner: User.ID) async throws -> JobAlert
    func list(owner: User.ID) async throws -> [JobAlert]
    func delete(_ id: JobAlert.ID, owner: User.ID) async throws
    /// From a mail's link: no sign-in, the token was checked by the caller. Unsubscribing twice is fine.
    func unsubscribe(_ id: JobAlert.ID) async throws
    /// What an unsubscribe page shows.
    func describe(_ id: JobAlert.ID) async throws -> (name: String, email: String)

    /// Matches the postings against all alerts and writes the ledger; instant alerts get a mail and its work item,
    /// others wait for their digest. Safe to repeat. Returns new ledger rows.
    func match(_ postings: [JobPosting.ID], now: Date) async throws -> Int
    /// Whether any digest is due at `now`: asked often, and answered without writing.
    func digestsDue(now: Date) async throws -> Bool
    /// Writes one mail for each alert whose digest is due at `now` in the person's time zone, with its work item,
    /// marking the ledger rows in the same transaction. Safe to repeat and to run on many nodes.
    func collectDigests(now: Date, limit: Int) async throws -> Int
}

/// An e-mail that is to be sent once. The Message-ID is fixed when the row is written.
public struct Mail: Sendable, Equatable {
    public typealias ID = Identifier<Mail>

    public let id: ID
    public let messageID: String
    public let to: String
    public let kind: String
    /// For alert mails: whose one-click unsubscribe link it carries.
    public let alertID: JobAlert.ID?
    public let subjectLine: String
    public let items: [MailItem]
    /// Postings beyond those.
    public let moreItems: Int
    public let createdAt: Date

    public init(
        id: ID, messageID: String, to: String, kind: String, alertID: JobAlert.ID?, subjectLine: String,
        items: [MailItem], moreItems: Int = 0, createdAt: Date
    ) {
        self.id = id
        self.messageID = messageID
        self.to = to
        self.kind = kind
        self.alertID = alertID
        self.subjectLine = subjectLine
        self.items = items
        self.moreItems = moreItems
        self.createdAt = createdAt
    }
}

/// A posting in an alert mail, with why it matched.
public struct MailItem: Sendable, Equatable {
    public let postingID: JobPosting.ID
    public let title: String
    public let company: String
    public let place: String
    public let reason: String

    public init(postingID: JobPosting.ID, title: String, company: String, place: String, reason: String) {
        self.postingID = postingID
        self.title = title
        self.company = company
        self.place = place
        self.reason = reason
    }
}

public protocol MailRepository: Sendable {
    /// Nil when it was sent, or suppressed, or its alert was unsubscribed in the meantime.
    func take(_ id: Mail.ID) async throws -> Mail?
    func markSent(_ id: Mail.ID) async throws
    /// The server refused the address for good: nothing more is sent to it.
    func suppress(_ address: String, reason: String) async throws
}

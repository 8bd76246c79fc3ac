import Foundation

/// A person's answer to a posting.
public struct Application: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Application>

    public enum Status: String, Sendable, CaseIterable {
        case initiated, accepted, declined, withdrawn
    }

    public let id: ID
    public let status: Status
    public let postingID: JobPosting.ID
    public let applicantID: User.ID
    public let cv: Media
    public let roomID: Room.ID?
    public let createdAt: Date
    public let updatedAt: Date

    public init(
        id: ID, status: Status, postingID: JobPosting.ID, applicantID: User.ID, cv: Media, roomID: Room.ID?,
        createdAt: Date, updatedAt: Date
    ) {
        self.id = id
        self.status = status
        self.postingID = postingID
        self.applicantID = applicantID
        self.cv = cv
        self.roomID = roomID
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    /// One line of its history.
    public struct Event: Sendable, Equatable {
        public let kind: String
        public let actorID: User.ID?
        public let note: String
        public let at: Date

        public init(kind: String, actorID: User.ID?, note: String, at: Date) {
            self.kind = kind
            self.actorID = actorID
            self.note = note
            self.at = at
        }
    }

    /// Whether a member of the company may move it from one status to the other. A decision may be changed until withdrawn.
    public static func mayMove(from: Status, to: Status, byCompany: Bool) -> Bool {
        switch (from, to) {
        case (.initiated, .accepted), (.initiated, .declined), (.declined, .accepted): byCompany
        case (.initiated, .withdrawn), (.accepted, .withdrawn): !byCompany
        default: false
        }
    }
}

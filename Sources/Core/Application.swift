import Foundation

/// A person's answer to a posting.
public struct Application: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Application>

    public enum Status: String, Sendable, CaseIterable {
        case initiated, accepted, declined, withdrawn
    }

    /// Applications in one person's own list.
    public static let mineMax = 500

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

    /// Whether an application may go from one status to another; who may ask is `mayAsk`. A declined one may still be
    /// accepted; an acceptance has opened a room and stands until the applicant withdraws.
    public static func mayMove(from: Status, to: Status) -> Bool {
        switch (from, to) {
        case (.initiated, .accepted), (.initiated, .declined), (.declined, .accepted): true
        case (.initiated, .withdrawn), (.accepted, .withdrawn): true
        default: false
        }
    }

    /// The company accepts and declines, the applicant withdraws; nobody asks for the beginning.
    public static func mayAsk(for status: Status, company: Bool, applicant: Bool) -> Bool {
        switch status {
        case .accepted, .declined: company
        case .withdrawn: applicant
        case .initiated: false
        }
    }
}

import Foundation

/// A saved search that notifies.
public struct JobAlert: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<JobAlert>

    public enum Cadence: String, Sendable, CaseIterable {
        case instant, daily, weekly
    }

    public enum State: String, Sendable {
        case active, unsubscribed
    }

    /// Alerts of one person: more is a mistake of a program.
    public static let perUserMax = 50

    public let id: ID
    public let ownerID: User.ID
    public let name: String
    public let search: PostingSearch
    public let cadence: Cadence
    public let state: State
    public let createdAt: Date

    public init(
        id: ID, ownerID: User.ID, name: String, search: PostingSearch, cadence: Cadence, state: State, createdAt: Date
    ) {
        self.id = id
        self.ownerID = ownerID
        self.name = name
        self.search = search
        self.cadence = cadence
        self.state = state
        self.createdAt = createdAt
    }

    /// What a person may choose.
    public struct Draft: Sendable {
        public static let name = TextField("name", max: 100)

        public let name: String
        public let search: PostingSearch
        public let cadence: Cadence

        public init(name: String, search: PostingSearch, cadence: Cadence) throws(AppError) {
            self.name = try Self.name.accept(name)
            self.search = search
            self.cadence = cadence
        }
    }
}

import Foundation

/// A value of the domain, and what was asked for along with it.
public struct Entry: Sendable, Equatable {
    /// Indirect: postings are hundreds of bytes, and entries are handed around.
    public indirect enum Value: Sendable, Equatable {
        case posting(JobPosting)
        case company(Company)
        case application(Application)
        case user(User)
        case media(Media)
    }

    public enum Related: Sendable, Equatable {
        case one(Entry?)
        case many([Entry])
    }

    public let value: Value
    /// Exactly the relations that the query populates, whether they lead anywhere or not.
    public let related: Relations

    public init(_ value: Value, related: Relations = [:]) {
        self.value = value
        self.related = related
    }

    public var id: Int64 { value.id }

    /// A dictionary of very few things: looked through, not hashed.
    public struct Relations: Sendable, Equatable, ExpressibleByDictionaryLiteral, Sequence {
        private let pairs: [(relation: EntryRelation, related: Related)]

        /// - Parameter pairs: each relation once.
        public init(_ pairs: [(relation: EntryRelation, related: Related)]) { self.pairs = pairs }

        public init(dictionaryLiteral elements: (EntryRelation, Related)...) {
            pairs = elements.map { (relation: $0, related: $1) }
        }

        public subscript(relation: EntryRelation) -> Related? {
            pairs.first { $0.relation == relation }?.related
        }

        public var isEmpty: Bool { pairs.isEmpty }

        public func makeIterator() -> IndexingIterator<[(relation: EntryRelation, related: Related)]> {
            pairs.makeIterator()
        }

        /// In whatever order.
        public static func == (left: Relations, right: Relations) -> Bool {
            left.pairs.count == right.pairs.count && left.pairs.allSatisfy { right[$0.relation] == $0.related }
        }
    }
}

extension Entry.Value {
    public var id: Int64 {
        switch self {
        case .posting(let posting): posting.id.value
        case .company(let company): company.id.value
        case .application(let application): application.id.value
        case .user(let user): user.id.value
        case .media(let media): media.id.value
        }
    }

    public var kind: EntryKind {
        switch self {
        case .posting: .posting
        case .company: .company
        case .application: .application
        case .user: .user
        case .media: .media
        }
    }
}

/// One page of a list.
public struct EntryPage: Sendable, Equatable {
    public let entries: [Entry]
    /// Nil when it was not asked for.
    public let total: Int64?

    public init(entries: [Entry], total: Int64?) {
        self.entries = entries
        self.total = total
    }
}

/// Reads entries as the viewer may see them, nobody being a viewer too. What a viewer may not see is not there: not in
/// a list, not at the end of a relation, not for a filter, a sort or a total, so that none of these tells of it.
///
/// - Postings: a list has the open ones (published, not expired), for everyone alike. By id, whatever is no draft; for
///   members of the company drafts too. As a company's: the open ones; for its members all.
/// - Companies: everyone sees all of them.
/// - Applications: the viewer's own, and those to postings of the viewer's company.
/// - Users: the viewer, applicants to the viewer's company, and its members. Of others than the viewer no field that is
///   `EntryField.isPersonal` may be shown.
/// - Media: as `MediaRepository.mayRead`; nobody sees logos.
///
/// A fixed number of statements, however many entries there are: one for the list, one for the total, one for each
/// relation that does not come with the row (as company and logo do with a posting, the CV with an application).
public protocol EntryRepository: Sendable {
    /// - Throws: `refused` when the database cannot find it in time, or `populate` would show more than
    ///   `EntryQuery.populatedMax` entries: ask for less; `unavailable` also when too many such searches run already.
    func entries(_ query: EntryQuery, viewer: User.ID?, now: Date) async throws -> EntryPage
    /// Of the query only `populate` counts.
    /// - Throws: `notFound`, also for what the viewer may not see; as above.
    func entry(_ id: Int64, _ query: EntryQuery, viewer: User.ID?, now: Date) async throws -> Entry
}

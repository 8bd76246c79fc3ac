import Core
import Postgres

/// Reads what `EntryTables.columns` lists.
enum EntryRows {
    /// An entry at the end of a relation, and where it starts.
    struct Link: Sendable {
        let start: Int64
        let value: Entry.Value
    }

    static func value(_ kind: EntryKind) -> @Sendable (Row) throws -> Entry.Value {
        { row in
            var reader = RowReader(row)
            return try read(kind, &reader)
        }
    }

    static func links(_ kind: EntryKind, in result: QueryResult) throws -> [Link] {
        try (0..<result.count).map { index in
            let row = result[index]
            var reader = RowReader(row, from: 1)
            return Link(start: try row.get(0), value: try read(kind, &reader))
        }
    }

    private static func read(_ kind: EntryKind, _ reader: inout RowReader) throws -> Entry.Value {
        switch kind {
        case .posting: return .posting(try reader.posting())
        case .company: return .company(try reader.company())
        case .application: return .application(try reader.application())
        case .user: return .user(try reader.user())
        case .media:
            guard let media = try reader.media() else {
                throw PostgresDecodingError(column: "media", reason: .cell(.null))
            }
            return .media(media)
        }
    }
}

extension EntryRelation {
    /// Its end is part of the row of its start: there is nothing to ask for, unless it is filtered.
    var comesAlong: Bool {
        switch self {
        case .postingCompany, .companyLogo, .applicationCV: true
        case .postingApplications, .companyPostings, .companyRepresentative, .applicationPosting,
            .applicationApplicant, .userProfile, .userApplications, .userCompany:
            false
        }
    }
}

extension EntryQuery {
    /// The rows of the page are all that is needed.
    var comesAlong: Bool {
        populate.allSatisfy { relation, query in relation.comesAlong && query.filter == nil && query.comesAlong }
    }
}

extension Entry.Value {
    /// The end of a relation that comes along.
    func end(of relation: EntryRelation) -> Entry.Value? {
        switch (relation, self) {
        case (.postingCompany, .posting(let posting)): .company(posting.company)
        case (.companyLogo, .company(let company)): company.logo.map { .media($0) }
        case (.applicationCV, .application(let application)): .media(application.cv)
        default: nil
        }
    }

    /// With what comes along, for a query of which all does.
    func entry(_ query: EntryQuery) -> Entry {
        Entry(
            self,
            related: Entry.Relations(
                query.populate.map { relation, query in (relation, .one(end(of: relation)?.entry(query))) }))
    }

    /// Bytes of its long text.
    var weight: Int {
        switch self {
        case .posting(let posting): posting.description.utf8.count
        case .company(let company): company.bio.utf8.count
        case .application, .user, .media: 0
        }
    }
}

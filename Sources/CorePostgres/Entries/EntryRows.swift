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

extension Entry.Value {
    /// What comes along with the row: there is nothing to ask for, unless it is filtered. Nil for other relations.
    func carried(_ relation: EntryRelation) -> [Entry.Value]? {
        switch (relation, self) {
        case (.postingCompany, .posting(let posting)): [.company(posting.company)]
        case (.companyLogo, .company(let company)): company.logo.map { [.media($0)] } ?? []
        case (.applicationCV, .application(let application)): [.media(application.cv)]
        default: nil
        }
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

import Core
import Foundation
import TestSupport
import Testing

@testable import CorePostgres
@testable import Postgres

@Suite("Plans of entry queries")
struct EntryPlanTests {
    /// Tens of thousands of postings, of companies with a few and one with very many.
    private static let fill = """
        INSERT INTO users (username, email) SELECT 'user' || i, 'user' || i || '@example.org'
          FROM generate_series(1, 20000) i;
        INSERT INTO media (owner_id, kind, state, name, mime, ext, hash, bytes, sha256, storage_key)
          SELECT i, CASE WHEN i <= 15000 THEN 'logo' ELSE 'cv' END, 'ready', 'file', 'image/png', '.png',
            'hash' || i, 1, '', 'key' || i FROM generate_series(1, 20000) i;
        INSERT INTO media_variants (media_id, name, storage_key, hash, mime, ext, bytes, width, height)
          SELECT i, n, n || i, 'v' || n || i, 'image/png', '.png', 1, 1, 1
          FROM generate_series(1, 15000) i, unnest(ARRAY['thumbnail', 'small']) n;
        INSERT INTO companies (name, logo_media_id) SELECT 'Company ' || i, i FROM generate_series(1, 15000) i;
        INSERT INTO company_members (company_id, user_id) SELECT i, i FROM generate_series(1, 15000) i;
        INSERT INTO job_postings (company_id, title, state, published_at, created_at, valid_through)
          SELECT CASE WHEN i % 10 = 0 THEN 1 ELSE 1 + i % 15000 END, 'Posting ' || i,
            (ARRAY['draft', 'closed', 'published', 'published', 'published', 'published', 'published'])[1 + i % 7],
            now() - i * interval '1 minute', now() - i * 7919 % 40000 * interval '1 minute',
            CASE WHEN i % 3 = 0 THEN now() + interval '1 day' END
          FROM generate_series(1, 40000) i;
        INSERT INTO applications (posting_id, applicant_id, cv_media_id)
          SELECT i, 1 + i % 20000, 15001 + i % 4999 FROM generate_series(1, 40000) i;
        ANALYZE
        """

    private static let big = "job_postings|companies|company_members|applications|users|media|media_variants"

    @Test("what is said to be served by an index reads no big table from end to end")
    func served() async throws {
        let id = try EntryFilter.compare(.posting(.id), .isIn([.integer(5), .integer(77)]))
        let company = try EntryFilter.related(.postingCompany, .all([.compare(.company(.id), .equals(.integer(5)))]))
        let companies = try EntryFilter.related(
            .postingCompany, .compare(.company(.id), .isIn([.integer(5), .integer(77)])))
        let queries = [
            try EntryQuery(.posting, counted: true),
            try EntryQuery(.posting, filter: id), try EntryQuery(.posting, filter: company, counted: true),
            try EntryQuery(.posting, filter: companies, counted: true),
            try EntryQuery(.posting, filter: company, sort: [EntrySort(.posting(.title))]),
            try EntryQuery(.posting, sort: [EntrySort(.posting(.id))]),
            try EntryQuery(.posting, sort: [EntrySort(.posting(.createdAt))]),
            try EntryQuery(.posting, sort: [EntrySort(.posting(.createdAt), descending: true)]),
            try EntryQuery(.posting, sort: [EntrySort(.posting(.publishedAt))]),
            try EntryQuery(.posting, sort: [EntrySort(.posting(.publishedAt), descending: true)]),
            try EntryQuery(.company), try EntryQuery(.application, counted: true), try EntryQuery(.user, counted: true),
            try EntryQuery(.application, filter: .related(.applicationPosting, id)),
        ]
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            for query in queries {
                #expect(query.isServedByIndex, "\(query)")
                for viewer in [nil, User.ID(5)] {
                    let statements = EntryStatements(query, viewer: viewer, now: .now)
                    try await expectNoScan(statements.page(), "\(query)", database)
                    // All open postings are counted, up to a bound; whatever is left is found by index.
                    guard query.counted, query.filter != nil || query.kind != .posting else { continue }
                    try await expectNoScan(statements.total(), "\(query)", database)
                }
            }
        }
    }

    @Test("every relation is found by index, for one entry or for many")
    func relations() async throws {
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            for viewer in [nil, User.ID(5)] {
                for kind in EntryKind.allCases {
                    let statements = EntryStatements(try EntryQuery(kind), viewer: viewer, now: .now)
                    try await expectNoScan(statements.single(77), "\(kind)", database)
                }
                for relation in EntryRelation.allCases {
                    let statements = EntryStatements(try EntryQuery(relation.from), viewer: viewer, now: .now)
                    let sql = statements.related(
                        relation, to: [5, 77, 1234], try EntryQuery(relation.to), rowsMax: 100, bytesMax: 1000)
                    try await expectNoScan(sql, "\(relation)", database)
                }
            }
        }
    }

    @Test("dozens of relations are planned in the time of a few, and no connection keeps what a client has made up")
    func large() async throws {
        func around(_ number: Int) throws -> EntryFilter {
            .related(
                .postingCompany,
                .related(
                    .companyPostings,
                    .related(
                        .postingCompany,
                        try .compare(.company(.name), .contains("no such \(number)", ignoringCase: false)))))
        }
        let filters = try (0..<24).map(around)
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let entries = PostgresEntries(db: db)
            for filter in [EntryFilter.all(filters), .any(filters), .not(.any(filters))] {
                let query = try EntryQuery(.posting, filter: filter, counted: true)
                #expect(query.partCount > EntryStatements.keptPartsMax)
                let statements = EntryStatements(query, viewer: nil, now: EntryWorld.now)
                #expect(!statements.page().isKept && !statements.total().isKept)
                let page = try await entries.entries(query, viewer: nil, now: EntryWorld.now)
                #expect(page.total == (filter == .not(.any(filters)) ? 5 : 0))
            }
            let small = try EntryQuery(.posting, filter: filters[0])
            #expect(EntryStatements(small, viewer: nil, now: EntryWorld.now).page().isKept)
        }
    }

    @Test("what looks at all rows is not said to be served by an index")
    func unserved() throws {
        let title = try EntryFilter.compare(.posting(.title), .contains("x", ignoringCase: false))
        let id = try EntryFilter.compare(.posting(.id), .equals(.integer(5)))
        let company = try EntryFilter.related(.postingCompany, .compare(.company(.id), .equals(.integer(5))))
        for filter in [
            title, .not(id), .any([id, title]), .all([]), .all([company, title]),
            .hasRelated(.postingApplications, true),
            .related(.postingCompany, try .compare(.company(.name), .equals(.text("x")))),
            try .compare(.posting(.id), .greater(.integer(5))),
        ] {
            #expect(try !EntryQuery(.posting, filter: filter).isServedByIndex, "\(filter)")
        }
        #expect(try EntryQuery(.posting, filter: .all([id, title])).isServedByIndex)
        #expect(try !EntryQuery(.posting, sort: [EntrySort(.posting(.title))]).isServedByIndex)
        #expect(try !EntryQuery(.media).isServedByIndex)
        let sorted = try EntryQuery(.posting, sort: [EntrySort(.posting(.title))])
        #expect(try !EntryQuery(.company, populate: [.companyPostings: sorted]).isServedByIndex)
        let found = try EntryQuery(.posting, filter: title)
        #expect(try !EntryQuery(.company, populate: [.companyPostings: found]).isServedByIndex)
        let filtered = try EntryQuery(.company, filter: .compare(.company(.name), .isNull))
        #expect(try EntryQuery(.posting, populate: [.postingCompany: filtered]).isServedByIndex)
    }

    /// Neither with the values as they are nor with any: PostgreSQL plans a statement it has seen often for all values.
    private func expectNoScan(
        _ sql: SQL, _ what: String, _ database: TestDatabase, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let arguments = sql.binds.map(Self.literal).joined(separator: ", ")
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let plan = try await database.run(
                """
                SET plan_cache_mode = \(mode);
                PREPARE s AS \(sql.text);
                EXPLAIN (COSTS OFF) EXECUTE s\(arguments.isEmpty ? "" : "(\(arguments))")
                """
            ).compactMap { $0[0] }
            let scans = try plan.filter { $0.contains(try Regex("Seq Scan on (\(Self.big))\\b")) }
            #expect(
                scans == [], "\(mode) \(what)\n\(sql.text)\n\(plan.joined(separator: "\n"))",
                sourceLocation: sourceLocation)
        }
    }

    private static func literal(_ bind: PostgresBind) -> String {
        switch bind {
        case .null, .refused: "NULL"
        case .integer(let value): String(value)
        case .text(let text): "'" + text.replacing("'", with: "''") + "'"
        case .bytes(let bytes), .array(let bytes): "'" + String(decoding: bytes, as: UTF8.self) + "'"
        }
    }
}

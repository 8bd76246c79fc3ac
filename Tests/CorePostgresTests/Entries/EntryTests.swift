import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Entries in PostgreSQL")
struct EntryTests {
    private func ids(
        _ filter: EntryFilter, _ kind: EntryKind = .posting, viewer: User.ID? = nil, in db: Database
    ) async throws -> [Int64] {
        let query = try EntryQuery(kind, filter: filter, sort: [EntrySort(.id(of: kind))])
        return try await PostgresEntries(db: db).entries(query, viewer: viewer, now: EntryWorld.now).entries.map(\.id)
    }

    @Test("signs that mean something to LIKE are themselves, in texts of both cases")
    func patterns() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            func found(_ comparison: EntryComparison) async throws -> [Int64] {
                try await ids(.compare(.posting(.title), comparison), in: db)
            }
            #expect(try await found(.contains("under_", ignoringCase: false)) == [5])
            #expect(try await found(.contains("UNDER%", ignoringCase: true)) == [6])
            #expect(try await found(.startsWith("%", ignoringCase: false)) == [])
            #expect(try await found(.endsWith("_", ignoringCase: true)) == [])
            #expect(try await found(.contains("", ignoringCase: false)) == [1, 5, 6, 8, 9])
            #expect(try await found(.equalsIgnoringCase("COOK")) == [1, 8])
            #expect(try await found(.equals(.text("cook"))) == [])
            #expect(try await found(.equals(.text("Cook' OR '1'='1"))) == [])
            let slashes = try EntryFilter.compare(.company(.bio), .contains("\\ s", ignoringCase: false))
            #expect(try await ids(slashes, .company, in: db) == [2])
        }
    }

    @Test("descriptions are searched as people see them: no markup, escapes read, a word half in bold is one word")
    func descriptions() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            _ = try await database.run(
                """
                UPDATE job_postings SET description =
                  '<h2>Who</h2><p>You\n know <a href="https://x.example/?a=1&amp;b=2" rel="noopener nofollow ugc">'
                  || 'R&amp;D</a>, C<em>++</em> &amp;lt; <code>a&lt;b</code><br>&quot;well&quot;</p><ul><li>one</li>'
                  || '<li>two &gt; one</li></ul>' WHERE id = 1
                """)
            func isFound(_ comparison: EntryComparison) async throws -> Bool {
                try await ids(.compare(.posting(.description), comparison), in: db).contains(1)
            }
            for text in [
                "Who You know R&D, C++ &lt; a<b \"well\" one two > one", "know   R&D", "You\nknow", "C++", "&lt;",
                "a<b",
                "well\" one", "",
            ] {
                #expect(try await isFound(.contains(text, ignoringCase: false)), "\(text)")
            }
            for text in ["href", "x.example", "<p>", "<", "noopener", "&amp;", "li", "C ++", "know one", "<>", "who"] {
                let expected = text == "<"
                #expect(try await isFound(.contains(text, ignoringCase: false)) == expected, "\(text)")
            }
            #expect(try await isFound(.contains("WHO YOU", ignoringCase: true)))
            #expect(try await isFound(.startsWith("Who you", ignoringCase: true)))
            #expect(try await isFound(.endsWith("> one", ignoringCase: false)))
            #expect(try await !isFound(.startsWith("you", ignoringCase: true)))
        }
    }

    @Test("times are compared as they are shown, to the millisecond")
    func times() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            // 08:00:00.100100 and .100900 are both shown as .100, and .101000 as .101.
            let shown = Date(timeIntervalSince1970: 1_772_352_000.1)
            func found(_ comparison: EntryComparison) async throws -> [Int64] {
                let mine = try EntryFilter.compare(.company(.id), .equals(.integer(1)))
                let query = try EntryQuery(
                    .company, filter: mine,
                    populate: [
                        .companyPostings: EntryQuery(
                            .posting, filter: .compare(.posting(.createdAt), comparison),
                            sort: [EntrySort(.posting(.id))])
                    ])
                let page = try await PostgresEntries(db: db).entries(
                    query, viewer: EntryWorld.jane, now: EntryWorld.now)
                guard case .many(let many)? = page.entries.first?.related[.companyPostings] else { return [] }
                return many.map(\.id)
            }
            let next = shown.addingTimeInterval(0.001)
            #expect(try await found(.equals(.date(shown))) == [1, 2])
            #expect(try await found(.isIn([.date(shown)])) == [1, 2])
            #expect(try await found(.greater(.date(shown))) == [3, 4])
            #expect(try await found(.greaterOrEqual(.date(next))) == [3, 4])
            #expect(try await found(.less(.date(next))) == [1, 2])
            #expect(try await found(.lessOrEqual(.date(shown))) == [1, 2])
            #expect(try await found(.less(.date(shown))) == [])
            #expect(try await found(.between(.date(shown), .date(next))) == [1, 2, 3])
            #expect(try await found(.equals(.date(shown.addingTimeInterval(0.0007)))) == [1, 2])
        }
    }

    @Test("a date that PostgreSQL does not have is refused, and no fault")
    func farDates() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let far = Date(timeIntervalSince1970: 1e18)
            await refused(.invalid) { try await ids(.compare(.posting(.createdAt), .less(.date(far))), in: db) }
            await refused(.invalid) { try await ids(.compare(.posting(.createdAt), .isIn([.date(far)])), in: db) }
        }
    }

    @Test("a filter tells nobody of drafts, of others' applications, or of who stands for a company")
    func noOracle() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let draft = try EntryFilter.compare(.posting(.standing), .equals(.text("draft")))
            let ofDrafts = EntryFilter.related(.companyPostings, draft)
            #expect(try await ids(ofDrafts, .company, in: db) == [])
            #expect(try await ids(ofDrafts, .company, viewer: EntryWorld.ann, in: db) == [])
            #expect(try await ids(ofDrafts, .company, viewer: EntryWorld.rick, in: db) == [1])
            #expect(try await ids(draft, viewer: EntryWorld.rick, in: db) == [])

            let appliedTo = EntryFilter.hasRelated(.postingApplications, true)
            #expect(try await ids(appliedTo, in: db) == [])
            #expect(try await ids(appliedTo, viewer: EntryWorld.zoe, in: db) == [])
            #expect(try await ids(appliedTo, viewer: EntryWorld.ann, in: db) == [1])
            #expect(try await ids(appliedTo, viewer: EntryWorld.bob, in: db) == [5])

            let hasSomeone = EntryFilter.hasRelated(.companyRepresentative, true)
            #expect(try await ids(hasSomeone, .company, in: db) == [])
            #expect(try await ids(hasSomeone, .company, viewer: EntryWorld.bob, in: db) == [2])
            let name = try EntryFilter.related(
                .companyRepresentative, .compare(.user(.email), .startsWith("jane", ignoringCase: false)))
            #expect(try await ids(name, .company, viewer: EntryWorld.bob, in: db) == [])
            #expect(try await ids(name, .company, viewer: EntryWorld.rick, in: db) == [1])
        }
    }

    @Test("a list shows a fixed number of statements' work, however many entries it has")
    func statements() async throws {
        try await withTestDatabase { db, database in
            try await database.run(Self.board)
            let entries = PostgresEntries(db: db)
            let logo = try EntryQuery(.media)
            let company = try EntryQuery(.company, populate: [.companyLogo: logo])
            let applications = try EntryQuery(
                .application,
                populate: [.applicationCV: EntryQuery(.media), .applicationApplicant: EntryQuery(.user)])
            func executed(_ limit: Int, _ populate: [EntryRelation: EntryQuery]) async throws -> (Int, EntryPage) {
                let query = try EntryQuery(.posting, limit: limit, counted: true, populate: populate)
                let before = db.statementsExecuted
                let page = try await entries.entries(query, viewer: User.ID(1), now: .now)
                return (db.statementsExecuted - before, page)
            }
            for limit in [1, 25, 100] {
                let (plain, page) = try await executed(limit, [.postingCompany: company])
                #expect(plain == 2 && page.entries.count == limit && page.total == 200)
                let (full, shown) = try await executed(
                    limit, [.postingCompany: company, .postingApplications: applications])
                #expect(full == 4)
                for entry in shown.entries {
                    guard case .many(let found)? = entry.related[.postingApplications],
                        case .one(let company?)? = entry.related[.postingCompany],
                        case .one(let logo?)? = company.related[.companyLogo]
                    else {
                        Issue.record("not populated: \(entry)")
                        continue
                    }
                    // All of the viewer's company, the viewer's own of the others.
                    #expect(found.count == (company.id == 1 ? 3 : 1) && logo.value.kind == .media)
                    for application in found {
                        #expect(application.related[.applicationApplicant] != .one(nil))
                        #expect(application.related[.applicationCV] != .one(nil))
                    }
                }
            }
        }
    }

    @Test("what is populated has its limits: a hundred of each, and so many in all; more is refused")
    func populateLimits() async throws {
        try await withTestDatabase { db, database in
            try await database.run(Self.board)
            try await database.run(
                """
                INSERT INTO job_postings (company_id, title, state, published_at)
                  SELECT 1 + i % 30, 'More', 'published', now() FROM generate_series(1, 4500) i
                """)
            let entries = PostgresEntries(db: db)
            func list(_ limit: Int) async throws -> [Int] {
                let query = try EntryQuery(
                    .company, sort: [EntrySort(.company(.id))], limit: limit,
                    populate: [.companyPostings: EntryQuery(.posting)])
                return try await entries.entries(query, viewer: nil, now: .now).entries.map { company in
                    guard case .many(let found)? = company.related[.companyPostings] else { return -1 }
                    #expect(found.map(\.id) == found.map(\.id).sorted(by: >))
                    return found.count
                }
            }
            #expect(try await list(20) == Array(repeating: EntryQuery.populatedPerParentMax, count: 20))
            let error = await refused(.refused) { try await list(21) }
            #expect(error?.message.contains("fewer") == true)
            // Of the same company a hundred times over: the answer would have them all a hundred times.
            let around = try EntryQuery(
                .company, limit: 1,
                populate: [
                    .companyPostings: EntryQuery(
                        .posting,
                        populate: [
                            .postingCompany: EntryQuery(.company, populate: [.companyPostings: EntryQuery(.posting)])
                        ])
                ])
            await refused(.refused) { try await entries.entries(around, viewer: nil, now: .now) }
            // Long texts are counted too: 100 postings of 100,000 characters are shown, twice as many are not.
            try await database.run(
                "UPDATE job_postings SET description = repeat('x', 100000) WHERE company_id <= 2")
            #expect(try await list(1) == [100])
            await refused(.refused) { try await list(2) }
        }
    }

    @Test("a total above what is counted is at least that number, or an estimate of a plain list")
    func totals() async throws {
        try await withTestDatabase { db, database in
            try await database.run(Self.board)
            try await database.run(
                """
                INSERT INTO companies (name) SELECT 'Many' FROM generate_series(1, 100100); ANALYZE companies
                """)
            let entries = PostgresEntries(db: db)
            func total(_ filter: EntryFilter?) async throws -> Int64? {
                let query = try EntryQuery(.company, filter: filter, limit: 1, counted: true)
                return try await entries.entries(query, viewer: nil, now: .now).total
            }
            #expect(try await total(nil).map { (100_000...110_000).contains($0) } == true)
            let many = try EntryFilter.compare(.company(.name), .startsWith("Ma", ignoringCase: false))
            #expect(try await total(many) == EntryQuery.countedMax)
            #expect(try await total(.not(many)) == 30)
        }
    }

    @Test("the total of a thousand and more is a second old at most, a smaller or filtered one is of now")
    func keptTotals() async throws {
        try await withTestDatabase { db, database in
            let entries = PostgresEntries(db: db)
            let named = try EntryFilter.compare(.company(.name), .startsWith("Many", ignoringCase: false))
            let time = Date(timeIntervalSince1970: 1_000_000)
            func total(_ filter: EntryFilter? = nil, after seconds: Double) async throws -> Int64? {
                let query = try EntryQuery(.company, filter: filter, limit: 1, counted: true)
                return try await entries.entries(query, viewer: nil, now: time.addingTimeInterval(seconds)).total
            }
            func add(_ count: Int) async throws {
                try await database.run(
                    "INSERT INTO companies (name) SELECT 'Many' FROM generate_series(1, \(count))")
            }
            try await add(998)
            #expect(try await total(after: 0) == 998)
            try await add(1)
            #expect(try await total(after: 0) == 999)
            try await add(1)
            #expect(try await total(after: 0) == 1000)
            try await add(1)
            #expect(try await total(after: 0.999) == 1000)
            #expect(try await total(named, after: 0.999) == 1001)
            // A clock that was set back does not keep it for longer.
            #expect(try await total(after: -1) == 1001)
            #expect(try await total(after: 1) == 1001)
            try await add(1)
            #expect(try await total(after: 1.999) == 1001)
            #expect(try await total(after: 2) == 1002)
            try await database.run("DELETE FROM companies WHERE id % 2 = 0")
            #expect(try await total(after: 3) == 501)
            try await add(1)
            #expect(try await total(after: 3) == 502)
        }
    }

    /// 30 companies with logos, 200 postings, three applications each.
    private static let board = """
        INSERT INTO users (username, email) SELECT 'user' || i, 'user' || i || '@example.org'
          FROM generate_series(1, 50) i;
        INSERT INTO media (owner_id, kind, state, name, mime, ext, hash, bytes, sha256, storage_key)
          SELECT 1, CASE WHEN i <= 30 THEN 'logo' ELSE 'cv' END, 'ready', 'file', 'image/png', '.png', 'hash' || i, 1,
            '', 'key' || i FROM generate_series(1, 60) i;
        INSERT INTO companies (name, logo_media_id) SELECT 'Company ' || i, i FROM generate_series(1, 30) i;
        INSERT INTO job_postings (company_id, title, state, published_at)
          SELECT 1 + i % 30, 'Posting ' || i, 'published', now() FROM generate_series(1, 200) i;
        INSERT INTO company_members (company_id, user_id) VALUES (1, 1);
        INSERT INTO applications (posting_id, applicant_id, cv_media_id)
          SELECT p, 1, 31 FROM generate_series(1, 200) p;
        INSERT INTO applications (posting_id, applicant_id, cv_media_id)
          SELECT p, u, 30 + u FROM generate_series(1, 200) p, generate_series(3, 4) u
        """
}

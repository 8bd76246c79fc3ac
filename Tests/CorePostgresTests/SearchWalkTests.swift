import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// Many postings of many days: pages, plans and planning.
@Suite("Search walks")
struct SearchWalkTests {
    static let count = 4000

    /// Postings of ten years, most of the last weeks, whose words and filters follow from their numbers.
    private func fill(_ database: TestDatabase) async throws {
        try await database.run(
            """
            SELECT setseed(0.4);
            INSERT INTO companies (name) SELECT 'Company ' || i FROM generate_series(1, 40) i;
            INSERT INTO job_postings (company_id, title, description, kind, remote, place, state, published_at,
                                      valid_through)
            SELECT 1 + i % 40, (ARRAY['Engineer', 'Nurse', 'Clerk', 'Welder'])[1 + i % 4] || ' ' || (i % 97),
                   '<p>common words ' || CASE WHEN i % 50 = 0 THEN 'rarity' ELSE 'usual' END || '</p>',
                   1 + i % 3, i % 3, (ARRAY['Berlin', 'Paris', 'New York'])[1 + i % 3], 'published',
                   now() - CASE WHEN i % 3 = 0 THEN random() * 3650 ELSE random() * 40 END * interval '1 day',
                   CASE WHEN i % 20 = 0 THEN now() + interval '1 hour' END
            FROM generate_series(1, \(Self.count)) i;
            SELECT index_postings(array_agg(id)) FROM job_postings;
            """)
    }

    @Test("a walk of pages loses nothing and repeats nothing, whatever the query, the page and the facts")
    func walk() async throws {
        try await withTestDatabase { db, database in
            try await fill(database)
            let search = PostgresSearch(db: db)
            let now = Date.now.addingTimeInterval(7200)
            let cases: [(PostingSearch, String)] = [
                (try PostingSearch(q: "common"), "true"),
                (try PostingSearch(q: "engineer"), "title LIKE 'Engineer%'"),
                (
                    try PostingSearch(q: "engineer OR nurse -rarity"),
                    "title ~ '^(Engineer|Nurse)' AND description !~ 'rarity'"
                ),
                (try PostingSearch(q: "rarity"), "description ~ 'rarity'"),
                (try PostingSearch(), "true"),
                (try PostingSearch(kind: .partTime, remote: .hybrid), "kind = 2 AND remote = 1"),
                (try PostingSearch(q: "clerk", companyID: Company.ID(3)), "title LIKE 'Clerk%' AND company_id = 3"),
                (try PostingSearch(q: "common", placeName: "new york"), "place = 'New York'"),
            ]
            for facts in [false, true] {
                if facts { try await PostgresImport(db: db).finish() }
                for (asked, condition) in cases {
                    let wanted = try await database.run(
                        "SELECT id FROM job_postings WHERE (\(condition)) AND valid_through IS NULL"
                    ).compactMap { $0[0].flatMap { Int64($0) } }
                    #expect(wanted.count > 0)
                    for limit in [7, 100] where limit == 100 || wanted.count < 1200 {
                        let found = try await everything(search, asked, limit: limit, now: now)
                        #expect(
                            Set(found.map(\.id.value)) == Set(wanted),
                            "\(asked.q) \(asked.placeName), pages of \(limit), facts \(facts)")
                    }
                }
            }
        }
    }

    @Test("pages are newest windows first; within one the better comes first, then the newer id")
    func order() async throws {
        try await withTestDatabase { db, database in
            try await fill(database)
            try await PostgresImport(db: db).finish()
            let rows = try await db.long.rows(
                "SELECT score, from_day, to_day, posting_id FROM search_postings('common engineer', p_want => 2000)",
                as: {
                    (
                        try $0.get(0, as: Float.self), try $0.get(1, as: Int32.self), try $0.get(2, as: Int32.self),
                        try $0.get(3, as: Int64.self)
                    )
                })
            #expect(rows.count == Self.count / 4)
            for (one, next) in zip(rows, rows.dropFirst()) {
                let isOrdered =
                    one.1 == next.1 ? (one.0, one.3) > (next.0, next.3) : one.1 > next.2 && one.2 > next.2
                #expect(isOrdered)
            }
            #expect(Set(rows.map(\.1)).count > 1, "a common word is looked for in more than one window")
        }
    }

    @Test("a search with a word or a filter reads the index, never the whole table, and hydrates in one statement")
    func plans() async throws {
        try await withTestDatabase { db, database in
            try await fill(database)
            try await PostgresImport(db: db).finish()
            let search = PostgresSearch(db: db)
            _ = try await search.search(PostingSearch(q: "engineer"), after: nil, limit: 25, now: .now)
            let before = db.statementsExecuted
            let page = try await search.search(PostingSearch(q: "engineer"), after: nil, limit: 25, now: .now)
            #expect(page.postings.count == 25 && db.statementsExecuted - before == 1)

            let searches: [SQL] = [
                "SELECT count(*) FROM search_postings('rarity')",
                "SELECT count(*) FROM search_postings('engineer', 'paris')",
                "SELECT count(*) FROM search_postings('', p_company => 7)",
                "SELECT count(*) FROM search_postings('common')",
                "SELECT count(*) FROM search_postings('')",
                "SELECT count(*) FROM search_facets('rarity')",
            ]
            try await db.transaction { transaction in
                // With so few rows the planner may rather read them all; a million are not to be had in a test.
                try await transaction.execute("SET LOCAL enable_seqscan = off")
                for statement in searches {
                    try await transaction.execute(statement)
                    // Those of this transaction, whatever others do meanwhile.
                    let scans = try await transaction.first(
                        "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'posting_search'",
                        as: { try $0.get(0, as: Int64.self) })
                    #expect(scans == 0, "\(statement.text)")
                }
            }
        }
    }
}

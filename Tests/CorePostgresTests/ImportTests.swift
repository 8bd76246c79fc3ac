import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Importing into PostgreSQL")
struct ImportTests {
    private func posting(
        _ id: String, _ title: String, company: String = "Acme", hash: UInt8 = 1, until end: Date? = nil,
        source: String = "test"
    ) throws -> ImportedPosting {
        ImportedPosting(
            source: source, externalID: id, companyName: company,
            draft: try JobPosting.Draft(
                title: title, safeDescription: "<p>Text with a tab\tand \\ and a line\nend.</p>",
                terms: JobPosting.Terms(
                    employmentType: "Full Time", environment: "Remote", place: "Berlin",
                    coordinate: Coordinate(latitude: 52.5, longitude: 13.4),
                    salary: Salary(minimum: 1_000_000, maximum: 2_000_000, currency: "EUR", period: .year),
                    skills: ["c++", "a \"quoted\", one", "back\\slash"], applyURL: "https://example.org/apply"),
                validThrough: end),
            publishedAt: Date(timeIntervalSince1970: 1_700_000_000), contentHash: digest(hash))
    }

    @Test("a batch is stored whole, found by search, and left alone when it comes again")
    func idempotent() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let imports = PostgresImport(db: db)
            let batch = [
                try posting("1", "Baker"), try posting("2", "Painter", company: "ACME"),
                try posting("3", "Clerk", company: "Beta"),
            ]
            #expect(try await imports.store(batch) == ImportCounts(new: 3))
            #expect(try await imports.store(batch) == ImportCounts(unchanged: 3))
            #expect(try await world.strings("SELECT name FROM companies ORDER BY id") == ["Acme", "Beta"])
            let page = try await PostgresSearch(db: db).search(
                PostingSearch(q: "baker"), after: nil, limit: 10, now: .now)
            let found = try #require(page.postings.first)
            let draft = batch[0].draft
            #expect(page.postings.count == 1 && found.title == "Baker" && found.description == draft.description)
            #expect(found.terms == draft.terms && found.company.name == "Acme")
            #expect(found.publishedAt == batch[0].publishedAt)
            #expect(try await world.items() == [#"match_alerts {"posting_ids": [1, 2, 3]}"#])
        }
    }

    @Test("what has changed in the source is updated in place, in search too, and alerts hear of new ones only")
    func updates() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let imports = PostgresImport(db: db)
            _ = try await imports.store([try posting("1", "Baker"), try posting("2", "Clerk")])
            let counts = try await imports.store([
                try posting("1", "Painter", hash: 2), try posting("2", "Clerk"), try posting("3", "Welder"),
            ])
            #expect(counts == ImportCounts(new: 1, updated: 1, unchanged: 1))
            let search = PostgresSearch(db: db)
            #expect(try await everything(search, PostingSearch(q: "baker")).isEmpty)
            #expect(try await everything(search, PostingSearch(q: "painter")).count == 1)
            #expect(try await world.count("SELECT count(*) FROM job_postings") == 3)
            #expect(try await world.items().count == 2)
        }
    }

    @Test("postings past their end are stored, not found and not told of; renewed, they are found again")
    func expired() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let imports = PostgresImport(db: db)
            let search = PostgresSearch(db: db)
            #expect(try await imports.store([try posting("1", "Baker", until: .now.addingTimeInterval(-60))]).new == 1)
            #expect(try await everything(search, PostingSearch(q: "baker")).isEmpty)
            #expect(try await world.items() == [])
            #expect(try await imports.store([try posting("1", "Baker", until: future)]) == ImportCounts(updated: 1))
            #expect(try await everything(search, PostingSearch(q: "baker")).count == 1)
            // Still open: another day until which is no reason to write it again.
            let later = try posting("1", "Baker", until: future.addingTimeInterval(86_400))
            #expect(try await imports.store([later]) == ImportCounts(unchanged: 1))
        }
    }

    @Test("imports of the same postings side by side store each once")
    func sideBySide() async throws {
        try await withTestDatabase(configure: fourLeased) { db, _ in
            let world = World(db)
            let imports = PostgresImport(db: db)
            let batch = try (0..<200).map { try posting("\($0)", "Baker \($0)", company: "Company \($0 % 17)") }
            let outcomes = await atOnce(4) { number in
                try await imports.store(number.isMultiple(of: 2) ? batch : batch.reversed())
            }
            let counts: [ImportCounts] = outcomes.successes()
            #expect(counts.count == 4 && counts.reduce(0) { $0 + $1.new } == 200)
            #expect(try await world.count("SELECT count(*) FROM job_postings") == 200)
            #expect(try await world.count("SELECT count(*) FROM posting_search") == 200)
            #expect(try await world.count("SELECT count(*) FROM companies") == 17)
        }
    }

    @Test("the same id of another source is another posting, and a batch with a bad one stores none of it")
    func sources() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let imports = PostgresImport(db: db)
            _ = try await imports.store([try posting("1", "Baker"), try posting("1", "Baker", source: "other")])
            #expect(try await world.count("SELECT count(*) FROM job_postings") == 2)
            #expect(try await world.count("SELECT count(*) FROM companies") == 2)
            let nul = ImportedPosting(
                source: "test", externalID: "\0", companyName: "Acme", draft: try posting("2", "Clerk").draft,
                publishedAt: .now, contentHash: digest(1))
            await refused(.invalid) { try await imports.store([try posting("2", "Clerk"), nul]) }
            #expect(try await world.count("SELECT count(*) FROM job_postings") == 2)
        }
    }

    @Test("companies are known by source and id, and rewritten when their words change")
    func companies() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let imports = PostgresImport(db: db)
            func company(_ id: String, _ name: String, _ hash: UInt8 = 1) throws -> ImportedCompany {
                ImportedCompany(
                    source: "test", externalID: id,
                    draft: try Company.Draft(name: name, category: "remote", bio: "a\nb", website: "https://a.example"),
                    contentHash: digest(hash))
            }
            #expect(try await imports.store([try company("a", "Acme"), try company("b", "Beta")]).new == 2)
            let counts = try await imports.store([try company("a", "Acme"), try company("b", "Bravo", 2)])
            #expect(counts == ImportCounts(updated: 1, unchanged: 1))
            #expect(
                try await world.strings("SELECT name || ' ' || bio FROM companies ORDER BY id") == [
                    "Acme a\nb", "Bravo a\nb",
                ])
        }
    }
}

/// For tests that hold several transactions at once.
func fourLeased(_ configuration: inout PostgresConfiguration) { configuration.leasedMax = 4 }

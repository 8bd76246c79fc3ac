import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Companies in PostgreSQL")
struct CompaniesTests {
    @Test("the first save makes the company, the next rewrites it, and a logo stays until another comes")
    func save() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            #expect(try await world.companies.own(of: jane.id) == nil)
            let draft = try Company.Draft(
                name: "Acme", email: "jobs@acme.example", phone: "1", address: "2", category: "Finance", bio: "3",
                website: "https://acme.example")
            let company = try await world.companies.save(draft, logo: logo("a"), representative: jane.id)
            #expect(company.name == "Acme" && company.email == "jobs@acme.example" && company.bio == "3")
            #expect(company.logo?.hash == "a" && company.logo?.state == .pending && company.logo?.ownerID == jane.id)
            #expect(try await world.companies.own(of: jane.id) == company)
            #expect(try await world.find(company.id) == company)

            let renamed = try await world.company("Beta", of: jane.id)
            #expect(renamed.id == company.id && renamed.name == "Beta" && renamed.email == "" && renamed.website == "")
            #expect(renamed.logo == company.logo)

            let replaced = try await world.companies.save(
                Company.Draft(name: "Beta"), logo: logo("b"), representative: jane.id)
            #expect(replaced.logo?.hash == "b")
            #expect(try await world.count("SELECT count(*) FROM media") == 1)
            #expect(
                try await world.items() == [
                    #"process_upload {"media_id": \#(company.logo!.id)}"#,
                    #"process_upload {"media_id": \#(replaced.logo!.id)}"#, #"delete_files {"keys": ["up/a"]}"#,
                ])
            await refused(.notFound) { try await world.find(Company.ID(noSuchID)) }
            await refused(.notFound) {
                try await world.companies.save(draft, logo: nil, representative: User.ID(noSuchID))
            }
        }
    }

    @Test("first saves of one person at once make one company")
    func saveRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            let outcomes = await atOnce(20) { number in
                try await world.companies.save(
                    Company.Draft(name: "Acme \(number)"), logo: logo("l\(number)"), representative: jane.id)
            }
            #expect(Set(outcomes.successes().map(\.id)).count == 1 && outcomes.successes().count == 20)
            #expect(try await world.count("SELECT count(*) FROM companies") == 1)
            #expect(try await world.count("SELECT count(*) FROM media") == 1)
            #expect(try await world.count("SELECT count(*) FROM work_items WHERE kind = 'delete_files'") == 19)
        }
    }

    @Test("a recruiter of a company may not rewrite it")
    func recruiter() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, rob) = (try await world.user("jane"), try await world.user("rob"))
            let company = try await world.company("Acme", of: jane.id)
            _ = try await db.write.execute(
                """
                INSERT INTO company_members (company_id, user_id, role)
                VALUES (\(company.id), \(rob.id), 'recruiter')
                """)
            #expect(try await world.companies.own(of: rob.id) == company)
            await refused(.forbidden) {
                try await world.companies.save(Company.Draft(name: "Mine"), logo: logo("x"), representative: rob.id)
            }
            #expect(try await world.find(company.id).name == "Acme")
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
        }
    }

    @Test("a new name of a company is what its postings are found by")
    func reindexed() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            let posting = try await world.posting("Engineer", by: jane.id)
            func found(_ name: String) async throws -> Int {
                try await world.count(
                    """
                    SELECT count(*) FROM posting_search
                    WHERE posting_id = \(posting.id) AND tsv @@ search_query(\(name))
                    """)
            }
            #expect(try await found("acme") == 1)
            _ = try await world.companies.save(Company.Draft(name: "Zebra"), logo: nil, representative: jane.id)
            #expect(try await found("zebra") == 1)
            #expect(try await found("acme") == 0)
        }
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Postings in PostgreSQL")
struct PostingsTests {
    @Test("a posting is stored as drafted, indexed, recorded, and told to the alerts, in one transaction")
    func create() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let company = try await world.company("Acme", of: jane.id)
            let terms = try JobPosting.Terms(
                employmentType: "Long Term", environment: "Half Remote", place: "Berlin",
                coordinate: Coordinate(latitude: 52.52, longitude: 13.405),
                salary: Salary(minimum: 5_000_000, maximum: 7_000_000, currency: "EUR", period: .year),
                skills: ["Swift", "C++", #"a "quoted", \ one"#], applyURL: "https://acme.example/apply")
            let draft = try JobPosting.Draft(
                title: "Engineer", safeDescription: "<p>Build things.</p>", terms: terms, validThrough: future)
            let posting = try await world.postings.create(draft, author: jane.id)
            #expect(posting.company == company && posting.title == "Engineer" && posting.terms == terms)
            #expect(posting.description == "<p>Build things.</p>" && posting.state == .published)
            #expect(posting.validThrough == future && posting.publishedAt != nil)
            #expect(try await world.find(posting.id, viewer: nil) == posting)

            #expect(try await world.items() == [#"match_alerts {"posting_id": \#(posting.id)}"#])
            #expect(try await world.count("SELECT count(*) FROM posting_search WHERE posting_id = \(posting.id)") == 1)
            let log = try await world.strings("SELECT action FROM audit_log WHERE subject = 'posting'")
            #expect(log == ["posting.create"])
            #expect(try await world.count("SELECT kind + remote FROM job_postings") == 7)
        }
    }

    @Test("without a company there is nothing to post for, and nothing is written")
    func noCompany() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            await refused(.forbidden) { try await world.posting("Engineer", by: jane.id) }
            await refused(.forbidden) { try await world.posting("Engineer", by: User.ID(noSuchID)) }
            #expect(try await world.count("SELECT count(*) FROM job_postings") == 0)
            #expect(try await world.items() == [])
        }
    }

    @Test("alerts hear of a posting each time it opens, and never while it does not")
    func opening() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            let posting = try await world.posting("Engineer", by: jane.id, state: .draft)
            #expect(posting.publishedAt == nil)
            func move(_ state: JobPosting.State, until end: Date? = nil) async throws -> (items: Int, indexed: Int) {
                _ = try await world.postings.update(posting.id, editor: jane.id) { present throws(AppError) in
                    try JobPosting.Draft(
                        title: present.title, safeDescription: present.description, terms: present.terms, state: state,
                        validThrough: end)
                }
                return (
                    try await world.count("SELECT count(*) FROM work_items"),
                    try await world.count("SELECT count(*) FROM posting_search")
                )
            }
            let past = Date.now.addingTimeInterval(-60)
            #expect(try await move(.draft) == (0, 0))
            #expect(try await move(.published, until: past) == (0, 0))
            #expect(try await move(.published) == (1, 1))
            let first = try await world.find(posting.id, viewer: nil).publishedAt
            #expect(try await move(.published) == (1, 1))
            #expect(try await move(.closed) == (1, 0))
            #expect(try await move(.published, until: future) == (2, 1))
            #expect(try await world.find(posting.id, viewer: nil).publishedAt == first)
        }
    }

    @Test("drafts are seen by members of the company only; closed and expired postings by everyone")
    func visibility() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, stranger) = (try await world.user("jane"), try await world.user("stranger"))
            _ = try await world.company("Acme", of: jane.id)
            _ = try await world.company("Other", of: stranger.id)
            let draft = try await world.posting("Draft", by: jane.id, state: .draft)
            #expect(try await world.find(draft.id, viewer: jane.id) == draft)
            await refused(.notFound) { try await world.find(draft.id, viewer: nil) }
            await refused(.notFound) { try await world.find(draft.id, viewer: stranger.id) }
            await refused(.notFound) { try await world.find(JobPosting.ID(noSuchID), viewer: jane.id) }
            let closed = try await world.posting("Closed", by: jane.id, state: .closed)
            let expired = try await world.posting("Expired", by: jane.id, until: Date(timeIntervalSince1970: 0))
            for posting in [closed, expired] {
                #expect(try await world.find(posting.id, viewer: nil) == posting)
            }
        }
    }

    @Test("nobody but members of its company changes or deletes a posting")
    func foreign() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, stranger, nobody) = (
                try await world.user("jane"), try await world.user("stranger"), try await world.user("nobody")
            )
            _ = try await world.company("Acme", of: jane.id)
            _ = try await world.company("Other", of: stranger.id)
            let posting = try await world.posting("Engineer", by: jane.id)
            for editor in [stranger.id, nobody.id, User.ID(noSuchID)] {
                await refused(.notFound) {
                    try await world.postings.update(posting.id, editor: editor) { _ throws(AppError) in
                        Issue.record("shown to a stranger")
                        throw .notFound
                    }
                }
                await refused(.notFound) { try await world.postings.delete(posting.id, editor: editor) }
            }
            await refused(.notFound) { try await world.postings.delete(JobPosting.ID(noSuchID), editor: jane.id) }
            // What the edit throws comes out, and nothing is changed.
            await refused(.tooMany) {
                try await world.postings.update(posting.id, editor: jane.id) { _ throws(AppError) in
                    throw AppError(.tooMany, "")
                }
            }
            #expect(try await world.find(posting.id, viewer: nil) == posting)
        }
    }

    @Test("changes of one posting at once are made one after the other, each on what the one before left")
    func updateRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            let posting = try await world.posting("0", by: jane.id)
            let outcomes = await atOnce(20) { _ in
                try await world.postings.update(posting.id, editor: jane.id) { present throws(AppError) in
                    try JobPosting.Draft(
                        title: String(Int(present.title)! + 1), safeDescription: "", terms: present.terms)
                }
            }
            #expect(outcomes.successes().count == 20)
            #expect(try await world.find(posting.id, viewer: nil).title == "20")
        }
    }
}

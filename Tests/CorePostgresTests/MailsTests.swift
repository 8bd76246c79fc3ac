import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite struct MailsTests {
    struct Told {
        let alert: JobAlert
        let posting: JobPosting
        let mail: Mail.ID
    }

    /// ann is told by one instant mail of one posting.
    func tell(_ db: Database, _ search: PostingSearch, terms: JobPosting.Terms) async throws -> Told {
        let world = World(db)
        let company = try await world.user("company").id
        _ = try await world.company("ACME", of: company)
        let alerts = PostgresAlerts(db: db, mailDomain: "jobs.example.org")
        let draft = try JobAlert.Draft(name: "Mine", search: search, cadence: .instant)
        let alert = try await alerts.create(draft, owner: world.user("ann").id)
        let posting = try await world.postings.create(
            JobPosting.Draft(title: "Senior Swift Engineer", safeDescription: "<p>Linux</p>", terms: terms),
            author: company)
        #expect(try await alerts.match([posting.id], now: .now) == 1)
        return Told(alert: alert, posting: posting, mail: .init(Int64(try await world.count("SELECT id FROM mails"))))
    }

    func state(_ db: Database) async throws -> String? {
        try await db.write.first("SELECT state FROM mails") { try $0.get(0, as: String.self) }
    }

    @Test("a mail says what matched and why, with a Message-ID that stays; sent, it is taken no more")
    func take() async throws {
        try await withTestDatabase { db in
            let place = try PostingSearch.Place(center: Coordinate(latitude: 52.52, longitude: 13.4), radiusKm: 50)
            let terms = try JobPosting.Terms(
                place: "Potsdam", coordinate: Coordinate(latitude: 52.39, longitude: 13.06), skills: ["C++"])
            let told = try await tell(db, PostingSearch(q: "\"swift engineer\" C++ -php", place: place), terms: terms)
            let mails = PostgresMails(db: db)
            let mail = try #require(try await mails.take(told.mail))
            #expect(mail.to == "ann@example.org" && mail.kind == "alert_instant" && mail.alertID == told.alert.id)
            #expect(mail.messageID.hasSuffix("@jobs.example.org"))
            #expect(mail.subjectLine == "Senior Swift Engineer at ACME")
            #expect(
                mail.items == [
                    MailItem(
                        postingID: told.posting.id, title: "Senior Swift Engineer", company: "ACME", place: "Potsdam",
                        reason: "it has “swift engineer”, “C++”; 27 km from your place (within 50 km)")
                ])
            #expect(try await mails.take(told.mail) == mail)
            try await mails.markSent(told.mail)
            #expect(try await mails.take(told.mail) == nil)
            #expect(try await state(db) == "sent")
            #expect(try await mails.take(.init(noSuchID)) == nil)
        }
    }

    @Test(
        "what ended between the match and the sending is not sent",
        arguments: [
            "UPDATE job_alerts SET state = 'unsubscribed'", "UPDATE users SET blocked = true",
            "UPDATE posting_search SET expires_at = now()", "DELETE FROM job_postings",
        ])
    func dropped(change: String) async throws {
        try await withTestDatabase { db, test in
            let told = try await tell(db, PostingSearch(q: "swift"), terms: JobPosting.Terms())
            try await test.run(change)
            #expect(try await PostgresMails(db: db).take(told.mail) == nil)
            #expect(try await state(db) == "dropped")
        }
    }

    @Test("an address that was refused for good gets nothing more")
    func suppressed() async throws {
        try await withTestDatabase { db in
            let told = try await tell(db, PostingSearch(q: "swift"), terms: JobPosting.Terms())
            let mails = PostgresMails(db: db)
            let long = String(repeating: "x\0", count: 1000)
            try await mails.suppress("ann@example.org", reason: long)
            try await mails.suppress("ann@example.org", reason: "again")
            #expect(try await mails.take(told.mail) == nil)
            #expect(try await state(db) == "suppressed")
        }
    }

    @Test("a mail shows so many postings and counts the others; a subject has its length")
    func many() async throws {
        try await withTestDatabase { db in
            let told = try await tell(db, PostingSearch(q: "swift"), terms: JobPosting.Terms())
            let world = World(db)
            let author = try #require(try await world.users.findForSignIn(identifier: "company")).user.id
            for number in 0..<54 { _ = try await world.posting("Swift \(number)", by: author) }
            try await db.write.execute("UPDATE mails SET posting_ids = ARRAY(SELECT id FROM job_postings ORDER BY id)")
            let mail = try #require(try await PostgresMails(db: db).take(told.mail))
            #expect(mail.items.count == PostgresMails.itemsMax)
            #expect(mail.moreItems == 5)
            #expect(mail.subjectLine == "55 new postings for “Mine”")
            let subject = PostgresMails.subject(alert: String(repeating: "n", count: 300), items: [], total: 9)
            #expect(subject.count == PostgresMails.subjectLengthMax)
        }
    }

    @Test("pruning takes what has had its time and leaves the rest")
    func prune() async throws {
        try await withTestDatabase { db in
            let told = try await tell(db, PostingSearch(q: "swift"), terms: JobPosting.Terms())
            let upkeep = PostgresUpkeep(db: db)
            try await PostgresMails(db: db).markSent(told.mail)
            #expect(try await upkeep.prune(now: .now).values.reduce(0, +) == 0)
            try await PostgresAlerts(db: db).delete(told.alert.id, owner: told.alert.ownerID)
            #expect(try await upkeep.prune(now: .now)["alert_groups"] == 1)
            #expect(try await World(db).count("SELECT count(*) FROM alert_anchors") == 0)
        }
    }
}

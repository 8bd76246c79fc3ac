import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite struct DigestsTests {
    /// The next digests after a time, one after the other.
    func digests(
        _ db: Database, _ cadence: JobAlert.Cadence, _ zone: String, after: Date, count: Int
    ) async throws -> [Date] {
        var times = [after]
        for _ in 0..<count {
            let next = try await db.write.first(
                "SELECT next_digest_at(\(cadence.rawValue), \(zone), \(times[times.count - 1]))"
            ) { try $0.get(0, as: Date.self) }
            times.append(try #require(next))
        }
        return Array(times.dropFirst())
    }

    func date(_ text: String) -> Date { try! Date(text, strategy: .iso8601) }

    @Test(
        "a daily digest is due at eight o'clock of every local day, across both clock changes",
        arguments: [
            "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "UTC",
        ])
    func daily(zone: String) async throws {
        try await withTestDatabase { db in
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = try #require(TimeZone(identifier: zone))
            for start in ["2026-10-20T00:00:00Z", "2027-03-20T00:00:00Z"] {
                let times = try await digests(db, .daily, zone, after: date(start), count: 15)
                for time in times {
                    let parts = calendar.dateComponents([.hour, .minute, .second], from: time)
                    #expect([parts.hour, parts.minute, parts.second] == [8, 0, 0])
                }
                let days = times.map { calendar.startOfDay(for: $0) }
                for (day, next) in zip(days, days.dropFirst()) {
                    #expect(calendar.dateComponents([.day], from: day, to: next).day == 1)
                }
            }
        }
    }

    @Test("a day that a place never had is passed over; a weekly digest is Monday's; a zone nobody knows is UTC")
    func oddTimes() async throws {
        try await withTestDatabase { db in
            // Samoa went from 29 to 31 December 2011.
            let apia = try await digests(db, .daily, "Pacific/Apia", after: date("2011-12-29T17:00:00Z"), count: 3)
            #expect(apia[0] == date("2011-12-29T18:00:00Z"))
            #expect(apia[1] == date("2011-12-30T18:00:00Z"))
            #expect(apia[2] == date("2011-12-31T18:00:00Z"))
            let weekly = try await digests(
                db, .weekly, "Europe/Berlin", after: date("2026-10-19T06:00:00Z"), count: 3)
            #expect(
                weekly == [
                    date("2026-10-26T07:00:00Z"), date("2026-11-02T07:00:00Z"), date("2026-11-09T07:00:00Z"),
                ])
            let unknown = try await digests(db, .daily, "Mars/Olympus", after: date("2026-01-01T08:00:00Z"), count: 1)
            #expect(unknown == [date("2026-01-02T08:00:00Z")])
        }
    }

    /// ann in Berlin with one daily alert and two postings that wait for its digest.
    func prepare(_ db: Database, _ cadence: JobAlert.Cadence = .daily) async throws -> (JobAlert, [JobPosting]) {
        let world = World(db)
        let ann = try await world.user("ann")
        try await db.write.execute("UPDATE users SET time_zone = 'Europe/Berlin' WHERE id = \(ann.id)")
        let company = try await world.user("company").id
        _ = try await world.company("ACME", of: company)
        let alerts = PostgresAlerts(db: db)
        let draft = try JobAlert.Draft(name: "Swift", search: PostingSearch(q: "swift"), cadence: cadence)
        let alert = try await alerts.create(draft, owner: ann.id)
        var postings: [JobPosting] = []
        for title in ["Swift Engineer", "Swift Lead"] { postings.append(try await world.posting(title, by: company)) }
        #expect(try await alerts.match(postings.map(\.id), now: .now) == 2)
        try await db.write.execute("DELETE FROM work_items")
        return (alert, postings)
    }

    func nextDigest(_ db: Database) async throws -> Date {
        try #require(try await db.write.first("SELECT next_digest_at FROM job_alerts") { try $0.get(0, as: Date.self) })
    }

    @Test("a digest is one mail with all that is new, once, however many nodes collect and however often")
    func once() async throws {
        try await withTestDatabase { db in
            let (_, postings) = try await prepare(db)
            let alerts = PostgresAlerts(db: db)
            let due = try await nextDigest(db)
            #expect(try await !alerts.digestsDue(now: due.addingTimeInterval(-1)))
            #expect(try await alerts.collectDigests(now: due.addingTimeInterval(-1), limit: 10) == 0)
            #expect(try await alerts.digestsDue(now: due))
            let mails = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await alerts.collectDigests(now: due, limit: 10) } }
                return try await group.reduce(0, +)
            }
            #expect(mails == 1)
            #expect(try await !alerts.digestsDue(now: due))
            #expect(try await alerts.collectDigests(now: due.addingTimeInterval(5), limit: 10) == 0)
            let ids = try await db.write.first("SELECT posting_ids FROM mails") { try $0.get(0, as: [Int64].self) }
            #expect(Set(ids ?? []) == Set(postings.map(\.id.value)))
            #expect(try await World(db).items().count == 1)
            // The next day there is nothing new, so no mail.
            let next = try await nextDigest(db)
            #expect(next.timeIntervalSince(due) >= 23 * 3600)
            #expect(try await alerts.collectDigests(now: next, limit: 10) == 0)
            #expect(try await nextDigest(db) > next)
        }
    }

    @Test("what has expired or was closed by then is left out, and an empty digest is no mail")
    func expired() async throws {
        try await withTestDatabase { db in
            let (_, postings) = try await prepare(db)
            let alerts = PostgresAlerts(db: db)
            for posting in postings {
                try await db.transaction { transaction in
                    try await transaction.execute(
                        "UPDATE job_postings SET state = 'closed' WHERE id = \(posting.id)")
                    try await transaction.execute("SELECT index_posting(\(posting.id))")
                }
            }
            #expect(try await alerts.collectDigests(now: nextDigest(db), limit: 10) == 0)
            #expect(try await World(db).count("SELECT count(*) FROM alert_deliveries WHERE pending") == 0)
        }
    }

    @Test("a person who moves gets the next digest at eight o'clock there; the blocked get none")
    func moves() async throws {
        try await withTestDatabase { db in
            _ = try await prepare(db)
            let alerts = PostgresAlerts(db: db)
            try await db.write.execute("UPDATE users SET time_zone = 'Asia/Kathmandu' WHERE username = 'ann'")
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = try #require(TimeZone(identifier: "Asia/Kathmandu"))
            let due = try await nextDigest(db)
            #expect(calendar.component(.hour, from: due) == 8 && calendar.component(.minute, from: due) == 0)
            try await db.write.execute("UPDATE users SET blocked = true WHERE username = 'ann'")
            #expect(try await alerts.collectDigests(now: due, limit: 10) == 0)
            #expect(try await World(db).count("SELECT count(*) FROM mails") == 0)
        }
    }
}

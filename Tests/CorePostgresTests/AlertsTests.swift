import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite struct AlertsTests {
    func draft(_ search: PostingSearch, name: String = "mine", _ cadence: JobAlert.Cadence = .instant) throws
        -> JobAlert.Draft
    {
        try JobAlert.Draft(name: name, search: search, cadence: cadence)
    }

    let berlin = try! PostingSearch.Place(center: Coordinate(latitude: 52.52, longitude: 13.4), radiusKm: 40)

    @Test("an alert is found as it was saved, by its owner only, and deleted once")
    func crud() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (ann, bob) = (try await world.user("ann").id, try await world.user("bob").id)
            let alerts = PostgresAlerts(db: db)
            let search = try PostingSearch(
                q: "swift -php", kind: .fullTime, remote: .hybrid, salaryAtLeast: 50_000, companyID: .init(3),
                place: berlin)
            let alert = try await alerts.create(draft(search, .weekly), owner: ann)
            #expect(alert.search == search && alert.name == "mine" && alert.cadence == .weekly)
            #expect(alert.state == .active && alert.ownerID == ann)
            #expect(try await alerts.find(alert.id, owner: ann) == alert)
            #expect(try await alerts.list(owner: ann) == [alert])
            #expect(try await alerts.list(owner: bob).isEmpty)
            for attempt in [
                { try await _ = alerts.find(alert.id, owner: bob) }, { try await alerts.delete(alert.id, owner: bob) },
                { try await _ = alerts.find(.init(noSuchID), owner: ann) },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: AppError.self) { try await attempt() }
                #expect(error?.code == .notFound)
            }
            try await alerts.delete(alert.id, owner: ann)
            let error = await #expect(throws: AppError.self) { try await alerts.delete(alert.id, owner: ann) }
            #expect(error?.code == .notFound)
        }
    }

    @Test("the same search again is a conflict for the same person, however its words stand; another's is not")
    func sameSearch() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (ann, bob) = (try await world.user("ann").id, try await world.user("bob").id)
            let alerts = PostgresAlerts(db: db)
            let first = try await alerts.create(draft(PostingSearch(q: "swift linux")), owner: ann)
            for same in ["swift linux", "Linux SWIFT", "linux, swift"] {
                let error = await #expect(throws: AppError.self) {
                    try await alerts.create(draft(PostingSearch(q: same), .daily), owner: ann)
                }
                #expect(error?.code == .conflict)
            }
            #expect(try await alerts.find(first.id, owner: ann) == first)
            _ = try await alerts.create(draft(PostingSearch(q: "swift -linux")), owner: ann)
            _ = try await alerts.create(draft(PostingSearch(q: "swift linux", kind: .contract)), owner: ann)
            _ = try await alerts.create(draft(PostingSearch(q: "swift linux")), owner: bob)
            #expect(try await world.count("SELECT count(*) FROM alert_groups") == 3)
        }
    }

    @Test("a search that nothing anchors is refused; one word, a place, a company or remoteness is enough")
    func anchors() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let ann = try await world.user("ann").id
            let alerts = PostgresAlerts(db: db)
            let refused = try [
                PostingSearch(), PostingSearch(kind: .fullTime), PostingSearch(salaryAtLeast: 50_000),
                PostingSearch(q: "-php"), PostingSearch(q: "the"), PostingSearch(q: "-php", place: berlin),
                PostingSearch(q: "...", kind: .contract), PostingSearch(placeName: "..."),
            ]
            for search in refused {
                let error = await #expect(throws: AppError.self) {
                    try await alerts.create(draft(search), owner: ann)
                }
                #expect(error?.code == .invalid)
                #expect(error?.issues.first?.path == ["q"])
            }
            let accepted = try [
                PostingSearch(q: "swift"), PostingSearch(place: berlin), PostingSearch(remote: .onSite),
                PostingSearch(companyID: .init(3)), PostingSearch(placeName: "Berlin"),
            ]
            for search in accepted { _ = try await alerts.create(draft(search), owner: ann) }
            #expect(try await world.count("SELECT count(*) FROM job_alerts") == 5)
        }
    }

    @Test("a person has so many alerts and no more, also when asking for many at once")
    func perUserMax() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let ann = try await world.user("ann").id
            let alerts = PostgresAlerts(db: db)
            let outcomes = await withTaskGroup(of: AppError.Code?.self) { group in
                for number in 0..<(JobAlert.perUserMax + 10) {
                    group.addTask {
                        do {
                            _ = try await alerts.create(
                                try draft(PostingSearch(q: "word\(number)")), owner: ann)
                            return nil
                        } catch { return (error as? AppError)?.code ?? .unavailable }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.filter { $0 == nil }.count == JobAlert.perUserMax)
            #expect(outcomes.filter { $0 == .tooMany }.count == 10)
        }
    }

    @Test("unsubscribing works twice and for what is gone; the same search comes back and keeps its ledger")
    func unsubscribe() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let ann = try await world.user("ann").id
            let company = try await world.user("company").id
            _ = try await world.company("ACME", of: company)
            let alerts = PostgresAlerts(db: db)
            let alert = try await alerts.create(draft(PostingSearch(q: "swift"), name: "Swift work"), owner: ann)
            let posting = try await world.posting("Swift Engineer", by: company)
            #expect(try await alerts.match([posting.id], now: .now) == 1)
            let described = try await alerts.describe(alert.id)
            #expect(described.name == "Swift work" && described.email == "ann@example.org")

            try await alerts.unsubscribe(alert.id)
            try await alerts.unsubscribe(alert.id)
            try await alerts.unsubscribe(.init(noSuchID))
            #expect(try await alerts.find(alert.id, owner: ann).state == .unsubscribed)
            let second = try await world.posting("Swift Lead", by: company)
            #expect(try await alerts.match([posting.id, second.id], now: .now) == 0)

            let back = try await alerts.create(draft(PostingSearch(q: "swift"), .daily), owner: ann)
            #expect(back.id == alert.id && back.state == .active && back.cadence == .daily)
            #expect(try await alerts.match([posting.id, second.id], now: .now) == 1)
            try await alerts.delete(alert.id, owner: ann)
            #expect(try await world.count("SELECT count(*) FROM alert_deliveries") == 0)
            let error = await #expect(throws: AppError.self) { try await alerts.describe(alert.id) }
            #expect(error?.code == .notFound)
        }
    }

    @Test("a match writes ledger, mail and work item once, however often it is repeated and by how many")
    func matchOnce() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let ann = try await world.user("ann").id
            let company = try await world.user("company").id
            _ = try await world.company("ACME", of: company)
            let alerts = PostgresAlerts(db: db)
            _ = try await alerts.create(draft(PostingSearch(q: "swift")), owner: ann)
            _ = try await alerts.create(draft(PostingSearch(q: "engineer OR baker"), .daily), owner: ann)
            _ = try await alerts.create(draft(PostingSearch(q: "php")), owner: ann)
            let posting = try await world.posting("Swift Engineer", by: company)
            try await db.write.execute("DELETE FROM work_items")
            let rows = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await alerts.match([posting.id], now: .now) } }
                return try await group.reduce(0, +)
            }
            #expect(rows == 2)
            #expect(try await world.count("SELECT count(*) FROM alert_deliveries WHERE pending") == 1)
            #expect(try await world.count("SELECT count(*) FROM mails") == 1)
            let mail = try await world.count("SELECT id FROM mails")
            #expect(try await world.items() == [#"send_mail {"mail_id": \#(mail)}"#])
        }
    }

    @Test("drafts, closed and expired postings are told to nobody; nor is anything to the blocked or refused")
    func notDelivered() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let company = try await world.user("company").id
            _ = try await world.company("ACME", of: company)
            let alerts = PostgresAlerts(db: db)
            for name in ["ann", "blocked", "refused", "unconfirmed"] {
                _ = try await alerts.create(draft(PostingSearch(q: "swift")), owner: world.user(name).id)
            }
            try await db.write.execute("UPDATE users SET blocked = true WHERE username = 'blocked'")
            try await db.write.execute("UPDATE users SET confirmed = false WHERE username = 'unconfirmed'")
            try await PostgresMails(db: db).suppress("refused@example.org", reason: "550")
            let end = Date(timeIntervalSinceNow: 3600)
            let open = try await world.posting("Swift one", by: company, until: end)
            let hidden = try await world.posting("Swift two", by: company, state: .draft)
            let closed = try await world.posting("Swift three", by: company, state: .closed)
            let ids = [open.id, hidden.id, closed.id]
            // In the very second, by the clock of the caller.
            #expect(try await alerts.match(ids, now: end) == 0)
            #expect(try await alerts.match(ids, now: end.addingTimeInterval(-1)) == 1)
            let told = try await world.strings("SELECT u.email FROM mails m JOIN users u ON u.id = m.user_id")
            #expect(told == ["ann@example.org"])
        }
    }
}

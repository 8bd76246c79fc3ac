import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

/// Search and alerts are one matcher: what a search finds is what its alert would have told, and nothing else.
@Suite struct AlertAgreementTests {
    static let words = [
        "Swift", "C", "C++", "C#", ".NET", "Node.js", "nurse", "engineer", "senior", "Go", "data entry", "R&D",
        "driver",
    ]
    static let places: [(String, Float, Float)] = [
        ("Berlin, Germany", 52.52, 13.40), ("Potsdam", 52.39, 13.06), ("Washington, DC", 38.90, -77.03),
        ("Suva, Fiji", -18.14, 178.44), ("Apia", -13.83, -171.76), ("Longyearbyen", 78.22, 15.65),
        ("New York", 40.7, -74),
    ]

    struct Lot {
        var generator = SystemRandomNumberGenerator()
        mutating func one<T>(of values: [T]) -> T { values[Int.random(in: 0..<values.count, using: &generator)] }
        mutating func maybe(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &generator) < share }

        mutating func terms() throws -> JobPosting.Terms {
            let place = one(of: AlertAgreementTests.places)
            let isPlaced = maybe(0.8)
            let maximum = Int64.random(in: 1_000_000...15_000_000)
            let salary =
                maybe(0.5)
                ? try Salary(minimum: 1_000_000, maximum: maximum, currency: "EUR", period: .year) : nil
            return try JobPosting.Terms(
                employmentType: one(of: ["Full Time", "Contract", ""]), environment: one(of: ["remote", "hybrid", ""]),
                place: maybe(0.9) ? place.0 : "",
                coordinate: isPlaced ? near(place.1, place.2) : nil,
                salary: salary, skills: maybe(0.5) ? [one(of: AlertAgreementTests.words)] : [])
        }

        func near(_ latitude: Float, _ longitude: Float) throws -> Coordinate {
            try Coordinate(
                latitude: latitude + Float.random(in: -0.3...0.3), longitude: longitude + Float.random(in: -0.3...0.3))
        }

        mutating func query() -> String {
            switch Int.random(in: 0..<7) {
            case 0: one(of: AlertAgreementTests.words) + " " + one(of: AlertAgreementTests.words)
            case 1: one(of: AlertAgreementTests.words) + " OR " + one(of: AlertAgreementTests.words)
            case 2: one(of: AlertAgreementTests.words) + " -" + one(of: AlertAgreementTests.words)
            case 3: "\"senior engineer\""
            case 4, 5: one(of: AlertAgreementTests.words)
            default: ""
            }
        }

        mutating func search(companies: [Company.ID]) throws -> PostingSearch {
            let near = one(of: AlertAgreementTests.places)
            let place = try PostingSearch.Place(
                center: Coordinate(latitude: near.1, longitude: near.2), radiusKm: one(of: [5, 40, 300, 500]))
            let isRound = maybe(0.4)
            return try PostingSearch(
                q: query(), kind: maybe(0.2) ? one(of: [.fullTime, .contract, .other]) : nil,
                remote: maybe(0.25) ? one(of: Remoteness.allCases) : nil,
                salaryAtLeast: maybe(0.2) ? one(of: [0, 5_000, 30_000, 90_000]) : nil,
                companyID: maybe(0.2) ? one(of: companies) : nil,
                placeName: !isRound && maybe(0.3) ? one(of: ["Berlin", "new york", "washington dc", "DC"]) : "",
                place: isRound ? place : nil)
        }
    }

    @Test("alerts tell what their searches find, pair by pair")
    func agreement() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let alerts = PostgresAlerts(db: db)
            var lot = Lot()
            var companies: [Company.ID] = []
            var authors: [User.ID] = []
            for number in 0..<3 {
                authors.append(try await world.user("author\(number)").id)
                companies.append(try await world.company("Company \(number)", of: authors[number]).id)
            }
            var postings: [JobPosting.ID] = []
            for _ in 0..<220 {
                let title = (0..<2).map { _ in lot.one(of: Self.words) }.joined(separator: " ")
                let text = (0..<4).map { _ in lot.one(of: Self.words) }.joined(separator: " ")
                let draft = try JobPosting.Draft(title: title, safeDescription: "<p>\(text)</p>", terms: lot.terms())
                postings.append(try await world.postings.create(draft, author: lot.one(of: authors)).id)
                // Facts only steer where a search is anchored: both ways must match the same.
                if postings.count == 100 { try await PostgresUpkeep(db: db).refreshSearchFacts() }
            }
            var saved: [JobAlert] = []
            for number in 0..<8 {
                let owner = try await world.user("owner\(number)").id
                for _ in 0..<40 {
                    let draft = try JobAlert.Draft(name: "a", search: lot.search(companies: companies), cadence: .daily)
                    do { saved.append(try await alerts.create(draft, owner: owner)) } catch let error as AppError {
                        #expect(error.code == .conflict || error.code == .invalid)
                    }
                }
            }
            #expect(saved.count > 150)
            let now = Date.now
            for start in stride(from: 0, to: postings.count, by: 60) {
                _ = try await alerts.match(Array(postings[start..<min(start + 60, postings.count)]), now: now)
            }
            var told: [JobAlert.ID: Set<JobPosting.ID>] = [:]
            for (alert, posting) in try await db.write.rows(
                "SELECT alert_id, posting_id FROM alert_deliveries",
                as: { (try $0.get(0, as: JobAlert.ID.self), try $0.get(1, as: JobPosting.ID.self)) })
            {
                told[alert, default: []].insert(posting)
            }
            var pairs = 0
            for alert in saved {
                let found = try await everything(alert.search, db: db, now: now)
                pairs += found.count
                #expect(told[alert.id] ?? [] == found, "\(alert.search)")
            }
            #expect(pairs > 500)
        }
    }

    private func everything(_ search: PostingSearch, db: Database, now: Date) async throws -> Set<JobPosting.ID> {
        let repository = PostgresSearch(db: db)
        var found: Set<JobPosting.ID> = []
        var cursor: PostingSearch.Cursor?
        repeat {
            let page = try await repository.search(search, after: cursor, limit: 100, now: now)
            found.formUnion(page.postings.map(\.id))
            cursor = page.next
        } while cursor != nil
        return found
    }
}

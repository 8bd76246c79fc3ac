import Core
import Foundation
import Testing

@Suite("Postings")
struct PostingTests {
    @Test("a published posting is expired from the second its end is reached")
    func standing() {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        func standing(_ state: JobPosting.State, _ end: Date?) -> JobPosting.Standing {
            JobPosting.standing(state, validThrough: end, at: now)
        }
        #expect(standing(.published, nil) == .published)
        #expect(standing(.published, now.addingTimeInterval(1)) == .published)
        #expect(standing(.published, now) == .expired)
        #expect(standing(.closed, now.addingTimeInterval(-1)) == .closed)
        #expect(standing(.draft, now.addingTimeInterval(-1)) == .draft)
    }

    @Test("the words of clients and sources are understood")
    func words() {
        for (text, kind) in [
            ("Full Time", EmploymentKind.fullTime), ("FULL_TIME", .fullTime), ("Contractor", .contract),
            ("Consultancy", .consultancy), ("Internship", .internship), ("Long Term", .longTerm),
            ("Short Term", .shortTerm), ("part-time", .partTime), ("", .other), ("Something else", .other),
        ] { #expect(EmploymentKind(text: text) == kind, "\(text)") }
        for (text, remote) in [
            ("Remote", Remoteness.remote), ("Half Remote", .hybrid), ("Semi-remote", .hybrid), ("On site", .onSite),
            ("In-Office", .onSite), ("", .onSite),
        ] { #expect(Remoteness(text: text) == remote, "\(text)") }
    }

    @Test("a salary has an order, a currency and a period")
    func salaries() throws {
        let salary = try Salary(minimum: 5_000_000, maximum: 7_500_000, currency: "EUR", period: .year)
        #expect(salary.yearlyMaximum == 75_000)
        #expect(try Salary(minimum: 2550, maximum: nil, currency: "USD", period: .hour).yearlyMaximum == 52_000)
        let most = Salary.amountMax
        #expect(try Salary(minimum: nil, maximum: most, currency: "JPY", period: .hour).yearlyMaximum == .max)
        #expect(refusal { try Salary(minimum: 2, maximum: 1, currency: "EUR", period: .year) } != nil)
        #expect(refusal { try Salary(minimum: -1, maximum: 1, currency: "EUR", period: .year) } != nil)
        #expect(refusal { try Salary(minimum: nil, maximum: most + 1, currency: "EUR", period: .year) } != nil)
        for currency in ["eur", "EURO", "€", "", "E R"] {
            let error = refusal { try Salary(minimum: 1, maximum: 2, currency: currency, period: .year) }
            #expect(error?.issues.first?.path == ["salary", "currency"])
        }
    }

    @Test("coordinates are on the globe")
    func coordinates() throws {
        _ = try Coordinate(latitude: -90, longitude: 180)
        for (latitude, longitude) in [(90.1, 0), (0, -180.1), (Float.nan, 0), (0, .infinity)] as [(Float, Float)] {
            #expect(refusal { try Coordinate(latitude: latitude, longitude: longitude) }?.code == .invalid)
        }
    }

    @Test("terms and drafts refuse what the schema would")
    func drafts() throws {
        let terms = try JobPosting.Terms(
            employmentType: "Long Term", environment: "Half Remote", skills: [" Swift ", "C++"],
            applyURL: "https://example.org/apply")
        #expect(terms.kind == .longTerm && terms.remote == .hybrid && terms.skills == ["Swift", "C++"])
        #expect(refusal { try JobPosting.Terms(skills: Array(repeating: "a", count: 51)) } != nil)
        #expect(refusal { try JobPosting.Terms(skills: [""]) }?.issues.first?.path == ["skills"])
        #expect(refusal { try JobPosting.Terms(skills: [String(repeating: "a", count: 81)]) } != nil)
        #expect(refusal { try JobPosting.Terms(applyURL: "javascript:alert(1)") } != nil)
        #expect(
            refusal { try JobPosting.Draft(title: "", safeDescription: "", terms: terms) }?.message
                == "name is required.")
        let long = String(repeating: "a", count: 100_001)
        #expect(refusal { try JobPosting.Draft(title: "a", safeDescription: long, terms: terms) } != nil)
        #expect(try JobPosting.Draft(title: "a", safeDescription: "", terms: terms).state == .published)
    }

    @Test("a search is either near a name or near a point, within bounds")
    func searches() throws {
        let point = try PostingSearch.Place(center: Coordinate(latitude: 52.5, longitude: 13.4), radiusKm: 500)
        #expect(refusal { try PostingSearch(placeName: "Berlin", place: point) }?.issues.first?.path == ["place"])
        #expect(refusal { try PostingSearch(salaryAtLeast: 190_001) } != nil)
        #expect(refusal { try PostingSearch(q: String(repeating: "a", count: 401)) } != nil)
        #expect(refusal { try PostingSearch(q: "a\u{0}b") } != nil)
        #expect(refusal { try PostingSearch.Place(center: point.center, radiusKm: 500.1) } != nil)
        #expect(refusal { try PostingSearch.Place(center: point.center, radiusKm: 0) } != nil)
        #expect(try PostingSearch(placeName: " Berlin ").placeName == "Berlin")
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Search in PostgreSQL")
struct SearchTests {
    /// A company of jane's with postings by title; everything else as given.
    private func post(
        _ world: World, _ author: User, _ title: String, _ terms: JobPosting.Terms,
        state: JobPosting.State = .published,
        until end: Date? = nil
    ) async throws -> JobPosting {
        try await world.postings.create(
            JobPosting.Draft(
                title: title, safeDescription: "<p>Text.</p>", terms: terms, state: state, validThrough: end),
            author: author.id)
    }

    @Test("filters hold singly and together, and what fits none is not found")
    func filters() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, kim) = (try await world.user("jane"), try await world.user("kim"))
            let acme = try await world.company("Acme", of: jane.id)
            _ = try await world.company("Beta", of: kim.id)
            let salary = try Salary(minimum: 5_000_000, maximum: 7_000_000, currency: "EUR", period: .year)
            let hourly = try Salary(minimum: nil, maximum: 5_000, currency: "USD", period: .hour)
            let berlin = try Coordinate(latitude: 52.52, longitude: 13.405)
            let potsdam = try Coordinate(latitude: 52.39, longitude: 13.06)
            let one = try await post(
                world, jane, "Baker one",
                JobPosting.Terms(
                    employmentType: "Full Time", place: "Berlin, Germany", coordinate: berlin, salary: salary))
            let two = try await post(
                world, jane, "Baker two",
                JobPosting.Terms(
                    employmentType: "Part Time", environment: "Remote", place: "Potsdam", coordinate: potsdam))
            let three = try await post(
                world, kim, "Baker three",
                JobPosting.Terms(employmentType: "Full Time", place: "Washington, DC", salary: hourly))
            let search = PostgresSearch(db: db)
            func ids(_ asked: PostingSearch) async throws -> Set<JobPosting.ID> {
                Set(try await everything(search, asked).map(\.id))
            }
            let center = try PostingSearch.Place(center: berlin, radiusKm: 10)
            let wide = try PostingSearch.Place(center: berlin, radiusKm: 40)
            #expect(try await ids(PostingSearch(q: "baker")) == [one.id, two.id, three.id])
            #expect(try await ids(PostingSearch()) == [one.id, two.id, three.id])
            #expect(try await ids(PostingSearch(q: "baker", kind: .fullTime)) == [one.id, three.id])
            #expect(try await ids(PostingSearch(remote: .remote)) == [two.id])
            #expect(try await ids(PostingSearch(remote: .hybrid)) == [])
            #expect(try await ids(PostingSearch(companyID: acme.id)) == [one.id, two.id])
            #expect(try await ids(PostingSearch(q: "baker", companyID: Company.ID(noSuchID))) == [])
            #expect(try await ids(PostingSearch(salaryAtLeast: 70_000)) == [one.id, three.id])
            #expect(try await ids(PostingSearch(salaryAtLeast: 70_001)) == [three.id])
            #expect(try await ids(PostingSearch(salaryAtLeast: 104_001)) == [])
            #expect(try await ids(PostingSearch(salaryAtLeast: 5_000)) == [one.id, three.id])
            #expect(try await ids(PostingSearch(place: center)) == [one.id])
            #expect(try await ids(PostingSearch(place: wide)) == [one.id, two.id])
            #expect(try await ids(PostingSearch(q: "baker", kind: .partTime, place: wide)) == [two.id])
            #expect(try await ids(PostingSearch(q: "baker", kind: .internship, place: wide)) == [])
        }
    }

    @Test("a place is found by its name, and not by a word of the text that is like it")
    func placeNames() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            let dc = try await post(world, jane, "Clerk", JobPosting.Terms(place: "Washington, D.C."))
            let state = try await post(world, jane, "Clerk", JobPosting.Terms(place: "Seattle, Washington"))
            let namesake = try await post(world, jane, "Washington's clerk", JobPosting.Terms(place: "Paris"))
            let brazil = try await post(world, jane, "Clerk", JobPosting.Terms(place: "São Paulo"))
            let search = PostgresSearch(db: db)
            func ids(_ name: String, q: String = "") async throws -> Set<JobPosting.ID> {
                Set(try await everything(search, PostingSearch(q: q, placeName: name)).map(\.id))
            }
            #expect(try await ids("Washington") == [dc.id, state.id])
            #expect(try await ids("washington dc") == [dc.id])
            #expect(try await ids("D.C.") == [dc.id])
            #expect(try await ids("sao paulo") == [brazil.id])
            #expect(try await ids("Washington", q: "clerk") == [dc.id, state.id])
            #expect(try await ids("Paris", q: "washington") == [namesake.id])
            #expect(try await ids("Wash") == [])
            #expect(try await ids("Berlin") == [])
            #expect(
                Set(try await everything(search, PostingSearch(q: "washington")).map(\.id))
                    == [dc.id, state.id, namesake.id])
        }
    }

    @Test("drafts, closed and deleted postings are not found, and expired ones not from their second on")
    func openOnly() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            _ = try await post(world, jane, "Baker draft", JobPosting.Terms(), state: .draft)
            let open = try await post(world, jane, "Baker open", JobPosting.Terms())
            let ending = try await post(world, jane, "Baker ending", JobPosting.Terms(), until: future)
            let gone = try await post(world, jane, "Baker gone", JobPosting.Terms())
            _ = try await world.postings.delete(gone.id, editor: jane.id)
            let search = PostgresSearch(db: db)
            let asked = try PostingSearch(q: "baker")
            let before = try await everything(search, asked, now: future.addingTimeInterval(-0.001))
            #expect(Set(before.map(\.id)) == [open.id, ending.id])
            #expect(try await everything(search, asked, now: future).map(\.id) == [open.id])
            _ = try await world.postings.update(open.id, editor: jane.id) { posting throws(AppError) in
                try JobPosting.Draft(
                    title: posting.title, safeDescription: posting.description, terms: posting.terms, state: .closed)
            }
            #expect(try await everything(search, asked, now: future).isEmpty)
            #expect(try await search.facets(asked, now: future).first { $0.name == "total" }?.count == 0)
        }
    }

    @Test(
        "a search for only stop words, or only for what must not be there, is refused",
        arguments: [
            "the", "-baker", "\"\"", "and of the", "-the -baker", "!!!",
        ])
    func needsATerm(query: String) async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            _ = try await post(world, jane, "Baker of the year", JobPosting.Terms())
            let search = PostgresSearch(db: db)
            let error = await refused(.invalid) {
                try await search.search(PostingSearch(q: query), after: nil, limit: 10, now: .now)
            }
            #expect(error?.issues.first?.path == ["q"])
            await refused(.invalid) { try await search.facets(PostingSearch(q: query), now: .now) }
        }
    }

    @Test("facets count by kind, remote, salary and in total, under the same filters as the search")
    func facets() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            for type in ["Full Time", "Full Time", "Part Time"] {
                _ = try await post(world, jane, "Baker", JobPosting.Terms(employmentType: type, environment: "Remote"))
            }
            _ = try await post(world, jane, "Painter", JobPosting.Terms(employmentType: "Full Time"))
            let search = PostgresSearch(db: db)
            let all = try await search.facets(PostingSearch(q: "baker"), now: .now)
            func count(_ name: String, _ value: Int32, in facets: [PostingSearch.Facet]) -> Int64? {
                facets.first { $0.name == name && $0.value == value }?.count
            }
            #expect(count("kind", 1, in: all) == 2 && count("kind", 2, in: all) == 1)
            #expect(count("remote", 2, in: all) == 3 && count("remote", 0, in: all) == nil)
            #expect(count("total", 0, in: all) == 3 && all.allSatisfy(\.exact))
            let part = try await search.facets(PostingSearch(q: "baker", kind: .partTime), now: .now)
            #expect(count("total", 0, in: part) == 1)
        }
    }

    @Test("a word that no posting has gets known words like it, and a known one gets none")
    func suggestions() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            for title in ["Engineer", "Kubernetes engineer", "Accountant", "Nurse"] {
                _ = try await post(world, jane, title, JobPosting.Terms())
            }
            try await PostgresImport(db: db).finish()
            let search = PostgresSearch(db: db)
            #expect(try await search.suggestions(for: "enigneer") == ["engineer"])
            #expect(try await search.suggestions(for: "Kuberntes") == ["kubernetes"])
            #expect(try await search.suggestions(for: "acountant") == ["accountant"])
            #expect(try await search.suggestions(for: "engineers") == [])
            #expect(try await search.suggestions(for: "nurse") == [])
            #expect(try await search.suggestions(for: "zzzzzzzz") == [])
            #expect(try await search.suggestions(for: "a") == [])
        }
    }
}

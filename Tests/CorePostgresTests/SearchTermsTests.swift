import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// Terms that word parsers lose or mix up, each with a text that has it and the nearest one that has not.
@Suite("Search terms")
struct SearchTermsTests {
    struct Term: Sendable {
        let query: String
        let has: String
        let hasNot: String

        init(_ query: String, _ has: String, not hasNot: String) {
            self.query = query
            self.has = has
            self.hasNot = hasNot
        }
    }

    static let golden: [Term] = [
        Term("c", "Embedded C developer", not: "Embedded C++ developer"),
        Term("C", "Firmware in C, some Python", not: "Firmware in C# and .NET"),
        Term("c++", "Engine programmer (C++17)", not: "Engine programmer, plain C"),
        Term("C++", "We write C ++ here", not: "We write C # here"),
        Term("cpp", "Modern c++ codebase", not: "Modern C codebase"),
        Term("c plus plus", "C++ on Linux", not: "C plus many more on Linux"),
        Term("c#", "C# engineer", not: "C engineer"),
        Term("csharp", "Senior C# person", not: "Senior C++ person"),
        Term("C sharp", "CSharp and Unity", not: "Sharp C coder"),
        Term("f#", "F# for finance", not: "Grade F finance"),
        Term("fsharp", "Functional F# work", not: "Functional C# work"),
        Term(".net", "Developer (.NET 8)", not: "Developer of network gear"),
        Term("dotnet", "ASP.NET Core services", not: "The internet of services"),
        Term("dot net", "VB.NET maintenance", not: "Dotted nets maintenance"),
        Term("asp.net", "ASP.NET MVC shop", not: "VB.NET desktop shop"),
        Term("node.js", "Backend in Node.js", not: "Backend of a node of the tree"),
        Term("nodejs", "Node JS and SQL", not: "Vue.js and SQL"),
        Term("node js", "nodejs microservices", not: "js microservices for a node"),
        Term("react.js", "Frontend: React", not: "Frontend: Angular.js"),
        Term("react", "ReactJS team", not: "Fast reactors team"),
        Term("vue", "Vue.js storefront", not: "Point of view storefront"),
        Term("vuejs", "Vue js experts", not: "Node js experts"),
        Term("angular", "AngularJS migration", not: "Triangular migration"),
        Term("next.js", "Next.js rendering", not: "Next rendering of JS"),
        Term("express.js", "ExpressJS APIs", not: "Express delivery APIs"),
        Term("r", "Statistics in R", not: "Statistics and R&D"),
        Term("R", "Skilled in R, SAS or Stata", not: "Skilled (R) in SAS or Stata"),
        Term("go", "Go services in the cloud", not: "Go to market in the cloud"),
        Term("golang", "Backend in Go", not: "Ready to go backend"),
        Term("Go", "Golang developer", not: "Go-getter developer"),
        Term("it", "IT support", not: "Support it gladly"),
        Term("IT", "Head of IT", not: "Head of what it takes"),
        Term("objective-c", "Objective-C and Swift", not: "Swift with an objective"),
        Term("obj-c", "Legacy Objective C apps", not: "Legacy C apps"),
        Term("at&t", "AT&T account manager", not: "At the T account manager"),
        Term("AT&T", "Carrier AT&amp;T networks", not: "Carrier A and T networks"),
        Term("r&d", "R&D chemist", not: "R chemist"),
        Term("R & D", "Head of R&D", not: "Head of R"),
        Term("q&a", "Q & A moderator", not: "QC moderator"),
        Term("u.s.", "Based in the U.S.", not: "Based in Ulm"),
        Term("d.c.", "Office in Washington, D.C.", not: "Office in Washington state"),
        Term("401k", "Benefits: 401(k) plan", not: "Benefits: 403(b) plan"),
        Term("401(k)", "With 401k matching", not: "With 401 matching"),
        Term("h-1b", "H-1B sponsorship", not: "H-2A sponsorship"),
        Term("t-sql", "T-SQL reports", not: "PL/SQL reports"),
        Term("c-level", "C-level assistant", not: "C assistant, entry level"),
        Term("usb-c", "USB-C hardware", not: "USB-A hardware"),
        Term("ph.d", "Ph.D. in physics", not: "P.H. in physics"),
        Term("phd", "PhD candidate", not: "MSc candidate"),
        Term("front-end", "Frontend lead", not: "Front desk lead"),
        Term("front end", "Front-end designer", not: "Endless designer"),
        Term("backend", "Back-end squad", not: "Backyard squad"),
        Term("full-stack", "Fullstack builder", not: "Stack builder"),
        Term("full stack", "Full-Stack maker", not: "Full maker"),
        Term("devops", "Dev Ops culture", not: "Developer culture"),
        Term("résumé", "Send a resume today", not: "Send a cover letter today"),
        Term("café", "Cafe manager", not: "Cave manager"),
        Term("straße", "Strassenbau Strasse", not: "Straits builder"),
        Term("łódź", "Office in Lodz", not: "Office in Lyon"),
        Term("engineering manager", "Manager of engineers", not: "Manager of offices"),
        Term("\"data engineer\"", "Data engineers wanted", not: "Engineer of data wanted"),
        Term("nurse -night", "Nurse by day", not: "Nurse by night"),
        Term("welder OR plumber", "Plumber needed", not: "Painter needed"),
        Term("class a", "Class A driver", not: "A first-class driver"),
    ]

    @Test("each term finds what has it and not its nearest neighbour, as title and as text")
    func goldenList() async throws {
        #expect(Self.golden.count >= 60)
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            for term in Self.golden {
                for (number, text) in [term.has, term.hasNot].enumerated() {
                    for isTitle in [true, false] {
                        let safe = text.contains("&amp;") ? text : text.replacing("&", with: "&amp;")
                        // The pair of a term is told apart by its place.
                        _ = try await world.postings.create(
                            JobPosting.Draft(
                                title: isTitle ? text : "Work", safeDescription: isTitle ? "" : "<p>\(safe)</p>",
                                terms: JobPosting.Terms(place: number == 0 ? "yes" : "no")),
                            author: jane.id)
                    }
                }
            }
            let search = PostgresSearch(db: db)
            for term in Self.golden {
                let found = try await everything(search, PostingSearch(q: term.query))
                for isTitle in [true, false] {
                    func has(_ text: String) -> Bool {
                        found.contains { posting in
                            isTitle
                                ? posting.title == text
                                : posting.description.replacing("&amp;", with: "&")
                                    == "<p>\(text.replacing("&amp;", with: "&"))</p>"
                        }
                    }
                    let kind = isTitle ? "title" : "text"
                    #expect(has(term.has), "\(term.query) does not find the \(kind) \"\(term.has)\"")
                    #expect(!has(term.hasNot), "\(term.query) finds the \(kind) \"\(term.hasNot)\"")
                }
            }
        }
    }

    @Test("skills are terms by themselves: a lone go, it or R is the skill")
    func skills() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.company("Acme", of: jane.id)
            for skills in [["go", "sql"], ["it"], ["R"], ["c++", "C"], ["ongoing"]] {
                _ = try await world.postings.create(
                    JobPosting.Draft(
                        title: "Work", safeDescription: "", terms: JobPosting.Terms(skills: skills)), author: jane.id)
            }
            let search = PostgresSearch(db: db)
            for (query, skill) in [("go", "go"), ("it", "it"), ("r", "R"), ("c", "C"), ("c++", "c++")] {
                let found = try await everything(search, PostingSearch(q: query))
                #expect(found.count == 1 && found.first?.terms.skills.contains(skill) == true, "\(query)")
            }
        }
    }
}

/// All pages of a search. A test's issue when a posting comes twice.
func everything(
    _ search: PostgresSearch, _ asked: PostingSearch, limit: Int = 100, now: Date = .now
) async throws -> [JobPosting] {
    var found: [JobPosting] = []
    var cursor: PostingSearch.Cursor?
    repeat {
        let page = try await search.search(asked, after: cursor, limit: limit, now: now)
        #expect(page.postings.count == limit || page.next == nil)
        found += page.postings
        cursor = page.next
    } while cursor != nil
    #expect(Set(found.map(\.id)).count == found.count, "a posting came twice")
    return found
}

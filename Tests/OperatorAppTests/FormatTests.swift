import Core
import Foundation
import Testing

@testable import OperatorApp

/// One record of each format, written for these tests in the shapes that the sources document.
enum Fixture {
    static let usajobs = """
        {"control_number": 700000100, "year": 2024, "position_title": "Statistician <Senior> & Lead",
         "department": "Department of Examples", "agency": "Bureau of Samples", "subagency": null,
         "appointment_type": "Permanent", "occupation_series": ["1530 - Statistics"],
         "hiring_paths": ["The public", "Veterans"], "open_date": "2024-02-01", "close_date": "2024-02-14",
         "usajobs_url": "https://www.usajobs.gov/job/700000100"}
        """
    static let githubJobs = """
        {"id": "11111111-2222-3333-4444-555555555555", "type": "Full Time",
         "url": "https://jobs.example/positions/1", "created_at": "Wed Dec 04 22:43:07 UTC 2019",
         "company": "Example", "company_url": null, "location": "Remote, Berlin", "title": "C++ Engineer",
         "description": "<p>We <b>build</b>.</p><script>alert(1)</script>",
         "how_to_apply": "<p><a href=\\"https://example.org/apply?a=1&amp;b=2\\" onclick=\\"x()\\">Apply</a></p>",
         "company_logo": null}
        """
    static let greenhouse = """
        {"id": 4012345, "title": "Nurse", "updated_at": "2026-06-20T12:00:00-04:00",
         "location": {"name": "Remote - US"}, "absolute_url": "https://boards.greenhouse.io/acme/jobs/4012345",
         "content": "&lt;p&gt;Care &amp;amp; more&lt;/p&gt;&lt;img src=x onerror=alert(1)&gt;",
         "departments": [{"id": 1, "name": "Care"}]}
        """
    static let lever = """
        {"id": "abc-123", "text": "Baker", "hostedUrl": "https://jobs.lever.co/bakery/abc-123",
         "applyUrl": "https://jobs.lever.co/bakery/abc-123/apply", "createdAt": 1700000000000,
         "workplaceType": "hybrid", "categories": {"location": "Paris", "team": "Ovens", "commitment": "Part-time"},
         "description": "<div>Bread.</div>", "lists": [{"text": "Needs <skills>", "content": "<li>Early hours</li>"}],
         "salaryRange": {"min": 30000, "max": 40000.5, "currency": "EUR", "interval": "per-year-salary"}}
        """
    static let mixedLever = """
        {"source": "lever", "organization": "toys", "id": "66a2", "title": "Keyholder", "locationName": "Attleboro, MA",
         "workplaceType": "", "employmentType": "", "compensation": "",
         "description": "First <b>line\\n\\nSecond & last", "url": "https://jobs.lever.co/toys/66a2",
         "timestamp": "2025-11-16T02:23:36.991Z"}
        """
    static let mixedGreenhouse = """
        {"source": "greenhouse", "organization": "spa", "id": 433, "title": "Front Desk", "locationName": "Sunnyvale",
         "workplaceType": "", "employmentType": "", "compensation": "",
         "description": "&lt;p&gt;Hello&amp;nbsp;there&lt;/p&gt;", "url": "https://spa.example/433",
         "timestamp": "2025-11-16T02:23:36.991Z"}
        """
    static let company = """
        {"title": "Ten Up", "slug": "ten-up", "website": "https://tenup.example/",
         "careers_url": "https://tenup.example/c",
         "region": "europe", "remote_policy": "remote-friendly", "company_size": "medium", "technologies": ["php"],
         "body": "## Company blurb\\n\\nWe make things."}
        """
    static let now = Date(timeIntervalSince1970: 1_780_000_000)
    static let context = MappingContext(now: now, renewDays: nil, company: nil)

    static func fields(_ text: String, replacing old: String = "", with new: String = "") throws -> RecordFields {
        let text = old.isEmpty ? text : text.replacing(old, with: new)
        guard case .object(let object) = try OrderedJSON.parse(Array(text.utf8)) else { throw ImportError("no object") }
        return RecordFields(object: object)
    }
}

@Suite("Formats of sources")
struct FormatTests {
    @Test("each format is recognised by its members")
    func recognised() throws {
        let known: [(String, SourceFormat)] = [
            (Fixture.usajobs, .usajobs), (Fixture.githubJobs, .githubJobs), (Fixture.greenhouse, .greenhouse),
            (Fixture.lever, .lever), (Fixture.mixedLever, .mixed), (Fixture.mixedGreenhouse, .mixed),
            (Fixture.company, .companies),
        ]
        for (text, format) in known { #expect(SourceFormat.recognise(try Fixture.fields(text).object) == format) }
        for text in [#"{"questions":[]}"#, #"{"id":1,"title":"x","jobUrl":"https://x.example"}"#, "{}"] {
            #expect(SourceFormat.recognise(try Fixture.fields(text).object) == nil)
        }
    }

    @Test("usajobs: facts become a description, and the day it closes is closed")
    func usajobs() throws {
        let posting = try USAJobs.posting(Fixture.fields(Fixture.usajobs)).accept(Fixture.context)
        #expect(posting.source == "usajobs" && posting.externalID == "700000100")
        #expect(posting.companyName == "Bureau of Samples" && posting.draft.title == "Statistician <Senior> & Lead")
        let html = posting.draft.description
        for part in [
            "Bureau of Samples, Department of Examples", "<li>1530 - Statistics</li>", "<li>Veterans</li>",
            "Open from 2024-02-01 to 2024-02-14.", "href=\"https://www.usajobs.gov/job/700000100\"",
        ] { #expect(html.contains(part), "\(part) in \(html)") }
        #expect(posting.draft.terms.kind == .fullTime)
        #expect(posting.draft.terms.applyURL == "https://www.usajobs.gov/job/700000100")
        #expect(posting.publishedAt == SourceDate.parse("2024-02-01"))
        #expect(posting.draft.validThrough == SourceDate.parse("2024-02-15T05:00:00Z"))
    }

    @Test(
        "postings that have closed are renewed when asked, others not, and the hash tells them apart but not the days")
    func renewed() throws {
        let source = try USAJobs.posting(Fixture.fields(Fixture.usajobs))
        let plain = try source.accept(Fixture.context)
        func renewed(_ now: Date, _ days: Int) throws -> ImportedPosting {
            try source.accept(MappingContext(now: now, renewDays: days, company: nil))
        }
        let one = try renewed(Fixture.now, 30)
        #expect(one.draft.validThrough == Fixture.now.addingTimeInterval(30 * 86_400))
        #expect(one.contentHash != plain.contentHash)
        #expect(try renewed(Fixture.now.addingTimeInterval(86_400), 7).contentHash == one.contentHash)
        let open = try renewed(SourceDate.parse("2024-02-10") ?? .now, 30)
        #expect(open.draft.validThrough == plain.draft.validThrough && open.contentHash == plain.contentHash)
    }

    @Test("github-jobs: both texts are safe HTML, and the link to apply is found")
    func githubJobs() throws {
        let posting = try GitHubJobs.posting(Fixture.fields(Fixture.githubJobs)).accept(Fixture.context)
        let html = posting.draft.description
        #expect(html.contains("We <b>build</b>") || html.contains("We <strong>build</strong>"))
        #expect(html.contains("How to apply") && !html.contains("script") && !html.contains("onclick"))
        #expect(posting.draft.terms.applyURL == "https://example.org/apply?a=1&b=2")
        #expect(posting.draft.terms.remote == .remote && posting.draft.terms.place == "Remote, Berlin")
        #expect(posting.publishedAt == SourceDate.parse("2019-12-04T22:43:07Z") && posting.draft.validThrough == nil)
    }

    @Test("greenhouse: content is unescaped once, and the board's address names the company")
    func greenhouse() throws {
        let posting = try Greenhouse.posting(Fixture.fields(Fixture.greenhouse), company: nil).accept(Fixture.context)
        #expect(posting.draft.description.contains("Care &amp; more") && !posting.draft.description.contains("onerror"))
        #expect(posting.companyName == "acme" && posting.draft.terms.remote == .remote)
        let given = try Greenhouse.posting(Fixture.fields(Fixture.greenhouse), company: "Acme Inc.")
        #expect(given.company == "Acme Inc.")
        let own = try Greenhouse.posting(
            Fixture.fields(Fixture.greenhouse, replacing: "boards.greenhouse.io/acme", with: "www.acme.example/x"),
            company: nil)
        #expect(own.company == "acme.example")
        let bare = try Greenhouse.posting(
            Fixture.fields(Fixture.greenhouse, replacing: "\"content\"", with: "\"other\""), company: nil)
        #expect(bare.description.contains("Department: Care"))
    }

    @Test("lever: the parts come below each other, with pay, place and commitment")
    func lever() throws {
        let posting = try Lever.posting(Fixture.fields(Fixture.lever), company: nil).accept(Fixture.context)
        let html = posting.draft.description
        #expect(
            html.contains("Bread.") && html.contains("Needs &lt;skills&gt;") && html.contains("<li>Early hours</li>"))
        let terms = posting.draft.terms
        #expect(posting.companyName == "bakery" && terms.kind == .partTime && terms.remote == .hybrid)
        #expect(terms.salary == (try Salary(minimum: 3_000_000, maximum: 4_000_050, currency: "EUR", period: .year)))
        #expect(terms.applyURL.hasSuffix("/apply"))
        #expect(posting.publishedAt == Date(timeIntervalSince1970: 1_700_000_000))
        let odd = try Lever.posting(
            Fixture.fields(Fixture.lever, replacing: "\"EUR\"", with: "\"euros\""), company: nil)
        #expect(odd.salary == nil)
    }

    @Test("mixed: each record is read as its source's")
    func mixed() throws {
        let lever = try MixedBoards.posting(Fixture.fields(Fixture.mixedLever)).accept(Fixture.context)
        #expect(lever.source == "lever" && lever.draft.description.contains("First &lt;b&gt;line"))
        #expect(lever.draft.description.contains("Second &amp; last"))
        let greenhouse = try MixedBoards.posting(Fixture.fields(Fixture.mixedGreenhouse)).accept(Fixture.context)
        #expect(greenhouse.source == "greenhouse" && greenhouse.externalID == "433")
        #expect(
            greenhouse.draft.description.contains("<p>Hello") && !greenhouse.draft.description.contains("nbsp;nbsp"))
    }

    @Test("companies: front matter becomes the card, the page its text")
    func companies() throws {
        let company = try RemoteCompanies.company(Fixture.fields(Fixture.company))
        #expect(company.externalID == "ten-up" && company.draft.name == "Ten Up")
        #expect(
            company.draft.category == "remote-friendly, europe" && company.draft.website == "https://tenup.example/")
        #expect(company.draft.bio.hasPrefix("## Company blurb"))
        let odd = try RemoteCompanies.company(
            Fixture.fields(Fixture.company, replacing: "https://tenup.example/\"", with: "javascript:x\""))
        #expect(odd.draft.website == "")
    }

    @Test(
        "a wrong type, a missing key or a text beyond the rules is refused with the reason",
        arguments: [
            ("700000100", "true", "control_number"), ("700000100", "1.5", "control_number"),
            ("\"control_number\"", "\"number\"", "control_number is missing"),
            ("\"Statistician <Senior> & Lead\"", "17", "position_title is a number"),
            ("\"Statistician <Senior> & Lead\"", "\"  \"", "position_title is missing"),
            ("Statistician <Senior> & Lead", "a\\u0000b", "control characters"),
            ("[\"1530 - Statistics\"]", "[1]", "occupation_series"),
            ("[\"1530 - Statistics\"]", "\"x\"", "occupation_series"),
            ("\"2024-02-14\"", "\"14 Feb\"", "close_date"), ("\"2024-02-14\"", "20240214", "close_date"),
            ("Statistician", String(repeating: "x", count: 300), "limited to 255"),
        ])
    func refused(old: String, new: String, reason: String) throws {
        let error = #expect(throws: (any Error).self) {
            try USAJobs.posting(Fixture.fields(Fixture.usajobs, replacing: old, with: new)).accept(Fixture.context)
        }
        #expect(error.map { Importer.reason($0).contains(reason) } == true, "\(error.map(Importer.reason) ?? "")")
    }

    @Test("tabs in titles become spaces, and what was UTF-8 before somebody read it as Latin-1 is UTF-8 again")
    func mending() throws {
        let tabbed = try USAJobs.posting(
            Fixture.fields(Fixture.usajobs, replacing: "Statistician ", with: "Statistician\\t\\n")
        ).accept(Fixture.context)
        #expect(tabbed.draft.title == "Statistician <Senior> & Lead")
        #expect(SourceText.mended("Officer â\u{80}\u{93} Hire") == "Officer – Hire")
        #expect(SourceText.mended("plain é ü – text") == "plain é ü – text")
        #expect(SourceText.mended("a\u{85}b") == "a b")
    }

    @Test("a link that is none is left out, not the posting")
    func links() throws {
        for link in ["http:", "javascript:alert(1)", "mailto:a@example.org", "not a link"] {
            let posting = try USAJobs.posting(
                Fixture.fields(Fixture.usajobs, replacing: "https://www.usajobs.gov/job/700000100", with: link)
            ).accept(Fixture.context)
            #expect(posting.draft.terms.applyURL == "" && !posting.draft.description.contains("javascript:"))
        }
    }
}

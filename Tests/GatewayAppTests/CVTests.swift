import Core
import CorePostgres
import Foundation
import Resume
import Testing

@testable import GatewayApp

@Suite("What CVs say, over HTTP")
struct CVTests {
    private static let text = "Jane Doe\njane.doe@example.org\nSwift, PostgreSQL, Docker\nexcited about teams"

    private func result(text: String? = text, note: String? = nil) throws -> MediaResult {
        let resume = text.map { Resume.read($0, pageOffsets: [0], now: Resume.Month(year: 2026, month: 1)) }
        return .ready(
            mime: "application/pdf", ext: ".pdf", width: nil, height: nil, pageCount: 1, text: text, pageOffsets: [0],
            resume: try resume.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }, note: note,
            variants: [])
    }

    private func upload(_ api: TestGateway, _ token: String, _ result: MediaResult) async throws -> Int {
        let answer = try await api.upload(to: "/api/upload?kind=cv", token: token) { _ in result }
        return try #require(answer["0.id"] as? Int)
    }

    @Test("a CV's findings come with their places, and leave what the person typed as it is")
    func suggestions() async throws {
        try await TestGateway.run { api in
            let jane = try await api.register("jane")
            let before = try await api.call(.get, "/api/users/me", token: jane)
            let id = try await upload(api, jane, try result())
            let answer = try await api.call(.get, "/api/upload/files/\(id)/resume", token: jane)
            #expect(answer.status == 200 && answer["data.state"] as? String == "ready")
            #expect(answer.headers["Cache-Control"] == "private, no-store")
            #expect(answer["data.resume.name.value"] as? String == "Jane Doe")
            #expect(answer["data.resume.emails.0.value"] as? String == "jane.doe@example.org")
            #expect(answer["data.resume.emails.0.page"] as? Int == 1)
            #expect(answer["data.resume.emails.0.offset"] as? Int == 9)
            #expect(answer["data.resume.skills.1.value"] as? String == "PostgreSQL")
            let after = try await api.call(.get, "/api/users/me", token: jane)
            #expect(after.text == before.text)
            let other = try await api.register("other")
            #expect(try await api.call(.get, "/api/upload/files/\(id)/resume", token: other).status == 404)
            #expect(try await api.call(.get, "/api/upload/files/\(id)/resume").status == 401)
        }
    }

    @Test("a scan, a rejected file and one not read yet say what to do")
    func advice() async throws {
        try await TestGateway.run { api in
            let jane = try await api.register("jane")
            let scan = try await upload(api, jane, try result(text: nil, note: "no_text"))
            let answer = try await api.call(.get, "/api/upload/files/\(scan)/resume", token: jane)
            #expect((answer["data.advice"] as? String)?.contains("scan") == true)
            #expect(answer["data.resume"] is NSNull && answer["data.scanned"] as? Bool == false)
            for (note, word) in [("scan", "mistakes"), ("scan_cut", "first pages")] {
                let read = try await upload(api, jane, try result(note: note))
                let answer = try await api.call(.get, "/api/upload/files/\(read)/resume", token: jane)
                #expect((answer["data.advice"] as? String)?.contains(word) == true)
                #expect(answer["data.scanned"] as? Bool == true && !(answer["data.resume"] is NSNull))
            }
            let owner = try await api.representative("owner")
            let posting = try await api.post("Engineer", by: owner)
            let applied = try await api.apply(posting, by: jane)
            let application = try #require(applied["data.id"] as? Int)
            let pending = try await api.call(.get, "/api/applications/\(application)/cv-analysis", token: jane)
            #expect(pending["data.state"] as? String == "pending" && pending["data.terms"] is NSNull)
            let cv = try #require(pending["data.cv"] as? Int)
            _ = try await api.media.finish(Media.ID(Int64(cv)), .rejected(reason: "broken", message: "Send another."))
            let rejected = try await api.call(.get, "/api/applications/\(application)/cv-analysis", token: owner)
            #expect(rejected["data.advice"] as? String == "Send another.")
        }
    }

    @Test("a posting's terms are told as found, with places, or as missing, before and after applying")
    func analysis() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let jane = try await api.register("jane")
            let posting = try await api.post(
                "Engineer", by: owner,
                ["skills": ["Postgres", "Kubernetes"], "description": "<p>We use <b>Docker</b> and excel.</p>"])
            let cv = try await upload(api, jane, try result())
            let before = try await api.call(.get, "/api/jobs/\(posting)/cv-analysis?cv=\(cv)", token: jane)
            #expect(before.status == 200)
            for (index, expected) in [("Postgres", true, true), ("Kubernetes", true, false), ("Docker", false, true)]
                .enumerated()
            {
                #expect(before["data.terms.\(index).term"] as? String == expected.0)
                #expect(before["data.terms.\(index).required"] as? Bool == expected.1)
                #expect(before["data.terms.\(index).found"] as? Bool == expected.2)
            }
            #expect(before["data.terms.0.places.0.excerpt"] as? String == "Swift, PostgreSQL, Docker")
            #expect(before["data.terms.0.places.0.offset"] as? Int == 37)
            #expect((before["data.terms"] as? [Any])?.count == 3)
            for path in ["/api/jobs/\(posting)/cv-analysis", "/api/jobs/\(posting)/cv-analysis?cv=x"] {
                #expect(try await api.call(.get, path, token: jane).status == 400)
            }
            for (path, token) in [
                ("/api/jobs/\(posting)/cv-analysis?cv=\(cv)", owner), ("/api/jobs/999999/cv-analysis?cv=\(cv)", jane),
            ] {
                #expect(try await api.call(.get, path, token: token).status == 404)
            }
            let applied = try await api.apply(posting, by: jane)
            let application = try #require(applied["data.id"] as? Int)
            let path = "/api/applications/\(application)/cv-analysis"
            let sent = try #require(try await api.call(.get, path, token: jane)["data.cv"] as? Int)
            #expect(try await api.media.finish(Media.ID(Int64(sent)), try result()))
            for token in [jane, owner] {
                let after = try await api.call(.get, path, token: token)
                #expect(after["data.terms.1.found"] as? Bool == false && after["data.job"] as? Int == posting)
            }
            #expect(try await api.call(.get, path, token: rival).status == 404)
        }
    }
}

import Core
import CorePostgres
import Foundation
import Testing

@testable import GatewayApp

@Suite("Applications, files and rooms over HTTP")
struct ApplicationTests {
    @Test("applying stores the CV once; a second time is 409 with the first one's address, and leaves no file")
    func apply() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let first = try await api.apply(posting, by: person)
            let id = try #require(first["data.id"] as? Int)
            #expect(first["data.attributes.status"] as? String == "initiated")
            #expect(api.storedFiles.count == 1)
            let second = try await api.apply(posting, by: person)
            #expect(second.status == 409 && second["error.details.location"] as? String == "/api/applications/\(id)")
            #expect(api.storedFiles.count == 1)
            let mine = try await api.call(.get, "/api/applications/mine", token: person)
            #expect(mine["0.job.company.logo.url"] is String && mine["0.cv.url"] is String)
            let theirs = try await api.call(.get, "/api/jobs/mine", token: owner)
            #expect(theirs["0.applications.0.applicant.username"] as? String == "person")
        }
    }

    @Test("closed and expired postings are 410, drafts and unknown ones 404; nothing is stored")
    func notOpen() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let closed = try await api.post("A", by: owner, ["status": "closed"])
            let draft = try await api.post("B", by: owner, ["status": "draft"])
            let expired = try await api.post("C", by: owner, ["valid_through": "2020-01-01"])
            for (posting, status) in [(closed, 410), (expired, 410), (draft, 404), (999_999, 404)] {
                #expect(try await api.apply(posting, by: person).status == status)
            }
            #expect(try await api.call(.get, "/api/jobs/\(draft)", token: person).status == 404)
            #expect(try await api.call(.get, "/api/jobs/\(draft)", token: owner).status == 200)
            #expect(api.storedFiles.isEmpty)
            #expect(try await api.count("applications") == 0)
        }
    }

    @Test(
        "what is no proper form is refused, and leaves nothing",
        arguments: [
            ("", "--B\r\nContent-Disposition: form-data; name=\"cv\"; filename=\"a.pdf\"\r\n\r\nhalf", 400),
            ("1", "--B--\r\n", 400), ("", "--B--\r\n", 400), ("x", "--B--\r\n", 400),
            ("1", "--B\r\nContent-Disposition: form-data; name=\"other\"; filename=\"a\"\r\n\r\nx\r\n--B--\r\n", 400),
            ("1", "--B\r\nContent-Disposition: form-data; name=\"cv\"; filename=\"a.pdf\"\r\n\r\n\r\n--B--\r\n", 400),
        ])
    func badForms(job: String, rest: String, status: Int) async throws {
        try await TestGateway.run { api in
            let person = try await api.register("person")
            let text = "--B\r\nContent-Disposition: form-data; name=\"job\"\r\n\r\n\(job)\r\n"
            let answer = try await api.call(
                .post, "/api/applications", token: person, headers: ["Content-Type": "multipart/form-data; boundary=B"],
                body: Array((text + rest).utf8))
            #expect(answer.status == status, "\(answer.text)")
            #expect(api.storedFiles.isEmpty)
        }
    }

    @Test("a file above its limit is 413, and leaves nothing")
    func tooLarge() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let answer = try await api.apply(
                posting, by: person, cv: [UInt8](repeating: 0x41, count: Media.Kind.cv.bytesMax + 1))
            #expect(answer.status == 413)
            #expect(api.storedFiles.isEmpty)
        }
    }

    @Test("the company decides, once, and a room is there; others see nothing")
    func accept() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let id = try #require(try await api.apply(posting, by: person)["data.id"] as? Int)
            let path = "/api/applications/\(id)"
            #expect(try await api.call(.get, path, token: rival).status == 404)
            #expect(try await api.send(.put, path, token: rival, ["status": "accepted"]).status == 404)
            #expect(try await api.send(.put, path, token: person, ["status": "accepted"]).status == 403)
            #expect(try await api.send(.put, path, token: owner, ["status": "hired"]).status == 400)
            let accepted = try await api.send(
                .put, path, token: owner, ["job": "9", "applicant_username": "x", "status": "accepted"])
            let room = try #require(accepted["room"] as? Int)
            #expect(accepted["status"] as? String == "accepted" && accepted["job.id"] as? Int == posting)
            #expect(try await api.send(.put, path, token: owner, ["status": "accepted"])["room"] as? Int == room)
            for token in [owner, person] {
                let rooms = try await api.call(.get, "/api/rooms", token: token)
                #expect(rooms["data.0.id"] as? Int == room && rooms["data.1"] == nil)
                let messages = try await api.call(.get, "/api/rooms/\(room)/messages", token: token)
                #expect(messages["data.0.body"] as? String == "Application accepted")
            }
            #expect(try await api.call(.get, "/api/rooms/\(room)/messages", token: rival).status == 404)
            let history = try await api.call(.get, "\(path)/history", token: person)
            #expect(history["data.0.kind"] as? String == "initiated" && history["data.1.kind"] as? String == "accepted")
        }
    }

    @Test("a CV is read by its address for a while, by its two sides with a token, and by nobody else")
    func serve() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let pdf = Array("%PDF-1.4 bytes".utf8)
            let applied = try await api.apply(posting, by: person, cv: pdf)
            let media = try #require(applied["data.attributes.cv.id"] as? Int)
            let early = try #require(applied["data.attributes.cv.url"] as? String)
            #expect(try await api.call(.get, early).status == 503)
            _ = try await PostgresMedia(db: api.db).finish(
                Media.ID(Int64(media)),
                .ready(
                    mime: "application/pdf", ext: ".pdf", width: nil, height: nil, pageCount: 1, text: "x",
                    pageOffsets: [0], note: nil, variants: []))
            let detail = try await api.call(.get, "/api/applications/mine", token: person)
            let url = try #require(detail["0.cv.url"] as? String)
            let file = try await api.call(.get, url)
            #expect(file.status == 200 && file.bytes == pdf)
            #expect(file.headers["Content-Type"] == "application/pdf")
            #expect(file.headers["X-Content-Type-Options"] == "nosniff")
            #expect(file.headers["Cache-Control"] == "private, no-store")
            #expect(file.headers["Content-Disposition"]?.contains("filename=\"my cv.pdf\"") == true)
            let path = String(url.prefix { $0 != "?" })
            for token in [owner, person] { #expect(try await api.call(.get, path, token: token).status == 200) }
            #expect(try await api.call(.get, path, token: rival).status == 404)
            #expect(try await api.call(.get, path).status == 404)
            #expect(try await api.call(.get, path + "?t=1.x").status == 404)
            api.clock.advance(seconds: 7201)
            #expect(try await api.call(.get, url).status == 404)
        }
    }

    @Test(
        "names that would mislead are shown harmlessly",
        arguments: [
            ("a\"b;c.pdf", "attachment; filename=\"a_b_c.pdf\"; filename*=UTF-8''a%22b%3Bc.pdf"),
            (
                "Vita für Äda.pdf",
                "attachment; filename=\"Vita f_r _da.pdf\"; filename*=UTF-8''Vita%20f%C3%BCr%20%C3%84da.pdf"
            ),
        ])
    func disposition(name: String, header: String) {
        #expect(ContentDisposition.text(inline: false, fileName: name) == header)
    }
}

import Foundation
import Testing

@testable import GatewayApp

@Suite("Companies and postings over HTTP")
struct PostingTests {
    @Test("a representative has one company: sending it again rewrites it")
    func company() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("rep")
            #expect(try await api.call(.get, "/api/companies/me", token: token).status == 204)
            let texts = ["name": "A", "email": "a@example.org", "phone": "1", "bio": "b", "address": "x"]
            let made = try await api.form(
                "/api/companies", token: token, texts: texts, files: [("logo", "imagefile.jpg", [0xFF, 0xD8])])
            #expect(made.status == 200 && made["id"] is Int && made.object["logo"] == nil)
            let again = try await api.send(.post, "/api/companies", token: token, ["name": "B"])
            #expect(again["id"] as? Int == made["id"] as? Int && again["name"] as? String == "B")
            let mine = try await api.call(.get, "/api/companies/me", token: token)
            #expect(mine["logo.url"] as? String == MediaLinks.placeholder && mine["logo.id"] is Int)
            let shown = try await api.call(.get, "/api/companies/\(made["id"] as? Int ?? 0)?populate=logo")
            for format in ["thumbnail", "small", "medium", "large"] {
                #expect(shown["data.attributes.logo.data.attributes.formats.\(format).url"] is String, "\(format)")
            }
        }
    }

    @Test("a posting is published, listed with its company, changed and deleted by its company's member only")
    func lifecycle() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let stranger = try await api.register("stranger")
            let id = try await api.post("Engineer", by: owner)
            let list = try await api.call(.get, "/api/jobs?populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo")
            #expect(list["data.0.id"] as? Int == id && list["data.0.attributes.status"] as? String == "available")
            #expect(list["data.0.attributes.company.data.attributes.logo.data.attributes.url"] is String)
            #expect(list["meta.pagination.total"] as? Int == 1 && list["meta.pagination.pageCount"] as? Int == 1)
            let bare = try await api.call(.get, "/api/jobs")
            #expect(bare["data.0.attributes.company"] == nil)
            for token in [rival, stranger] {
                let put = try await api.send(.put, "/api/jobs/\(id)", token: token, ["data": ["name": "Mine"]])
                #expect(put.status == 404)
                #expect(try await api.call(.delete, "/api/jobs/\(id)", token: token).status == 404)
            }
            let put = try await api.send(.put, "/api/jobs/\(id)", token: owner, ["data": ["description": "New."]])
            #expect(
                put["attributes.name"] as? String == "Engineer"
                    && put["data.attributes.description"] as? String == "New.")
            #expect(put["attributes.type"] as? String == "Long Term" && put["attributes.company.data.id"] is Int)
            let gone = try await api.call(.delete, "/api/jobs/\(id)", token: owner)
            #expect(gone["id"] as? Int == id && gone["data.id"] as? Int == id)
            #expect(try await api.call(.get, "/api/jobs/\(id)").status == 404)
        }
    }

    @Test("a posting is of one's own company, whatever company the client names")
    func namedCompany() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            func company(_ token: String) async throws -> Int {
                try #require(try await api.call(.get, "/api/companies/me", token: token)["id"] as? Int)
            }
            let own = try await company(owner)
            for named in [own, try await company(rival), 0] {
                let made = try await api.send(
                    .post, "/api/jobs", token: owner, ["data": ["name": "X", "company": named]])
                // A refusal would end the stock client, which may name one that is no more.
                #expect(made.status == 200)
                let shown = try await api.call(.get, "/api/jobs/\(made["id"] as? Int ?? 0)?populate=company")
                #expect(shown["data.attributes.company.data.id"] as? Int == own, "\(named)")
            }
            #expect((try await api.call(.get, "/api/jobs/mine", token: rival).json as? [Any])?.isEmpty == true)
        }
    }

    @Test("a person without a company posts nothing, and sees an empty list of their own")
    func withoutCompany() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("nobody")
            let answer = try await api.send(.post, "/api/jobs", token: token, ["data": ["name": "X", "company": 1]])
            #expect(answer.status == 403)
            #expect(try await api.call(.get, "/api/jobs/mine", token: token).json as? [String] == [])
            #expect(try await api.count("job_postings") == 0)
        }
    }

    @Test(
        "wrong types and values are 400 with the field, and change nothing",
        arguments: [
            ("name", 5 as any Sendable), ("name", ""), ("description", ["x"]), ("type", 1), ("lat", "north"),
            ("lat", 91),
            ("skills", "swift"), ("skills", [1]), ("salary", 5), ("salary", ["min": 5]), ("valid_through", "tomorrow"),
            ("status", "open"), ("apply_url", "javascript:alert(1)"), ("name", String(repeating: "n", count: 256)),
        ])
    func wrongTypes(field: String, value: any Sendable) async throws {
        try await TestGateway.run { api in
            let token = try await api.representative("rep")
            var data: [String: Any] = ["name": "Engineer", "lng": 0]
            if field != "lat" { data["lng"] = nil }
            data[field] = value
            let answer = try await api.send(.post, "/api/jobs", token: token, ["data": data])
            #expect(answer.status == 400, "\(answer.text)")
            let path = answer["error.details.errors.0.path.0"] as? String ?? ""
            #expect(path.hasPrefix(field) || (field == "salary" && path == "salary"))
            #expect(try await api.count("job_postings") == 0)
        }
    }

    @Test("outside HTML is rewritten; plain words come back as they were")
    func html() async throws {
        try await TestGateway.run { api in
            let token = try await api.representative("rep")
            let rich = try await api.send(
                .post, "/api/jobs", token: token,
                ["data": ["name": "A", "description": "<p onclick=x>Hi <script>bad()</script><b>R&amp;D</b></p>"]])
            let html = rich["description_html"] as? String ?? ""
            #expect(html.contains("<b>R&amp;D</b>") && !html.contains("script") && !html.contains("onclick"))
            let plain = try await api.send(
                .post, "/api/jobs", token: token, ["data": ["name": "B", "description": "R&D, a < b"]])
            #expect(plain["description"] as? String == "R&D, a < b")
        }
    }

    @Test("search finds by word, place and type, pages by cursor, and refuses nonsense")
    func search() async throws {
        try await TestGateway.run { api in
            let token = try await api.representative("rep")
            for number in 0..<5 { _ = try await api.post("Ornithologist \(number)", by: token, ["place": "Bern"]) }
            _ = try await api.post("Plumber", by: token, ["environment": "On site"])
            let first = try await api.call(.get, "/api/jobs/search?q=ornithologist&place=bern&limit=3")
            #expect((first["data"] as? [Any])?.count == 3)
            let next = try #require(first["meta.next"] as? String)
            let second = try await api.call(.get, "/api/jobs/search?q=ornithologist&place=bern&limit=3&cursor=\(next)")
            #expect((second["data"] as? [Any])?.count == 2)
            let remote = try await api.call(.get, "/api/jobs/search?remote=false")
            #expect((remote["data"] as? [Any])?.count == 1)
            for bad in [
                "type=1", "remote=perhaps", "salary=x", "company=0", "lat=1", "radius=5", "cursor=zzz", "limit=x",
                "q=the",
            ] {
                #expect(try await api.call(.get, "/api/jobs/search?\(bad)").status == 400, "\(bad)")
            }
        }
    }

    /// `padding` spaces make a body too large without filling the log of the test.
    @Test(
        "broken JSON, broken UTF-8, another content type and too much of it get their 4xx",
        arguments: [
            ("application/json", "{", 0, 400), ("application/json", "[1]", 0, 400), ("text/plain", "{}", 0, 415),
            ("application/json", "broken", 0, 400), ("application/json", "{}", 1 << 20, 413),
        ])
    func badBodies(type: String, text: String, padding: Int, status: Int) async throws {
        try await TestGateway.run { api in
            let token = try await api.representative("rep")
            let body: [UInt8] = text == "broken" ? [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D] : Array(text.utf8)
            let answer = try await api.call(
                .post, "/api/jobs", token: token, headers: ["Content-Type": type],
                body: body + [UInt8](repeating: 0x20, count: padding))
            #expect(answer.status == status && answer["data"] is NSNull && answer["error.status"] as? Int == status)
        }
    }
}

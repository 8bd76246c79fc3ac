import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("The stock app's fifteen calls")
struct StockClientTests {
    private static let pdf = Array("%PDF-1.4 a cv".utf8)
    private static let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + Array("a picture".utf8)

    @Test("1–4: whoever registers, signs in and changes the profile is shown whole", arguments: 0..<5)
    func accounts(which: Int) async throws {
        try await TestGateway.run { server in
            let words = Words.hostile(1)[which]
            var app = StockClient(server: server)
            let registered = try await app.register(words)
            #expect(registered.user.username == words.username && registered.user.first_name == words.text)
            let signedIn = try await app.signIn(words.email.uppercased(), "correct horse")
            #expect(signedIn.user == registered.user)
            let me = try await app.me()
            #expect(me.id == registered.user.id && me.username == words.username && !me.role.description.isEmpty)
            let plain = try await app.saveProfile(words, picture: nil)
            #expect(plain.phone_number == words.text && !plain.role.name.isEmpty)
            let pictured = try await app.saveProfile(words, picture: Self.jpeg)
            #expect(pictured.id == me.id && pictured.last_name == words.text)
        }
    }

    @Test("5–6: a company is saved with its form, and shown; who has none is told so", arguments: 0..<5)
    func companies(which: Int) async throws {
        try await TestGateway.run { server in
            let words = Words.hostile(2)[which]
            var app = StockClient(server: server)
            _ = try await app.register(words)
            #expect(try await app.ownCompany() == nil)
            let saved = try await app.saveCompany(words, logo: which.isMultiple(of: 2) ? Self.jpeg : nil)
            #expect(saved.name == words.name && saved.bio == words.text && saved.logo == nil)
            let own = try #require(try await app.ownCompany())
            #expect(own.id == saved.id && own.address == words.text && own.logo.url.hasPrefix("/uploads/"))
            // "Edit profile" sends the same form again: the own company is changed, never a second one made.
            let again = try await app.saveCompany(Words.hostile(3)[0], logo: Self.jpeg)
            #expect(again.id == own.id)
        }
    }

    @Test("7–15: postings and applications of hostile people decode whole, as do the answers to every act")
    func postings() async throws {
        try await TestGateway.run { server in
            var (representatives, ids): ([StockClient], [Int]) = ([], [])
            for (index, words) in Words.hostile(4).enumerated() {
                var app = StockClient(server: server)
                _ = try await app.register(words)
                let company = try await app.saveCompany(words, logo: index == 0 ? Self.jpeg : nil)
                let made = try await app.publish([
                    "name": words.name, "description": words.text, "type": words.text, "environment": words.text,
                    "company": company.id,
                ])
                #expect(made.status == 200 && made.id > 0 && made.name == words.name)
                representatives.append(app)
                ids.append(made.id)
            }
            var applicant = StockClient(server: server)
            _ = try await applicant.register(Words.hostile(5)[2])
            for escaped in [true, false] {
                let listed = try await applicant.postings(escaped: escaped)
                #expect(listed.map(\.id) == ids.reversed())
                #expect(listed.allSatisfy { $0.attributes.status == "available" })
                // Until a logo has been looked at, and where there is none, all formats are the placeholder.
                let logos = listed.map(\.attributes.company.data.attributes.logo.data.attributes)
                #expect(logos.allSatisfy { $0.formats.thumbnail.url.hasPrefix("/uploads/") && !$0.url.isEmpty })
            }
            for id in ids { #expect(try await applicant.apply(id, cv: Self.pdf).status == 200) }
            let applications = try await applicant.ownApplications()
            #expect(applications.map(\.job.id) == ids.reversed(), "newest first")
            #expect(applications.allSatisfy { $0.status == "initiated" && $0.cv.url.contains("?") })

            let own = try await representatives[1].ownPostings()
            let application = try #require(own.first?.applications.first)
            #expect(own.count == 1 && application.applicant.username == Words.hostile(5)[2].username)
            let decided = try await representatives[1].decide(
                application.id, "accepted", job: ids[1], applicant: application.applicant.username)
            #expect(decided.status == 200 && !decided.object.isEmpty)

            let changed = try await representatives[2].update(
                ids[2], ["name": "changed", "description": "", "type": "", "environment": ""])
            #expect(changed.id == ids[2] && changed.attributes.name == "changed" && changed.attributes.type == "")
            #expect(try await representatives[2].delete(ids[2]).id == ids[2])
            // The tutorial's list breaks as a whole once a posting of it is gone.
            #expect(try await applicant.ownApplications().map(\.job.id) == [ids[4], ids[3], ids[1], ids[0]])
            #expect(try await representatives[2].ownPostings().isEmpty)
        }
    }

    @Test("15: files are fetched without a header, at the address as the answer gives it")
    func files() async throws {
        try await TestGateway.run { server in
            let representative = try await server.representative("rep")
            let posting = try await server.post("Posting", by: representative)
            var applicant = StockClient(server: server)
            _ = try await applicant.register(Words.hostile(6)[3])
            _ = try await applicant.apply(posting, cv: Self.pdf)
            let cv = try #require(try await applicant.ownApplications().first).cv
            // The worker has not looked at it yet: the address is right, the file is not ready.
            #expect(try await applicant.file(cv.url).status == 503)
            #expect(try await applicant.file(String(cv.url.prefix { $0 != "?" })).status == 404)
            let logo = try await applicant.postings(escaped: true)[0].attributes.company.data.attributes.logo
            for url in [logo.data.attributes.url, logo.data.attributes.formats.large.url] {
                #expect(try await applicant.file(url).status == 200)
            }
        }
    }

    @Test("9: whatever is wrong with a new posting, the answer has what the app casts by force")
    func wrongPostings() async throws {
        try await TestGateway.run { server in
            let representative = StockClient(server: server, token: try await server.representative("rep"))
            let stranger = StockClient(server: server, token: try await server.register("bob"))
            let fine: [String: Any] = ["name": "x", "description": "y", "type": "", "environment": ""]
            let refusals: [(StockClient, [String: Any], Int)] = [
                (StockClient(server: server), fine, 401), (StockClient(server: server, token: "no"), fine, 401),
                (stranger, fine, 403), (representative, [:], 400), (representative, ["name": ""], 400),
                (representative, ["name": String(repeating: "n", count: 256)], 400),
                (representative, ["name": 5], 400), (representative, ["name": "x", "description": ["no"]], 400),
            ]
            for (app, data, status) in refusals {
                let answer = try await app.publish(data)
                #expect(answer.status == status && answer.id == 0, "\(data)")
            }
            let wrongType = try await server.call(
                .post, "/api/jobs", token: representative.token, headers: ["Content-Type": "text/plain"], body: [0x78])
            #expect(wrongType.status == 415 && wrongType["id"] as? Int == 0 && wrongType["name"] is String)
            #expect(wrongType["error.status"] as? Int == 415 && wrongType.object["data"] is NSNull)
        }
    }
}

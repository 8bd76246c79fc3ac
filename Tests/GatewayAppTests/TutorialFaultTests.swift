import Core
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

/// The tutorial's faults over HTTP (contracts: 01 §6), one test each by its number. Those of its chat, 1 to 5, are the
/// chat's tests.
@Suite("The tutorial's faults")
struct TutorialFaultTests {
    @Test("6: an application is decided by its company alone, and by nothing but the status that is sent")
    func application() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            let other = try await api.register("other")
            let posting = try await api.post("Engineer", by: owner)
            let foreign = try await api.post("Foreign", by: rival)
            let applied = try await api.apply(posting, by: person)
            let id = try #require(applied["data.id"] as? Int)
            let cv = try #require(applied["data.attributes.cv.id"] as? Int)
            let path = "/api/applications/\(id)"
            let accept: [String: Any] = ["job": "\(foreign)", "applicant_username": "other", "status": "accepted"]
            for stranger in [rival, other] {
                #expect(try await api.send(.put, path, token: stranger, accept).status == 404)
                #expect(try await api.call(.get, path, token: stranger).status == 404)
            }
            // Nobody accepts oneself.
            #expect(try await api.send(.put, path, token: person, accept).status == 403)
            #expect(try await api.send(.put, path, accept).status == 401)
            let assigned = accept.merging(["cv": 1, "applicant": 1, "id": 99]) { $1 }
            let accepted = try await api.send(.put, path, token: owner, assigned)
            #expect(accepted["id"] as? Int == id && accepted["job.id"] as? Int == posting)
            #expect(accepted["applicant.username"] as? String == "person" && accepted["cv.id"] as? Int == cv)
            // Accepting again makes no second room, and the other one is in none.
            let again = try await api.send(.put, path, token: owner, accept)
            #expect(again["room"] as? Int == accepted["room"] as? Int)
            for (token, rooms) in [(person, 1), (owner, 1), (other, 0), (rival, 0)] {
                let list = try await api.call(.get, "/api/rooms", token: token)
                #expect((list["data"] as? [Any])?.count == rooms)
            }
        }
    }

    @Test("7: who applies chooses neither status nor applicant, applies once, and to what is open")
    func applying() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let closed = try await api.post("Closed", by: owner, ["status": "closed"])
            let cv = (name: "cv", fileName: "document.pdf", bytes: Array("%PDF-1.4 a cv".utf8))
            let applied = try await api.form(
                "/api/applications", token: person,
                texts: ["job": "\(posting)", "status": "accepted", "applicant": "1", "room": "1"], files: [cv])
            #expect(applied["data.attributes.status"] as? String == "initiated")
            let theirs = try await api.call(.get, "/api/jobs/mine", token: owner)
            let shown = theirs.list.first { $0["id"] as? Int == posting }?["applications"] as? [[String: Any]] ?? []
            #expect(shown.count == 1 && (shown[0]["applicant"] as? [String: Any])?["username"] as? String == "person")
            #expect(try await api.apply(posting, by: person).status == 409)
            #expect(try await api.apply(closed, by: person).status == 410)
            #expect(try await api.apply(posting + 1000, by: person).status == 404)
            #expect(try await api.count("applications") == 1)
        }
    }

    @Test("8: a representative has one company, which the form changes, and chooses no owner or id")
    func company() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let theirs = try await api.call(.get, "/api/companies/me", token: rival)
            let id = try #require(theirs["id"] as? Int)
            let own = try await api.call(.get, "/api/companies/me", token: owner)
            let again = try await api.form(
                "/api/companies", token: owner,
                texts: ["name": "Again", "id": "\(id)", "representative": "1", "jobs": "1"])
            #expect(again.status == 200 && again["id"] as? Int == own["id"] as? Int)
            let untouched = try await api.call(.get, "/api/companies/me", token: rival)
            #expect(untouched["name"] as? String == theirs["name"] as? String)
            let all = try await api.call(.get, "/api/companies", token: owner)
            #expect(all["meta.pagination.total"] as? Int == 2)
        }
    }

    @Test("9: only the company edits and deletes its postings; who has no company is refused, not a 500")
    func posting() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            let id = try await api.post("Engineer", by: owner)
            for token in [rival, person] {
                let edited = try await api.send(.put, "/api/jobs/\(id)", token: token, ["data": ["name": "Mine"]])
                #expect(edited.status == 404)
                #expect(try await api.call(.delete, "/api/jobs/\(id)", token: token).status == 404)
            }
            #expect(try await api.call(.get, "/api/jobs/mine", token: person).list.isEmpty)
            // With its applications: nobody's list is broken by them afterwards.
            _ = try await api.apply(id, by: person)
            #expect(try await api.call(.delete, "/api/jobs/\(id)", token: owner).status == 200)
            #expect(try await api.call(.get, "/api/applications/mine", token: person).text == "[]")
            #expect(try await api.count("applications") == 0)
        }
    }

    @Test("10: a profile's form makes nobody an administrator, and no answer has a password")
    func profile() async throws {
        try await TestGateway.run { api in
            _ = try await api.register("other")
            let privileged: [String: Any] = [
                "username": "person", "email": "person@example.org", "password": "correct horse", "role": 1,
                "blocked": true, "confirmed": false, "provider": "x", "id": 1, "password_hash": "x",
            ]
            let registered = try await api.send(.post, "/api/auth/local/register", privileged)
            let token = try #require(registered["jwt"] as? String)
            let changed = try await api.send(
                .post, "/api/auth/local/profile", token: token,
                ["role": "administrator", "blocked": true, "password": "other horse", "id": 1, "first_name": "P"])
            let me = try await api.call(.get, "/api/users/me?populate=role", token: token)
            for answer in [registered["user"], changed.json, me.json] {
                let user = try #require(answer as? [String: Any])
                #expect(user["blocked"] as? Bool == false && user["username"] as? String == "person")
                #expect(user.keys.allSatisfy { !$0.lowercased().contains("password") && !$0.contains("oken") })
            }
            #expect(me["role.type"] as? String == "authenticated" && me["first_name"] as? String == "P")
            let login = ["identifier": "person", "password": "correct horse"]
            #expect(try await api.send(.post, "/api/auth/local", login).status == 200)
            // A name or an address of somebody else's is refused.
            let taken = try await api.send(.post, "/api/auth/local/profile", token: token, ["username": "OTHER"])
            #expect((400...409).contains(taken.status))
        }
    }

    @Test("11: a CV's address permits itself for a while; without that and without a right there is no file")
    func cv() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            let applied = try await api.apply(try await api.post("Engineer", by: owner), by: person)
            let url = try #require(applied["data.attributes.cv.url"] as? String)
            let bare = String(url.prefix { $0 != "?" })
            for token in [nil, rival] { #expect(try await api.call(.get, bare, token: token).status == 404) }
            let forged = url.dropLast(3) + "AAA"
            #expect(try await api.call(.get, String(forged)).status == 404)
            // It is still being checked, which only those are told who may read it.
            #expect(try await api.call(.get, url).status == 503)
            #expect(try await api.call(.get, bare, token: owner).status == 503)
            api.clock.advance(seconds: 3 * 3600)
            #expect(try await api.call(.get, url).status == 404)
        }
    }

    @Test("12: no page of another origin reads answers, a token ends, and guessing passwords is slowed down")
    func signIn() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("person")
            let me = try await api.call(
                .get, "/api/users/me", token: token, headers: ["Origin": "https://evil.example"])
            #expect(me.status == 200 && me.headers["Access-Control-Allow-Origin"] == nil)
            #expect(try await api.call(.post, "/api/auth/logout", token: token).status == 204)
            #expect(try await api.call(.get, "/api/users/me", token: token).status == 401)
            var statuses: [Int] = []
            for number in 0..<20 {
                let guess = ["identifier": "person", "password": "guess \(number)"]
                statuses.append(try await api.send(.post, "/api/auth/local", guess).status)
            }
            #expect(statuses.first == 400 && statuses.last == 429)
        }
    }
}

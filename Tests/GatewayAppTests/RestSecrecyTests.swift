import Core
import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("What the list language does not tell")
struct RestSecrecyTests {
    private func count(_ api: TestGateway, _ target: String, token: String?) async throws -> Int? {
        let answer = try await api.call(.get, target, token: token)
        #expect(answer.status == 200, "\(target): \(answer.text)")
        let shown = (answer["data"] as? [Any])?.count
        #expect(answer["meta.pagination.total"] as? Int == shown, "\(target): the total tells no more than the list")
        return shown
    }

    @Test("a filter through relations finds only what the viewer may see there")
    func relations() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let rival = try await api.representative("rival")
            let person = try await api.register("person")
            _ = try await api.apply(try await api.post("Engineer", by: owner), by: person)
            let email = "/api/jobs?filters[applications][applicant][email][$startsWith]=person"
            let has = "/api/jobs?filters[applications][$notNull]=true"
            let representative = "/api/jobs?filters[company][representative][username]=owner"
            for target in [email, has] {
                #expect(try await count(api, target, token: owner) == 1)
                #expect(try await count(api, target, token: person) == 1)
                #expect(try await count(api, target, token: rival) == 0)
                #expect(try await count(api, target, token: nil) == 0)
            }
            #expect(try await count(api, representative, token: owner) == 1)
            for token in [person, rival, nil] { #expect(try await count(api, representative, token: token) == 0) }
            let negated = "/api/jobs?filters[$not][applications][applicant][email][$startsWith]=person"
            #expect(try await count(api, negated, token: rival) == 1)
        }
    }

    @Test("drafts are in no list, by no filter and no sort, and in no total")
    func drafts() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            _ = try await api.post("Open", by: owner)
            let draft = try await api.post("Hidden", by: owner, ["status": "draft"])
            for token in [owner, nil] {
                #expect(try await count(api, "/api/jobs", token: token) == 1)
                #expect(try await count(api, "/api/jobs?filters[status]=draft", token: token) == 0)
                #expect(try await count(api, "/api/jobs?filters[name]=Hidden", token: token) == 0)
                #expect(try await count(api, "/api/jobs?filters[$or][0][id]=\(draft)", token: token) == 0)
            }
            #expect(try await count(api, "/api/companies?filters[jobs][name]=Hidden", token: nil) == 0)
            #expect(try await count(api, "/api/companies?filters[jobs][name]=Hidden", token: owner) == 1)
            #expect(try await api.call(.get, "/api/jobs/\(draft)?populate=company").status == 404)
            #expect(try await api.call(.get, "/api/jobs/\(draft)", token: owner).status == 200)
        }
    }

    @Test("a private field and one that does not exist are refused in the same words")
    func privateNames() async throws {
        try await TestGateway.run { api in
            let token = try await api.register("person")
            for name in [
                "password", "password_hash", "resetPasswordToken", "confirmationToken", "provider_id", "nonsense",
            ] {
                for (target, path) in [
                    (
                        "/api/users/me?populate[applications][filters][applicant][\(name)][$startsWith]=a",
                        ["populate", "applications", "filters", "applicant", name]
                    ),
                    ("/api/applications?filters[applicant][\(name)][$notNull]=true", ["filters", "applicant", name]),
                    ("/api/applications?sort=applicant.\(name)", ["sort", name]),
                    ("/api/users/me?fields=\(name)", ["fields", name]),
                    ("/api/users/me?populate=\(name)", ["populate", name]),
                ] {
                    let answer = try await api.call(.get, target, token: token)
                    #expect(answer.status == 400 && answer.problem == "Invalid key \(name)", "\(target)")
                    #expect(answer["error.details.errors.0.path"] as? [String] == path, "\(target)")
                }
            }
            let whole = try await api.call(.get, "/api/users/me?populate=*", token: token)
            #expect(!whole.text.contains("password") && !whole.text.lowercased().contains("token"))
        }
    }

    @Test("an applicant's account is nobody else's business, also when asked for by name")
    func personal() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            _ = try await api.apply(try await api.post("Engineer", by: owner), by: person)
            let query = "populate[applicant][fields][0]=confirmed&populate[applicant][fields][1]=username"
            let answer = try await api.call(.get, "/api/applications?\(query)", token: owner)
            #expect(
                answer["data.0.attributes.applicant.data.attributes"] as? [String: String] == ["username": "person"])
            let refused = try await api.call(.get, "/api/applications?filters[applicant][blocked]=true", token: owner)
            #expect(refused.status == 400)
        }
    }
}

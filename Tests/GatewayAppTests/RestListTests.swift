import Core
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("Strapi's list language, over HTTP")
struct RestListTests {
    /// Four postings of two companies; their ids by name.
    static func world(_ api: TestGateway) async throws -> [String: Int] {
        let ada = try await api.representative("ada")
        let bob = try await api.representative("bob")
        return [
            "Alpha": try await api.post("Alpha", by: ada, ["place": "Bern", "type": "Contract"]),
            "alphabet": try await api.post("alphabet", by: ada, ["place": "Basel", "environment": "On site"]),
            "Beta": try await api.post("Beta", by: bob, ["place": "Bern", "valid_through": "2999-01-01T00:00:00Z"]),
            "50%_off": try await api.post("50%_off", by: bob, ["lat": 46.5, "lng": 7.5]),
        ]
    }

    private static func names(_ answer: TestGateway.Answer) -> [String] {
        (answer["data"] as? [[String: Any]] ?? []).map {
            ($0["attributes"] as? [String: Any])?["name"] as? String ?? "-"
        }
    }

    @Test("every operator finds what it says")
    func operators() async throws {
        try await TestGateway.run { api in
            let ids = try await Self.world(api)
            let (first, second, third) = (ids["Alpha"] ?? 0, ids["alphabet"] ?? 0, ids["Beta"] ?? 0)
            for (query, expected) in [
                ("[name][$eq]=Alpha", "Alpha"), ("[name]=Alpha", "Alpha"),
                ("[name]=Alpha&filters[name]=Beta", "Alpha Beta"),
                ("[name][$eqi]=ALPHABET", "alphabet"), ("[name][$ne]=Alpha", "alphabet Beta 50%_off"),
                ("[name][$nei]=ALPHA", "alphabet Beta 50%_off"), ("[id][$lt]=\(third)", "Alpha alphabet"),
                ("[id][$lte]=\(second)", "Alpha alphabet"), ("[id][$gt]=\(second)", "Beta 50%_off"),
                ("[id][$gte]=\(third)", "Beta 50%_off"), ("[name][$in][0]=Beta&filters[name][$in][1]=x", "Beta"),
                ("[name][$notIn][]=Beta&filters[name][$notIn][]=Alpha", "alphabet 50%_off"),
                ("[name][$contains]=lpha", "Alpha alphabet"),
                ("[name][$contains]=Alpha", "Alpha"), ("[name][$contains]=%25", "50%_off"),
                ("[name][$contains]=_", "50%_off"),
                ("[name][$notContains]=Alpha", "alphabet Beta 50%_off"), ("[name][$containsi]=ALPHA", "Alpha alphabet"),
                ("[name][$notContainsi]=ALPHA", "Beta 50%_off"), ("[name][$startsWith]=al", "alphabet"),
                ("[name][$startsWithi]=AL", "Alpha alphabet"), ("[name][$endsWith]=a", "Alpha Beta"),
                ("[name][$endsWith]=A", ""),
                ("[name][$endsWithi]=A", "Alpha Beta"), ("[valid_through][$null]=true", "Alpha alphabet 50%_off"),
                ("[valid_through][$notNull]=true", "Beta"), ("[valid_through][$gt]=2998-12-31", "Beta"),
                ("[id][$between][]=\(first)&filters[id][$between][]=\(second)", "Alpha alphabet"),
                ("[$and][0][place]=Bern&filters[$and][1][type]=Contract", "Alpha"),
                ("[$or][0][name]=Beta&filters[$or][1][place]=Basel", "alphabet Beta"),
                ("[$not][place][$eq]=Bern", "alphabet 50%_off"), ("[name][$not][$contains]=lpha", "Beta 50%_off"),
                ("[remote]=false", "alphabet"), ("[lat][$gt]=46", "50%_off"),
                ("[status]=available", "Alpha alphabet Beta 50%_off"),
                ("[description][$containsi]=PLAIN", "Alpha alphabet Beta 50%_off"),
                ("[description][$contains]=PLAIN", ""),
                ("[company][name][$containsi]=ADA", "Alpha alphabet"),
                ("[company][logo][$null]=true", "Alpha alphabet Beta 50%_off"),
                ("[company][jobs][name]=Beta", "Beta 50%_off"),
            ] {
                let answer = try await api.call(.get, "/api/jobs?sort=id&filters\(query)")
                #expect(answer.status == 200, "\(query): \(answer.text)")
                #expect(Self.names(answer).joined(separator: " ") == expected, "\(query)")
            }
        }
    }

    @Test("pages and offsets, with and without a total; the order is by the newest id unless asked")
    func paging() async throws {
        try await TestGateway.run { api in
            _ = try await Self.world(api)
            func get(_ query: String) async throws -> TestGateway.Answer {
                try await api.call(.get, "/api/jobs?\(query)")
            }
            let plain = try await api.call(.get, "/api/jobs")
            #expect(Self.names(plain) == ["50%_off", "Beta", "alphabet", "Alpha"])
            #expect(
                plain["meta.pagination"] as? [String: Int] == ["page": 1, "pageSize": 25, "pageCount": 1, "total": 4])
            let second = try await get("pagination[page]=2&pagination[pageSize]=3")
            #expect(Self.names(second) == ["Alpha"])
            #expect(
                second["meta.pagination"] as? [String: Int] == ["page": 2, "pageSize": 3, "pageCount": 2, "total": 4])
            let offset = try await get("pagination[start]=1&pagination[limit]=2")
            #expect(Self.names(offset) == ["Beta", "alphabet"])
            #expect(offset["meta.pagination"] as? [String: Int] == ["start": 1, "limit": 2, "total": 4])
            let uncounted = try await get("pagination[withCount]=false&filters[place]=Bern")
            #expect(uncounted["meta.pagination"] as? [String: Int] == ["page": 1, "pageSize": 25])
            let filtered = try await get("filters[place]=Bern&pagination[pageSize]=1")
            #expect(
                filtered["meta.pagination.total"] as? Int == 2 && filtered["meta.pagination.pageCount"] as? Int == 2)
            let beyond = try await get("pagination[page]=9")
            #expect(Self.names(beyond) == [] && beyond["meta.pagination.total"] as? Int == 4)
        }
    }

    @Test("sorted by fields and by those of relations; shown with the fields that were chosen, and the id")
    func sorting() async throws {
        try await TestGateway.run { api in
            let ids = try await Self.world(api)
            for (sort, expected) in [
                ("sort=name:desc", "alphabet Beta Alpha 50%_off"),
                ("sort=place:desc,id:desc", "Beta Alpha alphabet 50%_off"),
                ("sort[company][name]=desc&sort[id]=asc", "Beta 50%_off Alpha alphabet"),
            ] {
                #expect(
                    Self.names(try await api.call(.get, "/api/jobs?\(sort)")).joined(separator: " ") == expected,
                    "\(sort)")
            }
            let chosen = try await api.call(
                .get, "/api/jobs?fields=name,type&filters[name]=Alpha&populate[company][fields]=email")
            let entry = try #require((chosen["data"] as? [[String: Any]])?.first)
            let attributes = try #require(entry["attributes"] as? [String: Any])
            #expect(Set(entry.keys) == ["id", "attributes"] && entry["id"] as? Int == ids["Alpha"])
            #expect(Set(attributes.keys) == ["name", "type", "company"])
            #expect((chosen["data.0.attributes.company.data.attributes"] as? [String: Any])?.keys.sorted() == ["email"])
            let none = try await api.call(.get, "/api/jobs/\(ids["Alpha"] ?? 0)?fields=id")
            #expect((none["data.attributes"] as? [String: Any])?.isEmpty == true && none["data.id"] is Int)
        }
    }

    @Test(
        "a wrong query is 400 ValidationError with its path, in lists and for one entry; trailing slashes are nothing")
    func refused() async throws {
        try await TestGateway.run { api in
            let id = try await Self.world(api)["Beta"] ?? 0
            let token = try await api.register("reader")
            for (target, path) in [
                ("/api/jobs?filters[secret]=1", "filters secret"), ("/api/jobs/?sort=secret", "sort secret"),
                ("/api/jobs/\(id)?populate=secret", "populate secret"),
                ("/api/companies?fields=secret", "fields secret"),
                ("/api/companies/\(id)?populate=secret", "populate secret"),
                ("/api/applications?filters[secret]=1", "filters secret"),
                ("/api/users/me?populate=secret", "populate secret"),
                ("/api/jobs?pagination[page]=1&pagination[start]=1", "pagination"),
                (
                    "/api/jobs?filters" + String(repeating: "[a]", count: 21),
                    "filters " + String(repeating: "a ", count: 20)
                ),
            ] {
                let answer = try await api.call(.get, target, token: token)
                #expect(answer.status == 400 && answer["data"] is NSNull, "\(target)")
                #expect(answer["error.name"] as? String == "ValidationError" && answer["error.status"] as? Int == 400)
                let told = answer["error.details.errors.0.path"] as? [String]
                #expect(told == path.split(separator: " ").map(String.init), "\(target): \(answer.text)")
                #expect(answer["error.details.errors.0.name"] as? String == "ValidationError")
            }
            #expect(Self.names(try await api.call(.get, "/api/jobs/")).count == 4)
            #expect(try await api.call(.get, "/api/jobs/\(id)/")["data.attributes.name"] as? String == "Beta")
        }
    }

    @Test("queries that would be work are refused before they are any")
    func hostile() async throws {
        try await TestGateway.run { api in
            let before = api.db.statementsExecuted
            for query in [
                String(repeating: "filters[id][$in][]=1&", count: 3000),
                "populate" + String(repeating: "[a]", count: 10_000),
                "populate=" + String(repeating: "company,", count: 8000),
                "populate=" + String(repeating: "company,", count: 1500),
                "filters" + String(repeating: "[$not]", count: 20) + "[id]=1",
            ] {
                let answer = try await api.call(.get, "/api/jobs?\(query)")
                #expect(
                    answer.status == 400 && answer["error.name"] as? String == "ValidationError", "\(query.prefix(40))")
            }
            #expect(api.db.statementsExecuted == before)
        }
    }

    @Test("static routes win over ids")
    func routes() async throws {
        try await TestGateway.run { api in
            let token = try await api.representative("rep")
            for path in ["/api/jobs/mine", "/api/jobs/mine/", "/api/applications/mine", "/api/applications/mine/"] {
                #expect(try await api.call(.get, path, token: token).json as? [String] == [], "\(path)")
            }
            #expect(try await api.call(.get, "/api/companies/me/", token: token)["name"] as? String == "rep & Co")
            #expect(try await api.call(.get, "/api/jobs/nothing").status == 404)
            #expect(try await api.call(.get, "/api/users/me/", token: token)["role.name"] as? String == "Authenticated")
        }
    }

    @Test("the calls of the stock client are there with and without a slash at the end")
    func slashes() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let posting = try await api.post("Engineer", by: owner)
            let application = try #require(try await api.apply(posting, by: person)["data.id"] as? Int)
            for slash in ["", "/"] {
                for (method, path, token, statuses) in [
                    (.post, "api/auth/local", nil, [400]), (.post, "api/auth/local/register", nil, [400]),
                    (.get, "api/users/me", person, [200]), (.post, "api/auth/local/profile", person, [200]),
                    (.post, "api/companies", owner, [400]), (.get, "api/companies/me", owner, [200]),
                    (.get, "api/jobs", owner, [200]), (.get, "api/jobs/mine", owner, [200]),
                    (.post, "api/jobs", owner, [400]), (.put, "api/jobs/\(posting)", owner, [200]),
                    (.delete, "api/jobs/\(posting)", person, [404]), (.get, "api/applications/mine", person, [200]),
                    (.post, "api/applications", person, [415]), (.put, "api/applications/\(application)", owner, [400]),
                ] as [(HTTPMethod, String, String?, [Int])] {
                    let json: HTTPHeaders = method == .get ? [:] : ["Content-Type": "application/json"]
                    let answer = try await api.call(
                        method, "/\(path)\(slash)", token: token, headers: json,
                        body: method == .post || method == .put ? Array("{}".utf8) : [])
                    #expect(
                        statuses.contains(answer.status), "\(method) /\(path)\(slash): \(answer.status) \(answer.text)")
                }
            }
        }
    }
}

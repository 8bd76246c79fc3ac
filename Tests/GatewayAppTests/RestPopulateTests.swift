import Core
import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("Relations in answers")
struct RestPopulateTests {
    @Test("the stock client's list has every key, and no null, whatever is missing behind it")
    func stock() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            _ = try await api.post("Engineer", by: owner)
            for query in [
                "populate[company][populate][0]=logo", "populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo",
                "populate[company][populate]=logo", "populate=company.logo", "populate[company][populate][logo]=true",
                "populate[company][populate]=*", "populate[0]=company&populate[1]=company.logo",
            ] {
                let list = try await api.call(.get, "/api/jobs?\(query)")
                for key in ["name", "description", "type", "environment", "status"] {
                    #expect(list["data.0.attributes.\(key)"] is String, "\(query) \(key)")
                }
                let company = "data.0.attributes.company.data"
                #expect(list["\(company).id"] is Int)
                for key in ["address", "bio", "category", "email", "name", "phone"] {
                    #expect(list["\(company).attributes.\(key)"] is String, "\(query) \(key)")
                }
                let logo = "\(company).attributes.logo.data.attributes"
                #expect(list["\(logo).url"] as? String == MediaLinks.placeholder)
                for format in ["thumbnail", "small", "medium", "large"] {
                    #expect(
                        list["\(logo).formats.\(format).url"] as? String == MediaLinks.placeholder, "\(query) \(format)"
                    )
                }
                #expect(list["data.0.attributes.applications"] == nil)
            }
        }
    }

    @Test("each spelling brings the relation, and nothing else brings it")
    func spellings() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let id = try await api.post("Engineer", by: owner)
            for (query, brings) in [
                ("populate=company", true), ("populate=*", true), ("populate=company,applications", true),
                ("populate=applications&populate=company", true), ("populate[0]=company", true),
                ("populate[]=company", true),
                ("populate[company]=true", true), ("populate[company]=*", true),
                ("populate[company][fields]=name", true),
                ("", false), ("populate=", false), ("populate=applications", false), ("populate[company]=false", false),
                ("populate[company]", false),
            ] {
                for path in ["/api/jobs?\(query)", "/api/jobs/\(id)?\(query)"] {
                    let answer = try await api.call(.get, path)
                    let entry = path.contains("/\(id)") ? "data" : "data.0"
                    #expect(
                        (answer["\(entry).attributes.company.data.attributes.name"] as? String == "owner & Co")
                            == brings, "\(path)")
                    #expect((answer["\(entry).attributes.company"] != nil) == brings, "\(path)")
                    #expect(answer["\(entry).attributes.company.data.attributes.logo"] == nil, "\(path)")
                }
            }
        }
    }

    @Test("applications are listed to both sides only, with what they may see of each other")
    func applications() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            let stranger = try await api.register("stranger")
            let posting = try await api.post("Engineer", by: owner)
            let id = try #require(try await api.apply(posting, by: person)["data.id"] as? Int)
            let query = "populate[job][populate][company][populate]=logo&populate[cv]=true&populate[applicant]=true"
            for token in [owner, person] {
                for (path, entry) in [
                    ("/api/applications?\(query)", "data.0"), ("/api/applications/\(id)?\(query)", "data"),
                ] {
                    let answer = try await api.call(.get, path, token: token)
                    #expect(
                        answer["\(entry).id"] as? Int == id
                            && answer["\(entry).attributes.status"] as? String == "initiated")
                    #expect(answer["\(entry).attributes.job.data.id"] as? Int == posting)
                    let company = "\(entry).attributes.job.data.attributes.company.data.attributes"
                    #expect(answer["\(company).logo.data.attributes.formats.large.url"] is String)
                    #expect((answer["\(entry).attributes.cv.data.attributes.url"] as? String)?.contains("?t=") == true)
                    #expect(
                        answer["\(entry).attributes.applicant.data.attributes.email"] as? String == "person@example.org"
                    )
                    let own = answer["\(entry).attributes.applicant.data.attributes.blocked"]
                    #expect((own != nil) == (token == person), "of others only how to reach them")
                }
            }
            #expect(try await api.call(.get, "/api/applications", token: owner)["data.0.attributes.cv"] == nil)
            let others = try await api.call(.get, "/api/applications?\(query)", token: stranger)
            #expect((others["data"] as? [Any])?.isEmpty == true && others["meta.pagination.total"] as? Int == 0)
            #expect(try await api.call(.get, "/api/applications/\(id)", token: stranger).status == 404)
            #expect(try await api.call(.get, "/api/applications").status == 401)
            #expect(try await api.call(.get, "/api/applications/\(id)").status == 401)
            let filtered = try await api.call(
                .get, "/api/jobs/\(posting)?populate[applications][filters][status]=accepted", token: owner)
            #expect((filtered["data.attributes.applications.data"] as? [Any])?.isEmpty == true)
        }
    }

    @Test("oneself is flat, with the role always, and with what was asked for")
    func me() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let person = try await api.register("person")
            _ = try await api.apply(try await api.post("Engineer", by: owner), by: person)
            let stock = try await api.call(.get, "/api/users/me?populate=profile&populate=role", token: person)
            for key in ["username", "email", "first_name", "last_name", "phone_number"] {
                #expect(stock[key] is String, "\(key)")
            }
            #expect(stock["id"] is Int && stock["role.name"] is String && stock["role.description"] is String)
            #expect(stock["profile"] is NSNull && stock["data"] == nil && stock["applications"] == nil)
            let bare = try await api.call(.get, "/api/users/me", token: person)
            #expect(bare["profile"] == nil && bare["role.name"] is String)
            let rich = try await api.call(.get, "/api/users/me?populate[applications][populate]=job", token: person)
            #expect(rich["applications.0.job.name"] as? String == "Engineer" && rich["applications.0.id"] is Int)
            let chosen = try await api.call(.get, "/api/users/me?fields=username", token: person)
            #expect(
                chosen["username"] as? String == "person" && chosen["email"] == nil && chosen["role.name"] is String)
            let company = try await api.call(.get, "/api/users/me?populate=company.logo", token: owner)
            #expect(company["company.name"] as? String == "owner & Co" && company["company.logo.url"] is String)
        }
    }

    @Test("companies come with logo and postings, and with their representative for their own people only")
    func companies() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            _ = try await api.post("Engineer", by: owner)
            _ = try await api.post("Hidden", by: owner, ["status": "draft"])
            let query = "/api/companies?populate=*&populate=jobs"
            let open = try await api.call(.get, query)
            #expect(open["data.0.attributes.logo.data.attributes.formats.small.url"] is String)
            #expect((open["data.0.attributes.jobs.data"] as? [Any])?.count == 1)
            #expect(open["data.0.attributes.representative.data"] is NSNull)
            let own = try await api.call(.get, query, token: owner)
            #expect((own["data.0.attributes.jobs.data"] as? [Any])?.count == 2)
            #expect(own["data.0.attributes.representative.data.attributes.username"] as? String == "owner")
            let id = try #require(open["data.0.id"] as? Int)
            #expect(try await api.call(.get, "/api/companies/\(id)")["data.attributes.logo"] == nil)
        }
    }

    @Test("a populated list takes the same statements however long it is")
    func statements() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            func statements(_ target: String) async throws -> Int {
                let before = api.db.statementsExecuted
                let answer = try await api.call(.get, target, token: owner)
                #expect(answer.status == 200, "\(answer.text)")
                return api.db.statementsExecuted - before
            }
            let stock = "/api/jobs?populate[company][populate][0]=logo"
            let rich = "\(stock)&populate[applications][populate][0]=applicant&populate[applications][populate][1]=cv"
            _ = try await api.apply(try await api.post("First", by: owner), by: try await api.register("first"))
            let one = (try await statements(stock), try await statements(rich))
            for number in 0..<24 {
                let posting = try await api.post("Posting \(number)", by: owner)
                if number < 3 {
                    _ = try await api.apply(posting, by: try await api.register("person\(number)"))
                }
            }
            let many = (try await statements(stock), try await statements(rich))
            #expect(one == many)
            #expect(many.0 == 2, "the page and its total")
            #expect(many.1 <= 4, "and one for each relation that does not come with the row")
        }
    }

    @Test("a changed and a deleted posting come in both shapes, each with its company and the four formats")
    func both() async throws {
        try await TestGateway.run { api in
            let owner = try await api.representative("owner")
            let id = try await api.post("Engineer", by: owner)
            let put = try await api.send(.put, "/api/jobs/\(id)", token: owner, ["data": ["name": "Changed"]])
            let gone = try await api.call(.delete, "/api/jobs/\(id)", token: owner)
            for (answer, shape) in [(put, ""), (put, "data."), (gone, ""), (gone, "data.")] {
                #expect(answer["\(shape)id"] as? Int == id)
                #expect(answer["\(shape)attributes.name"] as? String == "Changed")
                let company = "\(shape)attributes.company.data.attributes"
                #expect(answer["\(company).name"] as? String == "owner & Co")
                for format in ["thumbnail", "small", "medium", "large"] {
                    #expect(
                        answer["\(company).logo.data.attributes.formats.\(format).url"] is String, "\(shape)\(format)")
                }
            }
            #expect(put["meta"] is [String: Any] && gone["meta"] is [String: Any])
            let once = try await api.post("Other", by: owner)
            let found = try await api.call(.get, "/api/jobs/\(once)")
            #expect(found["data.id"] as? Int == once && found["id"] == nil, "reading is Strapi's shape alone")
        }
    }
}

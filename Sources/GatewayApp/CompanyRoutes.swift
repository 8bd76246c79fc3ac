import Core
import CoreHTTP
import HTTPServer
import JSON

struct CompanyRoutes: Sendable {
    let parts: GatewayParts
    let signIn: SignIn
    let links: MediaLinks
    let forms: FormReader
    let answers: EntryAnswers

    func register(on router: inout Router) {
        router.on(.post, "/api/companies", bodyMax: FormReader.bodyMax(.logo), save)
        router.on(.get, "/api/companies", list)
        router.on(.get, "/api/companies/me", mine)
        router.on(.get, "/api/companies/:id", find)
    }

    /// The caller's own company: made the first time, rewritten after. Without a `logo` key, as the client's type has
    /// it.
    @Sendable func save(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let form = try await forms.read(request, files: ["logo": .logo])
        return try await form.keepingFiles { form in
            let fields = form.fields
            let draft = try Company.Draft(
                name: fields.required("name"), email: fields.string("email") ?? "", phone: fields.string("phone") ?? "",
                address: fields.string("address") ?? "", category: fields.string("category") ?? "",
                bio: fields.string("bio") ?? "", website: fields.string("website") ?? "")
            let company = try await parts.companies.save(draft, logo: form.files["logo"], representative: caller.user)
            return .json { json in
                json.object { json in
                    json.field("id", company.id.value)
                    CompanyBody.writeAttributes(company, to: &json)
                }
            }
        }
    }

    /// 204 when the caller has none.
    @Sendable func mine(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        guard let company = try await parts.companies.own(of: caller.user) else { return .noContent }
        return .json { json in
            json.object { CompanyBody.writeFlat(company, links: links, to: &$0) }
        }
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.optionalCaller(of: request)
        return try await answers.one(.company, request.id(as: Company.self).value, request, viewer: caller?.user)
    }

    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await answers.list(.company, request, viewer: signIn.optionalCaller(of: request)?.user)
    }
}

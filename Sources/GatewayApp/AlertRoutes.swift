import Core
import CoreHTTP
import HTTPServer
import JSON

struct AlertRoutes: Sendable {
    let alerts: any AlertRepository
    let signIn: SignIn

    func register(on router: inout Router) {
        router.on(.post, "/api/alerts", create)
        router.on(.get, "/api/alerts", list)
        router.on(.get, "/api/alerts/:id", find)
        router.on(.delete, "/api/alerts/:id", delete)
    }

    /// Any search saved: the same names as the query of `/api/jobs/search`, with `name` and `cadence`.
    @Sendable func create(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let fields = try await request.fields()
        var named: [String: String] = [:]
        for name in ["q", "type", "place"] { named[name] = try fields.string(name) }
        for name in ["lat", "lng", "radius"] { named[name] = try fields.float(name).map { String($0) } }
        for name in ["salary", "company"] { named[name] = try fields.int(name).map { String($0) } }
        if fields.has("remote") { named["remote"] = try remote(fields) }
        let search = try SearchFields(named: { [named] in named[$0].flatMap { $0.isEmpty ? nil : $0 } }).search()
        let draft = try JobAlert.Draft(
            name: fields.string("name") ?? String(search.q.unicodeScalars.prefix(JobAlert.Draft.name.lengthMax)),
            search: search,
            cadence: fields.choice("cadence", as: JobAlert.Cadence.self) ?? .instant)
        let alert = try await alerts.create(draft, owner: caller.user)
        return entry(201, alert, headers: ["Location": "/api/alerts/\(alert.id)"])
    }

    private func remote(_ fields: Fields) throws(AppError) -> String? {
        if let flag = try? fields.bool("remote") { return flag ? "true" : "false" }
        return try fields.string("remote")
    }

    @Sendable func list(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        let alerts = try await alerts.list(owner: caller.user)
        return .json { json in
            json.object { json in
                json.array("data", alerts) { json, alert in
                    json.object { Self.write(alert, to: &$0) }
                }
                json.object("meta") { _ in }
            }
        }
    }

    @Sendable func find(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        return entry(200, try await alerts.find(try request.id(as: JobAlert.self), owner: caller.user))
    }

    @Sendable func delete(_ request: HTTPRequest) async throws -> HTTPResponse {
        let caller = try signIn.caller(of: request)
        try await alerts.delete(try request.id(as: JobAlert.self), owner: caller.user)
        return .noContent
    }

    private func entry(_ status: Int, _ alert: JobAlert, headers: HTTPHeaders = [:]) -> HTTPResponse {
        .json(status, headers: headers) { json in
            json.object { json in
                json.object("data") { Self.write(alert, to: &$0) }
                json.object("meta") { _ in }
            }
        }
    }

    private static func write(_ alert: JobAlert, to json: inout JSONWriter) {
        json.field("id", alert.id.value)
        json.object("attributes") { json in
            json.field("name", alert.name)
            json.field("q", alert.search.q)
            json.field("type", orNull: alert.search.kind.map { "\($0)" })
            json.field("remote", orNull: alert.search.remote.map { "\($0)" })
            json.field("salary", orNull: alert.search.salaryAtLeast)
            json.field("company", orNull: alert.search.companyID?.value)
            json.field("place", alert.search.placeName)
            if let place = alert.search.place {
                json.field("lat", Double(place.center.latitude))
                json.field("lng", Double(place.center.longitude))
                json.field("radius", Double(place.radiusKm))
            }
            json.field("cadence", alert.cadence.rawValue)
            json.field("state", alert.state.rawValue)
            json.field("createdAt", alert.createdAt)
        }
    }
}

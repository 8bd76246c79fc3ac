import Foundation
import HTTPServer
import Testing

@testable import GatewayApp

@Suite("The API's description and its pages")
struct DocumentTests {
    @Test("docs/api/openapi.json has every route of the router, and no other")
    func routes() async throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("docs/api/openapi.json")
        let document = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: path)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        #expect(document["openapi"] as? String == "3.1.0")
        let documented = Set(paths.flatMap { path, methods in methods.keys.map { "\($0.uppercased()) \(path)" } })
        // A body may come in a type or a coding that nobody takes.
        for case let operation as [String: Any] in paths.values.flatMap(\.values)
        where operation["requestBody"] != nil {
            #expect((operation["responses"] as? [String: Any])?["415"] != nil, "\(operation["summary"] ?? "?")")
        }
        try await TestGateway.run { api in
            let served = Set(
                api.gateway.router.routes.map { route in
                    let path = route.pattern.split(separator: "/")
                        .map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : "\($0)" }
                    return "\(route.method) /" + path.joined(separator: "/")
                })
            #expect(documented.subtracting(served) == [], "documented, not served")
            #expect(served.subtracting(documented) == [], "served, not documented")
        }
    }

    @Test("an unknown path is 404 and a wrong method 405 with Allow, both in the clients' shape")
    func unknown() async throws {
        try await TestGateway.run { api in
            let missing = try await api.call(.get, "/api/nothing")
            #expect(missing.status == 404 && missing["error.name"] as? String == "NotFoundError")
            let method = try await api.call(.delete, "/api/jobs")
            #expect(method.status == 405 && method.headers["Allow"] == "GET, HEAD, POST")
        }
    }

    @Test("an alert is saved, listed to its owner only, and ended by its mail's link: GET asks, POST ends")
    func alerts() async throws {
        try await TestGateway.run { api in
            let owner = try await api.register("ada")
            let other = try await api.register("bob")
            let made = try await api.send(
                .post, "/api/alerts", token: owner,
                ["data": ["q": "swift", "cadence": "instant", "name": "<b>Swift</b>"]])
            let id = try #require(made["data.id"] as? Int)
            #expect(made.status == 201)
            #expect(try await api.send(.post, "/api/alerts", token: owner, ["data": ["q": "the"]]).status == 400)
            #expect(try await api.call(.get, "/api/alerts/\(id)", token: other).status == 404)
            #expect(try await api.call(.delete, "/api/alerts/\(id)", token: other).status == 404)
            let nameless = try await api.send(
                .post, "/api/alerts", token: other, ["data": ["q": "swift " + String(repeating: "linux ", count: 30)]])
            #expect((nameless["data.attributes.name"] as? String)?.hasPrefix("swift linux") == true)
            let token = api.unsubscribe(id)
            let page = try await api.call(.get, "/unsubscribe/\(token)")
            #expect(page.status == 200 && page.text.contains("&lt;b&gt;Swift&lt;/b&gt;"))
            #expect(
                try await api.call(.get, "/api/alerts/\(id)", token: owner)["data.attributes.state"] as? String
                    == "active")
            for _ in 0..<2 {
                let done = try await api.call(
                    .post, "/unsubscribe/\(token)", headers: ["Content-Type": "application/x-www-form-urlencoded"],
                    body: Array("List-Unsubscribe=One-Click".utf8))
                #expect(done.status == 200)
            }
            #expect(
                try await api.call(.get, "/api/alerts/\(id)", token: owner)["data.attributes.state"] as? String
                    == "unsubscribed")
            #expect(try await api.call(.post, "/unsubscribe/\(token.dropLast())x").status == 404)
        }
    }
}

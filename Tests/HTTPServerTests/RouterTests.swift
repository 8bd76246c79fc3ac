import EventLoop
import Testing

@testable import HTTPServer

@Suite("The router")
struct RouterTests {
    private func router() -> Router {
        var router = Router()
        for (method, pattern) in [
            (HTTPMethod.get, "/"), (.get, "/api/jobs"), (.post, "/api/jobs"), (.get, "/api/jobs/:id"),
            (.get, "/api/jobs/new"), (.put, "/api/jobs/:id"), (.get, "/api/jobs/:job/notes/:note"),
            (.get, "/api/jobs/new/edit"), (.get, "/files/*path"), (.delete, "/api/:kind/:id"),
        ] {
            router.on(method, pattern) { request in
                let names = request.parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
                return HTTPResponse(
                    status: 200, body: .bytes(bytes("\(pattern) \(names.joined(separator: ","))")))
            }
        }
        return router
    }

    private func ask(_ method: HTTPMethod, _ path: String, of router: Router) async throws -> String {
        let loop = EventLoop(name: "router")
        defer { Task { await loop.stop() } }
        let request = try HTTPRequest(method, path, on: loop)
        do {
            let response = try await router.handle(request)
            guard case .bytes(let body) = response.body else { return "" }
            return String(decoding: body, as: UTF8.self)
        } catch let error as HTTPError {
            return "\(error.status) \(error.headers["Allow"] ?? "")"
        }
    }

    @Test(
        "finds the route, what is written out before what is named",
        arguments: [
            (HTTPMethod.get, "/", "/ "), (.get, "/api/jobs", "/api/jobs "), (.get, "/api/jobs/", "/api/jobs "),
            (.head, "/api/jobs?x=1", "/api/jobs "), (.get, "/api/jobs/7", "/api/jobs/:id id=7"),
            (.get, "/api/jobs/7/", "/api/jobs/:id id=7"), (.get, "/api/jobs/new", "/api/jobs/new "),
            (.get, "/api/jobs/a%20b", "/api/jobs/:id id=a b"),
            (.get, "/api/jobs/new/notes/3", "/api/jobs/:job/notes/:note job=new,note=3"),
            (.get, "/files/a/b.txt", "/files/*path path=a/b.txt"),
            (.delete, "/api/users/1", "/api/:kind/:id id=1,kind=users"),
            (.get, "/none", "404 "), (.get, "//", "404 "), (.get, "/api/jobs//", "404 "), (.get, "/api//jobs", "404 "),
            (.get, "/files", "404 "), (.get, "/API/jobs", "404 "), (.get, "/api/jobs/7/notes", "404 "),
            (.delete, "/api/jobs", "405 GET, HEAD, POST"), (.post, "/", "405 GET, HEAD"),
            (.post, "/api/users/1", "405 DELETE"),
        ])
    func finds(method: HTTPMethod, path: String, expected: String) async throws {
        #expect(try await ask(method, path, of: router()) == expected)
    }

    @Test("lists its routes, and a route's own body limit is the one that counts")
    func limits() async throws {
        var router = Router()
        router.on(.post, "/small", bodyMax: 3, echo)
        router.on(.post, "/large/:id", bodyMax: 2_000_000, echo)
        router.on(.post, "/plain", echo)
        #expect(
            router.routes.map { "\($0.method) \($0.pattern)" } == [
                "POST /small", "POST /large/:id", "POST /plain",
            ])
        let routes = router
        try await withServer(handler: { try await routes.handle($0) }) { server in
            let client = try await server.connect()
            func ask(_ path: String, _ count: Int) async throws -> Int {
                try await client.ask(
                    "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(count)\r\n\r\n"
                        + String(repeating: "x", count: count)
                ).status
            }
            #expect(try await ask("/small", 3) == 200)
            #expect(try await ask("/small", 4) == 413)
            #expect(try await ask("/plain", 1_048_576) == 200)
            #expect(try await ask("/large/1", 2_000_000) == 200)
            #expect(try await ask("/plain", 1_048_577) == 413)
        }
    }
}

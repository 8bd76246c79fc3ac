import EventLoop
import Testing
import Tracing

@testable import HTTPServer

@Suite("Traced requests")
struct RequestTracingTests {
    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private static func get(_ path: String, _ headers: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: x\r\n\(headers)\r\n"
    }

    private static func router() -> Router {
        var router = Router()
        router.on(.get, "/things/:id") { _ in
            HTTPResponse(status: 200, body: .bytes(bytes(TraceContext.current?.traceparent ?? "none")))
        }
        router.on(.get, "/broken") { _ in throw HTTPError(503, "No.") }
        router.on(.get, "/stream") { _ in
            HTTPResponse(status: 200, body: .stream { try await $0.write(bytes("\(TraceContext.current != nil)")) })
        }
        router.on(.get, "/health") { _ in HTTPResponse(status: 204) }
        return router
    }

    private static func trace(
        sampler: Sampler.Name = .parentOrAlways, believes: Bool = true, _ requests: [String]
    ) async throws -> (spans: [FinishedSpan], bodies: [String]) {
        let (router, tracer) = (router(), Tracer(sampler: Sampler(sampler, share: 1), queueMax: 100, batchMax: 100))
        let tracing = HTTPTracing(tracer: tracer, routes: router.routes, ignoring: "/health") { _ in believes }
        var bodies: [String] = []
        try await withServer(tracing: tracing, handler: { try await router.handle($0) }) { server in
            let client = try await server.connect()
            for request in requests {
                bodies.append(String(decoding: try await client.ask(request).body, as: UTF8.self))
            }
        }
        return (tracer.takeBatch(), bodies)
    }

    private static func value(_ name: String, of span: FinishedSpan) -> SpanValue? {
        span.attributes.first { $0.name == name }?.value
    }

    @Test("a request is one span named by its route, with its path as far as it is nobody's secret, and no query")
    func span() async throws {
        let (spans, bodies) = try await Self.trace([
            Self.get("/things/17?token=h.u.s.h", "User-Agent: ada@example.org\r\n")
        ])
        let span = try #require(spans.first)
        #expect(spans.count == 1 && span.name == "GET /things/:id" && span.kind == .server && span.parent == nil)
        #expect(bodies == [span.context.traceparent] && !span.isError && span.ended >= span.began)
        #expect(Self.value("http.request.method", of: span) == "GET")
        #expect(Self.value("http.route", of: span) == "/things/:id" && Self.value("url.path", of: span) == "/things/17")
        #expect(Self.value("http.response.status_code", of: span) == 200)
        #expect(!"\(spans)".contains("h.u.s.h") && !"\(spans)".contains("@"))
    }

    @Test("what a client put into a path is left out unless it is an id")
    func paths() {
        for (path, pattern, kept) in [
            ("/a/12/b", "/a/:id/b", "/a/12/b"), ("/a/x1/b/", "/a/:id/b", "/a/…/b"),
            ("/u/ada@x.org/1", "/u/*rest", "/u/…"),
            ("/", "/", "/"), ("/t/12345678901", "/t/:code", "/t/…"), ("/t/1234567890", "/t/:code", "/t/1234567890"),
        ] { #expect(HTTPTracing.path(path, by: pattern) == kept) }
    }

    @Test("a caller that is believed is continued, with its notes and its decision; another is linked to")
    func callers() async throws {
        let request = Self.get("/things/1", "TraceParent: \(Self.parent)\r\nTracestate: a=1\r\ntracestate: b=2\r\n")
        let believed = try #require(try await Self.trace([request]).spans.first)
        #expect(believed.context.trace.description == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(believed.parent == 0x00f0_67aa_0ba9_02b7 && believed.context.state == "a=1,b=2" && believed.link == nil)
        let (none, bodies) = try await Self.trace([request.replacing("b7-01", with: "b7-00")])
        #expect(
            none.isEmpty && bodies[0].hasPrefix("00-4bf92f3577b34da6a3ce929d0e0e4736-") && bodies[0].hasSuffix("-00"))

        let other = try #require(try await Self.trace(believes: false, [request]).spans.first)
        #expect(other.parent == nil && other.link?.traceparent == Self.parent)
        #expect(other.context.trace != other.link?.trace && other.context.state == nil)
    }

    @Test("a malformed caller, or two, are as none")
    func malformed() async throws {
        let bad = ["traceparent: x\r\n", "traceparent: \(Self.parent)\r\ntraceparent: \(Self.parent)\r\n"]
        let (spans, _) = try await Self.trace(bad.map { Self.get("/things/1", $0) })
        #expect(spans.count == 2 && spans.allSatisfy { $0.parent == nil && $0.link == nil })
    }

    @Test("only a failure of the server is an error; what no route knows has no path")
    func errors() async throws {
        let (spans, _) = try await Self.trace(["/broken", "/nowhere/ada@example.org", "/health"].map { Self.get($0) })
        #expect(spans.map(\.name) == ["GET /broken", "GET"] && spans.map(\.isError) == [true, false])
        #expect(Self.value("error.type", of: spans[0]) == "503")
        #expect(Self.value("http.response.status_code", of: spans[1]) == 404)
        #expect(Self.value("url.path", of: spans[1]) == nil && !"\(spans)".contains("@"))
    }

    @Test("a streamed answer is part of its request")
    func streams() async throws {
        let (spans, bodies) = try await Self.trace([Self.get("/stream")])
        #expect(spans.map(\.name) == ["GET /stream"] && bodies.first?.contains("true") == true)
    }

    @Test("without a tracer nobody is part of a trace, whatever a client says")
    func untraced() async throws {
        let router = Self.router()
        try await withServer(handler: { try await router.handle($0) }) { server in
            let client = try await server.connect()
            let answer = try await client.ask(Self.get("/things/1", "traceparent: \(Self.parent)\r\n"))
            #expect(String(decoding: answer.body, as: UTF8.self) == "none")
        }
    }
}

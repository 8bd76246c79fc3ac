import EventLoop
import Foundation
import HTTPServer
import Testing

@testable import Transfer

@Suite struct HTTPClientTests {
    let loops = LoopGroup(count: 1, name: "http-client-test")
    let client = HTTPClient(offload: pool)

    func withServer(
        _ handler: @escaping HTTPHandler, _ body: (String) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            loops: loops, address: SocketAddress(host: "127.0.0.1", port: 0),
            onError: { _, _ in HTTPResponse(status: 500, headers: [:], body: .empty) }, handler: handler)
        let address = try await server.start()
        try await body("http://127.0.0.1:\(address.port)")
        await server.drain(graceSeconds: 1)
        await loops.stop()
    }

    @Test("a GET and a POST go with their headers and come back with status, headers and body")
    func roundTrip() async throws {
        try await withServer({ request in
            let sent = try await request.body.collect(max: 100_000)
            let text = "\(request.method.rawValue) \(request.path) \(request.headers["x-a"] ?? "-") \(sent.count)"
            return HTTPResponse(status: 201, headers: ["X-B": "c"], body: .bytes(Array(text.utf8)))
        }) { url in
            let got = try await client.get(url + "/a", headers: [("X-A", "b")])
            #expect(got.status == 201 && got.headers["x-b"] == ["c"])
            #expect(String(decoding: got.body, as: UTF8.self) == "GET /a b 0")
            let posted = try await client.post(url + "/p", body: [UInt8](repeating: 1, count: 70_000))
            #expect(String(decoding: posted.body, as: UTF8.self) == "POST /p - 70000")
        }
    }

    @Test("a redirect is an answer, and a body beyond the limit is none")
    func limits() async throws {
        try await withServer({ request in
            if request.path == "/go" { return HTTPResponse(status: 302, headers: ["Location": "/x"], body: .empty) }
            return HTTPResponse(status: 200, headers: [:], body: .bytes([UInt8](repeating: 1, count: 1001)))
        }) { url in
            let redirect = try await client.get(url + "/go")
            #expect(redirect.status == 302 && redirect.headers["location"] == ["/x"])
            #expect(try await client.get(url, bodyMax: 1001).body.count == 1001)
            await #expect(throws: HTTPClientError.bodyTooLarge) { _ = try await client.get(url, bodyMax: 1000) }
        }
    }

    @Test("URLs of other schemes and headers with line ends are refused before a connection")
    func refused() async throws {
        for url in ["", "ftp://a/", "file:///etc/passwd", "http://", "http://a b/", "gopher://a", "http://a/\r\nX: y"] {
            await #expect(throws: HTTPClientError.badURL) { _ = try await client.get(url) }
        }
        for header in [("A\r\nB", "c"), ("A", "b\r\nC: d"), ("", "b"), ("A:", "b"), ("A", "b\u{0}")] {
            await #expect(throws: HTTPClientError.badHeader) {
                _ = try await client.get("http://127.0.0.1:9", headers: [header])
            }
        }
        await loops.stop()
    }

    @Test("no server is a failure with a reason")
    func nobody() async throws {
        await #expect {
            _ = try await client.get("http://127.0.0.1:1/")
        } throws: { error in
            if case HTTPClientError.failed(let text) = error { !text.isEmpty } else { false }
        }
        await loops.stop()
    }
}

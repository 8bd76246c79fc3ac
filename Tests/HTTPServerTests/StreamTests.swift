import EventLoop
import Synchronization
import Testing

@testable import HTTPServer

@Suite("Streaming answers")
struct StreamTests {
    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("are chunked, or of the length that was announced, or end with the connection for HTTP/1.0")
    func framing() async throws {
        try await withServer(handler: { request in
            let headers: HTTPHeaders = request.path == "/known" ? ["Content-Length": "6"] : [:]
            return HTTPResponse(
                status: 200, headers: headers,
                body: .stream { writer in
                    try await writer.write(bytes("abc"))
                    try await writer.write([])
                    try await writer.write(bytes("def"))
                })
        }) { server in
            let client = try await server.connect()
            let chunked = try await client.ask(Self.get)
            #expect(chunked.text == "abcdef" && chunked.headers["transfer-encoding"] == "chunked")
            let known = try await client.ask("GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(known.text == "abcdef" && known.headers["transfer-encoding"] == nil)
            let head = try await client.ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", toHead: true)
            #expect(head.headers["transfer-encoding"] == "chunked")
            let old = try await client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(old.text == "abcdef" && old.headers["connection"] == "close")
        }
    }

    @Test("that fail, or are not as long as announced, cut the connection")
    func failing() async throws {
        try await withServer(handler: { request in
            let path = request.path
            return HTTPResponse(
                status: 200, headers: path == "/fail" ? [:] : ["Content-Length": "4"],
                body: .stream { writer in
                    try await writer.write(bytes("abc"))
                    if path == "/fail" { throw HTTPError(500, "No more.") }
                    if path == "/long" { try await writer.write(bytes("de")) }
                })
        }) { server in
            for path in ["/fail", "/short", "/long"] {
                let client = try await server.connect()
                await client.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
                let rest = String(decoding: try await client.rest(), as: UTF8.self)
                #expect(!rest.contains("0\r\n\r\n") && !rest.contains("abcd"), "\(path)")
            }
        }
    }

    @Test("wait for a client that does not read, and arrive whole when it does")
    func backPressure() async throws {
        let written = Mutex(0)
        let blocked = Latch()
        let piece = [UInt8](repeating: 120, count: 100_000)
        try await withServer(handler: { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    for _ in 0..<300 {
                        try await writer.write(piece)
                        written.withLock { $0 += 1 }
                        blocked.open()
                    }
                })
        }) { server in
            let client = try await server.connect()
            await client.pauseReading()
            await client.send(Self.get)
            await blocked.wait()
            // Thirty megabytes do not fit into the kernel's buffers; a round trip later the writer must have stopped.
            let other = try await server.connect()
            _ = try await other.connectedRoundTrip()
            #expect(written.withLock { $0 } < 300)
            await client.resumeReading()
            #expect(try await client.largeResponse().body.count == 30_000_000)
            #expect(written.withLock { $0 } == 300)
        }
    }

    @Test("stop when the client leaves")
    func left() async throws {
        let stopped = Latch()
        try await withServer(handler: { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    defer { stopped.open() }
                    while true { try await writer.write([UInt8](repeating: 0, count: 10_000)) }
                })
        }) { server in
            let client = try await server.connect()
            await client.pauseReading()
            await client.send(Self.get)
            await client.resumeReading()
            _ = try await client.wait { bytes, _ in bytes.count > 100_000 ? true : nil }
            await client.reset()
            await stopped.wait()
        }
    }

    @Test("to a client that takes nothing for too long are cut off, but not to one that is only slow")
    func slowReader() async throws {
        let stopped = Latch()
        let written = Counter()
        try await withServer(handler: { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    defer { stopped.open() }
                    for _ in 0..<250 {
                        try await writer.write([UInt8](repeating: 0, count: 100_000))
                        written.increment()
                    }
                })
        }) { server in
            let slow = try await server.connect()
            await slow.send(Self.get)
            for _ in 1...4 {
                // The server must have got rid of something in the meantime: what the client reads may come out of
                // the kernel's buffers.
                let next = written.value + 10
                // With all of it written nothing more may come between two turns of the clock, and they would add up.
                guard next <= 250 else { break }
                while written.value < next { await Task.yield() }
                await server.server.advanceClock(seconds: 20)
            }
            #expect(try await slow.largeResponse().body.count == 25_000_000)

            let dead = try await server.connect()
            await dead.pauseReading()
            await dead.send(Self.get)
            _ = try await slow.connectedRoundTrip()
            for _ in 0..<4 { await server.server.advanceClock(seconds: 31) }
            await stopped.wait()
        }
    }
}

extension TestClient {
    /// A chunked answer that is looked at only once it is there: `response()` looks at it after every read.
    func largeResponse() async throws -> TestResponse {
        let end = bytes("0\r\n\r\n")
        _ = try await wait { bytes, _ in bytes.suffix(end.count).elementsEqual(end) ? true : nil }
        return try await response()
    }

    /// A request that the server has answered: everything sent on other connections before has been looked at.
    func connectedRoundTrip() async throws -> Int {
        try await ask("BREW / HTTP/1.1\r\nHost: x\r\n\r\n").status
    }
}

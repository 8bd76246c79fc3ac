import EventLoop
import Glibc
import Seeded
import Synchronization
import Testing

@testable import HTTPServer

@Suite("Request bodies")
struct BodyTests {
    @Test("100 Continue is sent only when the handler reads, and only once")
    func expectContinue() async throws {
        try await withServer(handler: { request in
            request.path == "/read" ? try await echo(request) : HTTPResponse(status: 403)
        }) { server in
            let head = "Host: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            let reading = try await server.connect()
            #expect(try await reading.ask("POST /read HTTP/1.1\r\n" + head).status == 100)
            #expect(try await reading.ask("hi").text == "POST /read? hi")
            // A client that does not wait is not told.
            #expect(try await reading.ask("POST /read HTTP/1.1\r\n" + head + "yo").text == "POST /read? yo")

            let refused = try await server.connect()
            let answer = try await refused.ask("POST /no HTTP/1.1\r\n" + head)
            #expect(answer.status == 403 && answer.headers["connection"] == "close")
            #expect(try await refused.rest() == [])
        }
    }

    @Test("larger than the limit are answered 413, by their length at once and in chunks when they are")
    func tooLarge() async throws {
        var limits = HTTPLimits()
        limits.bodyBytesMax = 10
        try await withServer(limits: limits, handler: echo) { server in
            let client = try await server.connect()
            let fits = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789"
            #expect(try await client.ask(fits).status == 200)
            let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            #expect(try await client.ask(chunked + "a\r\n0123456789\r\n0\r\n\r\n").status == 200)
            #expect(try await client.ask(chunked + "b\r\n0123456789a\r\n").status == 413)
            #expect(try await client.rest() == [])
            let other = try await server.connect()
            // The client expects to be told before it sends, and is told the right thing.
            let answer = try await other.ask(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
            #expect(answer.status == 413)
        }
    }

    @Test("end when their last bytes fill what may wait unread")
    func fillsWhatMayWait() async throws {
        var limits = HTTPLimits()
        limits.unreadBytesMax = 8
        try await withServer(limits: limits, handler: echo) { server in
            let client = try await server.connect()
            for body in ["1234567", "12345678", "123456789", "12345678901234567"] {
                let sized = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n\(body)"
                #expect(try await client.ask(sized).text == "POST /? \(body)")
                let size = String(body.count, radix: 16)
                let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                #expect(try await client.ask("\(chunked)\(size)\r\n\(body)\r\n0\r\n\r\n").text == "POST /? \(body)")
            }
        }
    }

    @Test("that the handler did not read are thrown away up to a limit, and the connection lives on")
    func discarded() async throws {
        var limits = HTTPLimits()
        limits.discardedBytesMax = 100_000
        try await withServer(limits: limits, handler: { _ in HTTPResponse(status: 200) }) { server in
            let client = try await server.connect()
            let body = String(repeating: "x", count: 100_000)
            let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + body + get)
            #expect(try await client.response().headers["connection"] == nil)
            #expect(try await client.response().status == 200)
            let large = String(repeating: body, count: 10)
            await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + large + get)
            let last = try await client.response()
            #expect(last.status == 200 && last.headers["connection"] == "close")
            #expect(try await client.rest() == [])
        }
    }

    @Test("in endless chunks that nobody reads end the connection")
    func endlessChunks() async throws {
        try await withServer(handler: { _ in HTTPResponse(status: 200) }) { server in
            let client = try await server.connect()
            let chunk = "8000\r\n" + String(repeating: "x", count: 0x8000) + "\r\n"
            await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            #expect(try await client.response().status == 200)
            for _ in 0..<64 { await client.send(chunk) }
            #expect(try await client.rest() == [])
        }
    }

    @Test("that break off, or break the coding, throw in the handler")
    func aborted() async throws {
        let seen = Mutex<[HTTPError]>([])
        let latch = Latch()
        try await withServer(handler: { request in
            do {
                return try await echo(request)
            } catch let error as HTTPError {
                if seen.withLock({ seen in
                    seen.append(error)
                    return seen.count == 3
                }) {
                    latch.open()
                }
                throw error
            }
        }) { server in
            let half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234"
            let ended = try await server.connect()
            await ended.send(half)
            await ended.finishSending()
            #expect(try await ended.response().status == 400)
            #expect(try await ended.rest() == [])
            let malformed = try await server.connect()
            let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX"
            #expect(try await malformed.ask(chunked).status == 400)
            #expect(try await malformed.rest() == [])
            let reset = try await server.connect()
            await reset.send(half)
            await reset.reset()
            await latch.wait()
        }
        #expect(seen.withLock { $0.map(\.status) } == [400, 400, 400])
    }

    @Test("stop the client when the handler does not read, and come whole and in order when it does")
    func backPressure() async throws {
        var random = SeededGenerator(seed: 5)
        let block = (0..<100_003).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        var all: [UInt8] = []
        for _ in 0..<160 { all += block }
        let content = all
        let latch = Latch()
        try await withServer(handler: { request in
            await latch.wait()
            var count = 0
            var largest = 0
            var body = request.body
            body.max = .max
            while let piece = try await body.next() {
                let same = content.withUnsafeBytes { all in
                    piece.withUnsafeBytes { piece in
                        all.count >= count + piece.count
                            && memcmp(all.baseAddress! + count, piece.baseAddress!, piece.count) == 0
                    }
                }
                guard same else { throw HTTPError(500, "not what was sent, near \(count)") }
                count += piece.count
                largest = max(largest, piece.count)
            }
            return HTTPResponse(status: 200, body: .bytes(bytes("\(count) \(largest <= 192 * 1024)")))
        }) { server in
            let client = try await server.connect()
            await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(content.count)\r\n\r\n")
            await client.send(content)
            // The kernel's buffers of two sockets hold some megabytes; the rest must still be here.
            #expect(await client.unsent > 0)
            latch.open()
            #expect(try await client.response().text == "\(content.count) true")
            #expect(try await client.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text == "0 true")
        }
    }

    @Test("of a request that is over are not read by the handle of the one before")
    func oldHandle() async throws {
        let kept = Mutex<HTTPBody?>(nil)
        try await withServer(handler: { request in
            guard request.path == "/second" else {
                kept.withLock { $0 = request.body }
                return HTTPResponse(status: 200)
            }
            do {
                _ = try await kept.withLock { $0 }?.collect()
                return HTTPResponse(status: 500)
            } catch { return try await echo(request) }
        }) { server in
            let client = try await server.connect()
            let rest = "HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
            #expect(try await client.ask("POST /first \(rest)").status == 200)
            #expect(try await client.ask("POST /second \(rest)").text == "POST /second? hi")
        }
    }
}

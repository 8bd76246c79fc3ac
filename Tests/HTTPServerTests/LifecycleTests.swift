import EventLoop
import Synchronization
import Testing

@testable import HTTPServer

@Suite("The life of a connection")
struct LifecycleTests {
    private static let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("ends when nothing comes, when a head is slow, when a body is slow, and when it idles")
    func deadlines() async throws {
        var limits = HTTPLimits()
        limits.headSecondsMax = 1000
        limits.bodySecondsMax = 3000
        limits.idleSecondsMax = 7500
        try await withServer(limits: limits, handler: echo) { server in
            // Hours apart, so that a machine that is busy for seconds changes nothing.
            let silent = try await server.connect()
            let slow = try await server.connect()
            await slow.send("GET / HTTP/1.1\r\nHo")
            let body = try await server.connect()
            await body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await body.response().status == 100)
            let idle = try await server.connect()
            #expect(try await idle.ask(Self.get).status == 200)

            await server.server.advanceClock(seconds: 900)
            #expect(await server.server.connectionCount == 4)
            await server.server.advanceClock(seconds: 200)
            #expect(try await silent.rest() == [])
            #expect(try await slow.response().status == 408)
            #expect(try await slow.rest() == [])

            // A piece of the body gives it time again.
            await body.send("ab")
            _ = try await idle.ask(Self.get)
            await server.server.advanceClock(seconds: 2500)
            await body.send("c")
            _ = try await idle.ask(Self.get)
            await server.server.advanceClock(seconds: 3100)
            #expect(try await body.response().status == 408)
            #expect(try await body.rest() == [])

            #expect(try await idle.ask(Self.get).status == 200)
            await server.server.advanceClock(seconds: 7000)
            #expect(try await idle.ask(Self.get).status == 200)
            await server.server.advanceClock(seconds: 7600)
            #expect(try await idle.rest() == [])
        }
    }

    @Test("does not end while a handler is at work")
    func busy() async throws {
        let entered = Latch()
        let latch = Latch()
        try await withServer(handler: { request in
            entered.open()
            await latch.wait()
            return HTTPResponse(status: 200)
        }) { server in
            let client = try await server.connect()
            await client.send(Self.get)
            await entered.wait()
            await server.server.advanceClock(seconds: 1000)
            latch.open()
            #expect(try await client.response().status == 200)
        }
    }

    @Test("ends after as many requests as it may have")
    func requestsMax() async throws {
        var limits = HTTPLimits()
        limits.requestsPerConnectionMax = 2
        try await withServer(limits: limits, handler: echo) { server in
            let client = try await server.connect()
            #expect(try await client.ask(Self.get).headers["connection"] == nil)
            await client.send(Self.get + Self.get)
            #expect(try await client.response().headers["connection"] == "close")
            #expect(try await client.rest() == [])
        }
    }

    @Test("does not begin when there are too many")
    func connectionsMax() async throws {
        var limits = HTTPLimits()
        limits.connectionsMax = 2
        try await withServer(limits: limits, handler: echo) { server in
            let first = try await server.connect()
            let second = try await server.connect()
            #expect(try await first.ask(Self.get).status == 200)
            #expect(try await second.ask(Self.get).status == 200)
            let third = try await server.connect()
            #expect(try await third.rest() == [])
            await first.close()
            // The server has seen the end when the count says so; then there is room again.
            while await server.server.connectionCount == 2 { await Task.yield() }
            let fourth = try await server.connect()
            #expect(try await fourth.ask(Self.get).status == 200)
        }
    }

    @Test("is read no further than a bound while a request is being answered, and loses nothing")
    func pipelineBound() async throws {
        let latch = Latch()
        try await withServer(handler: { request in
            await latch.wait()
            return HTTPResponse(status: 200)
        }) { server in
            let client = try await server.connect()
            let request = "GET /\(String(repeating: "a", count: 7000)) HTTP/1.1\r\nHost: x\r\n\r\n"
            let count = 3_000
            await client.send(String(repeating: request, count: count))
            #expect(await client.unsent > 0)
            latch.open()
            for _ in 0..<count { #expect(try await client.response().status == 200) }
        }
    }

    @Test("answers a client that has ended its side, and what it pipelined before")
    func halfClosed() async throws {
        let latch = Latch()
        try await withServer(handler: { request in
            await latch.wait()
            return try await echo(request)
        }) { server in
            let client = try await server.connect()
            await client.send(Self.get + Self.get + "GET / HT")
            await client.finishSending()
            latch.open()
            #expect(try await client.response().status == 200)
            #expect(try await client.response().status == 200)
            #expect(try await client.rest() == [])
        }
    }

    @Test("tells the handler by cancellation when the client is gone")
    func cancelled() async throws {
        let entered = Latch()
        let cancelled = Latch()
        try await withServer(handler: { _ in
            entered.open()
            await withTaskCancellationHandler {
                await cancelled.wait()
            } onCancel: {
                cancelled.open()
            }
            return HTTPResponse(status: 200)
        }) { server in
            let client = try await server.connect()
            await client.send(Self.get)
            await entered.wait()
            await client.reset()
            await cancelled.wait()
        }
    }

    @Test("goes on in another protocol with what the client had already sent")
    func upgrade() async throws {
        try await withServer(handler: { request in
            guard request.isUpgrade(to: "shout") else { return HTTPResponse(status: 426) }
            return HTTPResponse(
                status: 101, headers: ["Upgrade": "shout", "Connection": "Upgrade"],
                body: .upgrade { upgraded in
                    let stream = upgraded.stream
                    func shout(_ bytes: UnsafeRawBufferPointer) {
                        stream.write(Array(String(decoding: bytes, as: UTF8.self).uppercased().utf8))
                    }
                    upgraded.leftover.withUnsafeBytes { shout($0) }
                    stream.onRead = { shout($0) }
                    stream.onEnd = { stream.close() }
                    stream.startReading()
                })
        }) { server in
            let client = try await server.connect()
            #expect(try await client.ask(Self.get).status == 426)
            let head = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: SHOUT, other\r\nConnection: keep-alive, upgrade\r\n"
            let answer = try await client.ask(Self.get + head + "\r\nearly")
            #expect(answer.status == 426)
            let switched = try await client.response()
            #expect(switched.status == 101 && switched.headers["upgrade"] == "shout")
            #expect(switched.headers["content-length"] == nil && switched.headers["connection"] == "Upgrade")
            #expect(try await client.take(5) == bytes("EARLY"))
            await client.send("late")
            #expect(try await client.take(4) == bytes("LATE"))
            #expect(await server.server.connectionCount == 0)
            await client.close()

            let withBody = try await server.connect()
            #expect(try await withBody.ask(head + "Content-Length: 5\r\n\r\n").status == 400)
        }
    }

    @Test("gives the error hook what the handler threw, and cannot be made to split an answer")
    func errorsAndInjection() async throws {
        try await withServer(handler: { request in
            if request.path == "/throw" { throw HTTPError(422, "Not like this.", headers: ["X-Why": "because"]) }
            return HTTPResponse(
                status: 299,
                headers: [
                    "X-A": "b\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK", "Date": "never", "content-length": "99",
                    "Transfer-Encoding": "chunked",
                ], body: .bytes(bytes("four")))
        }) { server in
            let client = try await server.connect()
            let thrown = try await client.ask("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(thrown.status == 422 && thrown.text == "Not like this.\n" && thrown.headers["x-why"] == "because")
            let answer = try await client.ask(Self.get)
            #expect(answer.status == 299 && answer.headers["x-evil"] == nil && answer.headers["date"] != "never")
            #expect(answer.text == "four" && answer.head.ranges(of: "99").count == 1)
        }
    }

    @Test("keeps a handler on its loop, across waits and in child tasks")
    func onLoop() async throws {
        try await withServer(
            loops: 2,
            handler: { request in
                let loop = request.loop
                var here = [loop.isCurrent]
                await Task.yield()
                here.append(loop.isCurrent)
                async let child = { loop.isCurrent }()
                here.append(await child)
                here.append(loop.isCurrent)
                return HTTPResponse(status: here.allSatisfy { $0 } ? 200 : 500, body: .bytes(bytes("\(here)")))
            }
        ) { server in
            for _ in 0..<8 {
                let answer = try await server.connect().ask(Self.get)
                #expect(answer.status == 200, "\(answer.text)")
            }
        }
    }
}

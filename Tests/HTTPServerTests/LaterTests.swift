import EventLoop
import Synchronization
import Testing

@testable import HTTPServer

/// Answers that wait to be sent.
private final class Waiting: Sendable {
    private let answers = Mutex<[HTTPAnswer]>([])
    let left = Counter()
    let leaving = Latch()
    let came = Latch()

    func add(_ answer: HTTPAnswer) {
        answers.withLock { $0.append(answer) }
        came.open()
    }

    func send(_ response: HTTPResponse) {
        for answer in answers.withLock({ $0 }) { answer.send(response) }
    }
}

@Suite("An answer that comes later")
struct LaterTests {
    private static let get = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
    private static let other = "GET /now HTTP/1.1\r\nHost: x\r\n\r\n"

    private static func handler(_ waiting: Waiting) -> HTTPHandler {
        { request in
            guard request.path == "/wait" else { return HTTPResponse(status: 200, body: .bytes(bytes("now"))) }
            return .later { answer in
                waiting.add(answer)
                return {
                    waiting.left.increment()
                    waiting.leaving.open()
                }
            }
        }
    }

    @Test("comes from another thread, once; what was pipelined behind it is answered after it")
    func later() async throws {
        let waiting = Waiting()
        try await withServer(handler: Self.handler(waiting)) { server in
            let client = try await server.connect()
            await client.send(Self.get + Self.other)
            await waiting.came.wait()
            waiting.send(HTTPResponse(status: 202, body: .bytes(bytes("later"))))
            waiting.send(HTTPResponse(status: 500, body: .bytes(bytes("twice"))))
            let first = try await client.response()
            #expect(first.status == 202 && first.text == "later")
            #expect(try await client.response().text == "now")
            // The connection goes on as any other.
            #expect(try await client.ask(Self.other).text == "now")
            #expect(waiting.left.value == 0)
        }
    }

    @Test("may come from within, and the connection goes on")
    func atOnce() async throws {
        try await withServer(handler: { _ in
            .later { answer in
                answer.send(HTTPResponse(status: 200, body: .bytes(bytes("at once"))))
                return { Issue.record("nobody left") }
            }
        }) { server in
            let client = try await server.connect()
            for _ in 0..<3 { #expect(try await client.ask(Self.get).text == "at once") }
        }
    }

    @Test("a client that leaves first is told of, once, and its connection is gone")
    func departure() async throws {
        for leave in 0..<3 {
            let waiting = Waiting()
            try await withServer(handler: Self.handler(waiting)) { server in
                let client = try await server.connect()
                await client.send(Self.get)
                await waiting.came.wait()
                switch leave {
                case 0: await client.close()
                case 1: await client.reset()
                default: await client.finishSending()
                }
                await waiting.leaving.wait()
                // The answer to a request that is over goes nowhere, and not to the next.
                waiting.send(HTTPResponse(status: 200, body: .bytes(bytes("late"))))
                let other = try await server.connect()
                #expect(try await other.ask(Self.other).text == "now")
                #expect(await server.server.connectionCount == 1)
                #expect(waiting.left.value == 1)
            }
        }
    }

    @Test("a body that cannot come later is answered 500")
    func wrongBody() async throws {
        let waiting = Waiting()
        try await withServer(handler: Self.handler(waiting)) { server in
            let client = try await server.connect()
            await client.send(Self.get)
            await waiting.came.wait()
            waiting.send(HTTPResponse(status: 200, body: .stream { _ in }))
            #expect(try await client.response().status == 500)
        }
    }
}

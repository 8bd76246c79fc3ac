import EventLoop
import Synchronization

@testable import HTTPServer

/// A server on loopback, and clients of it.
struct TestServer: Sendable {
    let server: HTTPServer
    let address: SocketAddress
    let clients: EventLoop

    func connect() async throws -> TestClient { try await TestClient.connect(address, on: clients) }
}

/// Those of the server, but for the times: other tests may have all threads for as long as those are.
let patient: HTTPLimits = {
    var limits = HTTPLimits()
    limits.headSecondsMax = 3_600
    limits.bodySecondsMax = 3_600
    limits.idleSecondsMax = 3_600
    return limits
}()

/// Runs a server for the time of `body`, and ends it however `body` ends.
func withServer(
    loops: Int = 1, limits: HTTPLimits = patient, tracing: HTTPTracing? = nil, handler: @escaping HTTPHandler,
    _ body: (TestServer) async throws -> Void
) async throws {
    let group = LoopGroup(count: loops, name: "server")
    let clients = EventLoop(name: "clients")
    let server = HTTPServer(
        loops: group, address: SocketAddress(host: "127.0.0.1", port: 0), limits: limits,
        tracing: tracing,
        onError: { error, _ in
            (error as? HTTPError)?.response ?? HTTPResponse(status: 500, body: .bytes(Array("\(error)".utf8)))
        }, handler: handler)
    let address = try await server.start()
    let result: Result<Void, any Error>
    do {
        try await body(TestServer(server: server, address: address, clients: clients))
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await server.drain(graceSeconds: 0)
    await clients.stop()
    await group.stop()
    try result.get()
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Answers with method, path, query and body.
@Sendable func echo(_ request: HTTPRequest) async throws -> HTTPResponse {
    let body = try await request.body.collect()
    let text = "\(request.method) \(request.path)?\(request.query) " + String(decoding: body, as: UTF8.self)
    return HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"], body: .bytes(bytes(text)))
}

/// Opens once; whoever waits goes on then.
final class Latch: Sendable {
    private struct State {
        var open = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    func open() {
        let waiting = state.withLock { state in
            state.open = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let open = state.withLock { state in
                if !state.open { state.waiting.append(continuation) }
                return state.open
            }
            if open { continuation.resume() }
        }
    }
}

/// Counts from any task.
final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    @discardableResult
    func increment() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

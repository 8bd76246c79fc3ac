import ChatApp
import EventLoop
import Foundation
import HTTPServer
import JSON
import ServiceKit
import SocketIO
import Synchronization
import TestSupport

/// What the reference's test server does: tells what it was greeted with, sends back what it is sent.
final class EchoDelegate: SocketIODelegate {
    let connected = Signal<SocketIOHandle>()
    let disconnected = Signal<SocketIOHandle>()
    let acknowledged = Signal<Int64>()
    let drained = Signal<SocketIOHandle>()

    func connect(_ socket: SocketIOHandle, namespace: String, auth: JSONValue?) {
        guard namespace == "/" || namespace == "/custom" else {
            return socket.refuse(SocketConnection.invalidNamespace)
        }
        if case .object(["token": .string("wrong")])? = auth { return socket.refuse("Not authorized") }
        socket.accept()
        socket.emit(SharedEvent("auth", namespace: namespace) { Self.write(auth ?? .object([:]), to: &$0) })
        connected.send(socket)
    }

    func event(_ socket: SocketIOHandle, _ event: SocketEvent) {
        switch event.name {
        case "message-with-ack":
            var json = JSONWriter()
            json.array(event.arguments) { Self.write($1, to: &$0) }
            socket.acknowledge(event.ack ?? 0, json: json.finish(), attachments: event.attachments)
        case "leave": socket.disconnect(close: event.arguments.first == .bool(true))
        default:
            socket.emit(
                SharedEvent("message-back", attachments: event.attachments) { json in
                    for argument in event.arguments { Self.write(argument, to: &json) }
                })
        }
    }

    func acknowledged(_ socket: SocketIOHandle, id: Int64, arguments: [JSONValue]) { acknowledged.send(id) }

    func drained(_ socket: SocketIOHandle) { drained.send(socket) }

    func disconnected(_ socket: SocketIOHandle) { disconnected.send(socket) }

    static func write(_ value: JSONValue, to json: inout JSONWriter) {
        switch value {
        case .null: json.null()
        case .bool(let flag): json.value(flag)
        case .int(let number): json.value(number)
        case .double(let number): json.value(number)
        case .string(let text): json.value(text)
        case .array(let values): json.array(values) { write($1, to: &$0) }
        case .object(let members):
            json.object { json in
                for (name, member) in members.sorted(by: { $0.key < $1.key }) {
                    json.key(text: name)
                    write(member, to: &json)
                }
            }
        }
    }
}

/// A server of Socket.IO alone, on loopback.
struct EngineInstance {
    let engine: EngineServer
    let delegate: EchoDelegate
    let loops: LoopGroup
    let server: HTTPServer
    let metrics: Metrics
    let port: Int

    /// - Parameter quick: the times of the reference's test configuration.
    static func with(
        quick: Bool = false, loops count: Int = 2, passOn: (any PassOn)? = nil, log: Log = .silent,
        limits change: (inout ChatLimits) -> Void = { _ in }, _ body: (EngineInstance) async throws -> Void
    ) async throws {
        var limits = ChatLimits()
        if quick {
            limits.socketIO.pingIntervalMilliseconds = 300
            limits.socketIO.pingTimeoutMilliseconds = 200
        }
        change(&limits)
        let loops = LoopGroup(count: count, name: "engine")
        let delegate = EchoDelegate()
        let metrics = Metrics()
        let engine = EngineServer(
            instance: "chat.1", loops: loops, limits: limits, passOn: passOn, log: log, metrics: metrics,
            delegate: { _ in delegate })
        var router = Router()
        engine.register(on: &router)
        let routes = router
        let server = HTTPServer(
            loops: loops, address: SocketAddress(host: "127.0.0.1", port: 0),
            onError: { error, _ in (error as? HTTPError ?? HTTPError(500, "\(error)")).response },
            handler: { try await routes.handle($0) })
        let port = try await server.start().port
        let instance = EngineInstance(
            engine: engine, delegate: delegate, loops: loops, server: server, metrics: metrics, port: port)
        let result: Result<Void, any Error>
        do {
            try await body(instance)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await engine.drain()
        await server.drain(graceSeconds: 1)
        await loops.stop()
        try result.get()
    }

    static let path = "/socket.io/?EIO=4&transport=polling"

    func connect() async throws -> PollClient { try await PollClient.connect(port: port) }

    /// A new session, by polling, over this connection.
    func open(_ client: PollClient) async throws -> String {
        let reply = try await client.ask("GET", Self.path)
        let open = try JSONSerialization.jsonObject(with: Data(reply.body.dropFirst().utf8)) as? [String: Any]
        return open?["sid"] as? String ?? ""
    }

    /// A connection that one certain loop serves, found by trying.
    func connect(onLoop loop: Int) async throws -> PollClient {
        while true {
            let client = try await connect()
            let sid = try await open(client)
            if EngineSessionID(sid)?.loop == loop { return client }
            await client.close()
        }
    }

    func webSocket(_ sid: String? = nil, query: String = "EIO=4&transport=websocket") async throws -> WebSocketClient {
        try await WebSocketClient.connect(
            port: port, path: "/socket.io/?\(query)" + (sid.map { "&sid=\($0)" } ?? ""), subprotocol: nil)
    }

    /// A WebSocket that has joined the root namespace.
    func joined() async throws -> WebSocketClient {
        let socket = try await webSocket()
        _ = try await socket.nextText()
        socket.send("40")
        _ = try await socket.nextText()
        _ = try await socket.nextText()
        return socket
    }
}

/// A client of HTTP that speaks when it is told to, one request after the other.
actor PollClient {
    struct Reply: Sendable {
        let status: Int
        let head: String
        let body: String
    }

    private static let clients = EventLoop(name: "polls")
    nonisolated let loop = clients
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    nonisolated let replies = Signal<Reply>()
    private var stream: TCPStream?
    private var buffer: [UInt8] = []
    private var asked = 0

    static func connect(port: Int) async throws -> PollClient {
        let client = PollClient()
        try await client.connect(port)
        return client
    }

    private func connect(_ port: Int) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            TCPStream.connect(to: SocketAddress(host: "127.0.0.1", port: port), on: loop) { result in
                switch result {
                case .success(let stream):
                    stream.onRead = { self.read($0) }
                    stream.onEnd = { stream.close() }
                    stream.startReading()
                    self.stream = stream
                    continuation.resume()
                case .failure(let error): continuation.resume(throwing: error)
                }
            }
        }
    }

    private func read(_ bytes: UnsafeRawBufferPointer) {
        buffer += bytes
        while let end = String(decoding: buffer, as: UTF8.self).range(of: "\r\n\r\n") {
            let text = String(decoding: buffer, as: UTF8.self)
            let head = String(text[..<end.lowerBound])
            let length =
                head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
            let start = text[..<end.upperBound].utf8.count
            guard buffer.count >= start + length else { return }
            let body = String(decoding: buffer[start..<(start + length)], as: UTF8.self)
            buffer.removeFirst(start + length)
            replies.send(Reply(status: Int(head.split(separator: " ")[1]) ?? 0, head: head, body: body))
        }
    }

    /// Sends a request; `reply` waits for its answer.
    func send(_ method: String, _ target: String, _ body: String = "", headers: String = "") {
        asked += 1
        let length = method == "GET" || method == "OPTIONS" ? "" : "Content-Length: \(body.utf8.count)\r\n"
        stream?.write(Array("\(method) \(target) HTTP/1.1\r\nHost: x\r\n\(headers)\(length)\r\n\(body)".utf8))
    }

    /// The answer to the last request.
    func reply() async throws -> Reply {
        let count = asked
        return try await replies.wait(count: count)[count - 1]
    }

    func ask(_ method: String, _ target: String, _ body: String = "", headers: String = "") async throws -> Reply {
        send(method, target, body, headers: headers)
        return try await reply()
    }

    func poll(_ sid: String) async throws -> Reply { try await ask("GET", "\(EngineInstance.path)&sid=\(sid)") }

    func post(_ sid: String, _ body: String) async throws -> Reply {
        try await ask("POST", "\(EngineInstance.path)&sid=\(sid)", body)
    }

    func close() { stream?.close() }
}

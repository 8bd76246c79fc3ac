import Core
import Crypto
import EventLoop
import Foundation
import HTTPServer
import ServiceKit
import Synchronization
import TestSupport

@testable import ChatApp

/// What `chat_instances` would say.
final class FakeInstances: ChatInstanceRepository {
    private struct State {
        var rows: [String: String] = [:]
        var reads = 0
        var isAway = false
    }
    private let state = Mutex(State())

    init(_ rows: [String: String] = [:]) { state.withLock { $0.rows = rows } }

    var reads: Int { state.withLock { $0.reads } }
    func away(_ isAway: Bool) { state.withLock { $0.isAway = isAway } }
    func put(_ name: String, _ address: String) { state.withLock { $0.rows[name] = address } }

    func all() async throws -> [(name: String, internalAddress: String)] {
        try state.withLock { state in
            state.reads += 1
            if state.isAway { throw AppError(.unavailable, "The database is away.") }
            return state.rows.map { (name: $0.key, internalAddress: $0.value) }
        }
    }
}

/// A server that passes every request on to the instance that `?to=` names, and an instance's internal port with a
/// handler of the test's.
final class PassOnPair: Sendable {
    static let keys = try! SigningKeys([[UInt8](repeating: 7, count: 32)])

    let loops: LoopGroup
    let instances = FakeInstances()
    let passOn: InstancePassOn
    let port: Int
    let owner: PassOnListener
    let ownerAddress: SocketAddress
    let metrics = Metrics()
    private let server: HTTPServer

    init(
        limits: PassOnLimits = PassOnLimits(), keys: SigningKeys = PassOnPair.keys,
        ownerKeys: SigningKeys = PassOnPair.keys, clock: any ServiceClock = SystemClock(), name: String = "owner",
        log: Log = .silent, handler: @escaping HTTPHandler
    ) async throws {
        let loops = LoopGroup(count: 2, name: "pass-on")
        self.loops = loops
        let any = SocketAddress(host: "127.0.0.1", port: 0)
        owner = PassOnListener(
            instance: name, loops: loops, address: any, keys: ownerKeys, limits: limits, clock: clock, log: log,
            metrics: metrics, handler: handler)
        ownerAddress = try await owner.start()
        let passOn = InstancePassOn(
            loops: loops, instances: instances, keys: keys, limits: limits, clock: clock, metrics: metrics)
        self.passOn = passOn
        instances.put(name, ownerAddress.description)
        server = HTTPServer(
            loops: loops, address: any,
            onError: { error, _ in (error as? HTTPError ?? HTTPError(500, "\(error)")).response },
            handler: { request in
                let to = request.query.split(separator: "&").first { $0.hasPrefix("to=") }?.dropFirst(3)
                return try await passOn.answer(request, instance: String(to ?? ""))
            })
        port = try await server.start().port
    }

    func stop() async {
        await passOn.drain()
        await server.drain(graceSeconds: 1)
        await owner.drain(graceSeconds: 1)
        await loops.stop()
    }
}

func withPair(
    limits change: (inout PassOnLimits) -> Void = { _ in }, keys: SigningKeys = PassOnPair.keys,
    ownerKeys: SigningKeys = PassOnPair.keys, clock: any ServiceClock = SystemClock(), name: String = "owner",
    log: Log = .silent, handler: @escaping HTTPHandler, _ body: (PassOnPair) async throws -> Void
) async throws {
    var limits = PassOnLimits()
    change(&limits)
    let pair = try await PassOnPair(
        limits: limits, keys: keys, ownerKeys: ownerKeys, clock: clock, name: name, log: log, handler: handler)
    do {
        try await body(pair)
    } catch {
        await pair.stop()
        throw error
    }
    await pair.stop()
}

/// An HTTP client whose every byte is the test's.
actor RawClient {
    struct NoAnswer: Error {}

    struct Answer: Sendable {
        let status: Int
        let head: String
        let body: String
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let received = Signal<[UInt8]>()
    nonisolated let ended = Signal<Bool>()
    private var stream: TCPStream?
    private var taken = 0

    init(port: Int, on loop: EventLoop) async throws {
        self.loop = loop
        try await connect(SocketAddress(host: "127.0.0.1", port: port))
    }

    private func connect(_ address: SocketAddress) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            TCPStream.connect(to: address, on: loop) { result in
                switch result {
                case .success(let stream):
                    self.stream = stream
                    let (received, ended) = (self.received, self.ended)
                    stream.onRead = { received.send(Array($0)) }
                    stream.onEnd = { ended.send(true) }
                    stream.onClose = { _ in ended.send(true) }
                    stream.startReading()
                    continuation.resume()
                case .failure(let error): continuation.resume(throwing: error)
                }
            }
        }
    }

    func send(_ text: String) { stream?.write(Array(text.utf8)) }
    func reset() { stream?.reset() }

    /// The next answer.
    func answer(seconds: Int = 300) async throws -> Answer {
        let taken = taken
        let pieces = try await received.wait(seconds: seconds) { pieces in
            Self.parse(Array(pieces.joined().dropFirst(taken))) != nil
        }
        let bytes = Array(pieces.joined().dropFirst(taken))
        guard let (answer, count) = Self.parse(bytes) else { throw NoAnswer() }
        self.taken += count
        return answer
    }

    func ask(_ method: String, _ target: String, headers: [String] = [], body: String? = nil) async throws -> Answer {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: chat.example.org"] + headers
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
        return try await answer()
    }

    private static func parse(_ bytes: [UInt8]) -> (Answer, Int)? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let head = String(text[..<end.lowerBound])
        let lines = head.components(separatedBy: "\r\n")
        let length =
            lines.first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
        let start = head.utf8.count + 4
        guard bytes.count >= start + length else { return nil }
        let status = Int(lines[0].split(separator: " ")[1]) ?? 0
        let body = String(decoding: bytes[start..<(start + length)], as: UTF8.self)
        return (Answer(status: status, head: head, body: body), start + length)
    }
}

/// An owner that does what no owner of ours does.
actor RawOwner {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let requests = Signal<String>()
    nonisolated let ends = Signal<Bool>()
    private(set) var address = SocketAddress(host: "127.0.0.1", port: 0)
    private var listener: TCPListener?
    private var streams: [TCPStream] = []
    private let answer: String?

    /// - Parameter answer: sent when something came; nil: nothing ever is.
    init(on loop: EventLoop, answer: String? = nil) async throws {
        self.loop = loop
        self.answer = answer
        try listen()
    }

    private func listen() throws {
        let listener = try TCPListener(on: loop, address: address) { self.accept($0) }
        self.listener = listener
        address = listener.address
    }

    private func accept(_ stream: TCPStream) {
        streams.append(stream)
        let (requests, ends, answer) = (requests, ends, answer)
        stream.onRead = { [unowned stream] bytes in
            requests.send(String(decoding: bytes, as: UTF8.self))
            if let answer { stream.write(Array(answer.utf8)) }
        }
        stream.onEnd = { ends.send(true) }
        stream.onClose = { _ in ends.send(true) }
        stream.startReading()
    }

    /// As the kernel does for a killed process.
    func die() {
        listener?.close()
        listener = nil
        for stream in streams { stream.reset() }
        streams = []
    }
}

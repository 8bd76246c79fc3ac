import EventLoop
import Foundation
import Glibc
import Synchronization

/// A WebSocket client for tests: real sockets, every frame under the test's control. Reading happens on one loop for
/// all clients, so a test may have thousands.
public final class WebSocketClient: Sendable {
    public enum Received: Equatable, Sendable {
        case text(String)
        case binary([UInt8])
        /// RSV1 was set: the payload as it came.
        case compressed([UInt8])
        case pong([UInt8])
        /// The server's close frame.
        case closed(UInt16, String)
        /// The connection is over.
        case end
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
        public init(description: String) { self.description = description }
    }

    struct State {
        var buffer: [UInt8] = []
        var inbox: [Received] = []
        var waiting: CheckedContinuation<Void, Never>?
        var head: [UInt8]?
        var ended = false
        var answersPings = true
        var paused = false
    }

    let descriptor: Int32
    let state = Mutex(State())

    /// - Parameter handshake: nil: the bytes go as they are and the stream is frames from the start.
    public static func connect(
        port: Int, path: String? = "/chat", headers: [String: String] = [:], subprotocol: String? = "martlet.v1"
    ) async throws -> WebSocketClient {
        let client = try WebSocketClient(port: port)
        ClientReader.shared.add(client)
        guard let path else {
            client.state.withLock { $0.head = [] }
            return client
        }
        var lines = [
            "GET \(path) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        if let subprotocol { lines.append("Sec-WebSocket-Protocol: \(subprotocol)") }
        for (name, value) in headers { lines.append("\(name): \(value)") }
        client.send(raw: Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        try await client.wait(seconds: 300) { $0.head != nil || $0.ended }
        let head = client.head
        guard head.hasPrefix("HTTP/1.1 101") else { throw Failure(description: "no upgrade: \(head)") }
        return client
    }

    /// The answer to the handshake.
    public var head: String { String(decoding: state.withLock { $0.head ?? [] }, as: UTF8.self) }

    private init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            Glibc.close(descriptor)
            throw Failure(description: "connect: \(String(cString: strerror(errno)))")
        }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit {
        // The descriptor may be another's as soon as it is closed, so the reader lets go of it first.
        ClientReader.shared.remove(descriptor, closing: true)
    }

    // MARK: Sending

    public func send(_ text: String) { send(frame: 0x1, Array(text.utf8)) }

    /// Any frame, right or wrong.
    public func send(frame opcode: UInt8, _ payload: [UInt8], final: Bool = true, rsv: UInt8 = 0, masked: Bool = true) {
        send(raw: Self.frame(opcode, payload, final: final, rsv: rsv, masked: masked))
    }

    public static func frame(
        _ opcode: UInt8, _ payload: [UInt8], final: Bool = true, rsv: UInt8 = 0, masked: Bool = true,
        mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
    ) -> [UInt8] {
        var bytes = [(final ? 0x80 : 0) | rsv << 4 | opcode]
        let bit: UInt8 = masked ? 0x80 : 0
        if payload.count < 126 {
            bytes.append(bit | UInt8(payload.count))
        } else if payload.count <= 0xFFFF {
            bytes += [bit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        } else {
            bytes.append(bit | 127)
            bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        guard masked else { return bytes + payload }
        bytes += mask
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index & 3]) }
        return bytes
    }

    /// - Returns: false when the connection is broken.
    @discardableResult
    public func send(raw bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    // MARK: Receiving

    /// The next of what came, in order.
    public func next(seconds: Double = 300) async throws -> Received {
        try await wait(seconds: seconds) { !$0.inbox.isEmpty }
        return state.withLock { $0.inbox.removeFirst() }
    }

    public func nextText(seconds: Double = 300) async throws -> String {
        let received = try await next(seconds: seconds)
        guard case .text(let text) = received else { throw Failure(description: "not a text but \(received)") }
        return text
    }

    /// Everything that has come and was not taken.
    public func takeAll() -> [Received] {
        state.withLock { state in
            defer { state.inbox = [] }
            return state.inbox
        }
    }

    /// Waits for the condition to hold of what came.
    func wait(seconds: Double, until condition: @escaping @Sendable (State) -> Bool) async throws {
        let deadline = DispatchTime.now() + seconds
        while !state.withLock({ condition($0) }) {
            guard DispatchTime.now() < deadline else {
                throw Failure(description: "nothing came within \(seconds) s")
            }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if condition(state) { return true }
                    state.waiting = continuation
                    return false
                }
                if isReady { return continuation.resume() }
                DispatchQueue.global().asyncAfter(deadline: deadline) { [weak self] in self?.wake() }
            }
        }
    }

    private func wake() {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    // MARK: Ending

    /// Ends the connection at once, without a word; what the kernel has not sent is lost.
    public func cut() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Leaves what comes in the kernel until it is full.
    public func pauseReading() {
        state.withLock { $0.paused = true }
        ClientReader.shared.remove(descriptor)
    }

    public func resumeReading() {
        state.withLock { $0.paused = false }
        ClientReader.shared.add(self)
    }

    public func ignorePings() { state.withLock { $0.answersPings = false } }

    /// Reads all there is: after a reset libuv tells only once.
    /// - Returns: false at the end of the connection.
    func readable() -> Bool {
        while true {
            switch readChunk() {
            case .some(let more) where more: continue
            case .some: return false
            case nil: return true
            }
        }
    }

    /// Nil when there is nothing for now, false at the end.
    private func readChunk() -> Bool? {
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        var answers: [[UInt8]] = []
        let waiting = state.withLock { state in
            if count > 0 {
                state.buffer += chunk[0..<count]
                Self.parse(&state, &answers)
            } else {
                state.ended = true
                state.inbox.append(.end)
            }
            defer { state.waiting = nil }
            return state.waiting
        }
        for answer in answers { send(raw: answer) }
        waiting?.resume()
        return count > 0
    }

    private static func parse(_ state: inout State, _ answers: inout [[UInt8]]) {
        if state.head == nil {
            let end = Array("\r\n\r\n".utf8)
            guard let at = state.buffer.indices.first(where: { state.buffer[$0...].starts(with: end) }) else { return }
            state.head = Array(state.buffer[..<at])
            state.buffer.removeFirst(at + 4)
        }
        var start = 0
        defer { state.buffer.removeFirst(start) }
        while let (opcode, rsv, payload, total) = frame(in: state.buffer[start...]) {
            start += total
            switch opcode {
            case _ where rsv & 4 != 0: state.inbox.append(.compressed(payload))
            case 0x1: state.inbox.append(.text(String(decoding: payload, as: UTF8.self)))
            case 0x2: state.inbox.append(.binary(payload))
            case 0x8:
                let code = payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : 1005
                state.inbox.append(.closed(code, String(decoding: payload.dropFirst(2), as: UTF8.self)))
                answers.append(frame(0x8, Array(payload.prefix(2))))
            case 0x9 where state.answersPings: answers.append(frame(0xA, payload))
            case 0xA: state.inbox.append(.pong(payload))
            default: break
            }
        }
    }

    private static func frame(
        in bytes: ArraySlice<UInt8>
    ) -> (opcode: UInt8, rsv: UInt8, payload: [UInt8], total: Int)? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
        var length = Int(second & 0x7F)
        var head = 2
        if length >= 126 {
            head += length == 126 ? 2 : 8
            guard bytes.count >= head else { return nil }
            length = bytes.dropFirst(2).prefix(head - 2).reduce(0) { $0 << 8 | Int($1) }
        }
        guard bytes.count >= head + length else { return nil }
        return (first & 0x0F, first >> 4 & 7, Array(bytes.dropFirst(head).prefix(length)), head + length)
    }
}

/// The loop that reads for all clients.
private actor ClientReader {
    static let shared = ClientReader()

    nonisolated let loop = EventLoop(name: "clients")
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var pollers: [Int32: Poller] = [:]

    nonisolated func add(_ client: WebSocketClient) {
        let descriptor = client.descriptor
        loop.execute { [weak client] in
            self.assumeIsolated { reader in
                let poller = Poller(on: reader.loop, descriptor: descriptor) { _ in
                    if client?.readable() != true { self.assumeIsolated { $0.drop(descriptor) } }
                }
                poller.watch(.readable)
                reader.pollers[descriptor] = poller
            }
        }
    }

    nonisolated func remove(_ descriptor: Int32, closing: Bool = false) {
        loop.execute {
            self.assumeIsolated { $0.drop(descriptor) }
            if closing { Glibc.close(descriptor) }
        }
    }

    private func drop(_ descriptor: Int32) {
        pollers.removeValue(forKey: descriptor)?.close()
    }
}

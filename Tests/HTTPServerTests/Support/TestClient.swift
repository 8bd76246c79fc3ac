import EventLoop

struct TimedOut: Error {}

/// An answer as a client sees it.
struct TestResponse {
    var status = 0
    var head = ""
    var headers: [String: String] = [:]
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }
}

/// A client that sends what it is told, right or wrong. Every wait has a deadline.
actor TestClient {
    static let waitSecondsMax: UInt64 = 300

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private var stream: TCPStream?
    private(set) var received: [UInt8] = []
    private(set) var ended = false
    private var waiter: CheckedContinuation<Void, Never>?
    private var drainWaiter: CheckedContinuation<Void, Never>?
    private var timer: LoopTimer?
    private var late = false

    private init(on loop: EventLoop) { self.loop = loop }

    static func connect(_ address: SocketAddress, on loop: EventLoop) async throws -> TestClient {
        let client = TestClient(on: loop)
        try await client.connect(address)
        return client
    }

    private func connect(_ address: SocketAddress) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            TCPStream.connect(to: address, on: loop) { result in
                switch result {
                case .success(let stream):
                    self.adopt(stream)
                    continuation.resume()
                case .failure(let error): continuation.resume(throwing: error)
                }
            }
        }
    }

    private func adopt(_ stream: TCPStream) {
        self.stream = stream
        stream.onRead = { bytes in
            self.received.append(contentsOf: bytes)
            self.wake()
        }
        stream.onEnd = {
            self.ended = true
            self.wake()
        }
        stream.onClose = { _ in
            self.ended = true
            self.wake()
            self.drainWaiter?.resume()
            self.drainWaiter = nil
        }
        stream.onDrain = {
            self.drainWaiter?.resume()
            self.drainWaiter = nil
        }
        stream.startReading()
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    // MARK: Sending

    func send(_ text: String) { stream?.write(Array(text.utf8)) }
    func send(_ bytes: [UInt8]) { stream?.write(bytes) }

    /// Bytes that the server's side has not let through.
    var unsent: Int { stream?.pendingBytes ?? 0 }

    /// Returns when the kernel has all that was sent.
    func drained() async {
        guard let stream, stream.isOpen, stream.pendingBytes > 0 else { return }
        await withCheckedContinuation { drainWaiter = $0 }
    }

    func finishSending() { stream?.shutdown() }
    func close() { stream?.close() }
    func reset() { stream?.reset() }
    func pauseReading() { stream?.stopReading() }
    func resumeReading() { stream?.startReading() }

    // MARK: Receiving

    /// Waits until `ready` finds what it looks for in the bytes received, or the server has ended its side.
    func wait<T: Sendable>(for ready: @Sendable ([UInt8], _ ended: Bool) throws -> T?) async throws -> T {
        let timer = LoopTimer(on: loop) {
            self.late = true
            self.wake()
        }
        timer.start(milliseconds: Self.waitSecondsMax * 1000)
        defer { timer.cancel() }
        while true {
            if let found = try ready(received, ended) { return found }
            guard !late, !ended else { throw TimedOut() }
            await withCheckedContinuation { waiter = $0 }
        }
    }

    /// The next whole answer. Interim answers (100) are answers too.
    func response(toHead: Bool = false) async throws -> TestResponse {
        let (response, count) = try await wait { bytes, ended in
            try TestResponse.parse(bytes, ended: ended, toHead: toHead)
        }
        received.removeFirst(count)
        return response
    }

    /// Everything up to the end of the connection.
    func rest() async throws -> [UInt8] {
        let bytes = try await wait { bytes, ended in ended ? bytes : nil }
        received = []
        return bytes
    }

    /// Waits for `count` bytes and takes them.
    func take(_ count: Int) async throws -> [UInt8] {
        let bytes = try await wait { bytes, _ in bytes.count >= count ? Array(bytes.prefix(count)) : nil }
        received.removeFirst(count)
        return bytes
    }

    func ask(_ text: String, toHead: Bool = false) async throws -> TestResponse {
        send(text)
        return try await response(toHead: toHead)
    }
}

extension TestResponse {
    struct Malformed: Error {}

    /// A strict reader of answers, so that what the server writes is tested too.
    static func parse(_ bytes: [UInt8], ended: Bool, toHead: Bool) throws -> (TestResponse, Int)? {
        let mark = Array("\r\n\r\n".utf8)
        guard let end = bytes.indices.dropLast(3).first(where: { bytes[$0..<($0 + 4)].elementsEqual(mark) }) else {
            if ended && !bytes.isEmpty { throw Malformed() }
            return nil
        }
        var response = TestResponse()
        response.head = String(decoding: bytes[..<end], as: UTF8.self)
        let lines = response.head.replacing("\r\n", with: "\n").split(separator: "\n").map(String.init)
        let status = lines[0].split(separator: " ", maxSplits: 2)
        guard status[0] == "HTTP/1.1", let code = Int(status[1]) else { throw Malformed() }
        response.status = code
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[1].first == " " else { throw Malformed() }
            response.headers[parts[0].lowercased()] = String(parts[1].dropFirst())
        }
        var position = end + 4
        if toHead || code < 200 || code == 204 || code == 304 { return (response, position) }
        if response.headers["transfer-encoding"] == "chunked" {
            guard try response.takeChunks(bytes, &position) else { return nil }
        } else if let length = response.headers["content-length"].flatMap({ Int($0) }) {
            guard bytes.count - position >= length else { return nil }
            response.body = Array(bytes[position..<(position + length)])
            position += length
        } else {
            guard ended else { return nil }
            response.body = Array(bytes[position...])
            position = bytes.count
        }
        return (response, position)
    }

    private mutating func takeChunks(_ bytes: [UInt8], _ position: inout Int) throws -> Bool {
        while true {
            guard let feed = bytes[position...].firstIndex(of: 0x0A) else { return false }
            let line = String(decoding: bytes[position..<(feed - 1)], as: UTF8.self)
            guard let size = Int(line, radix: 16), bytes[feed - 1] == 0x0D else { throw Malformed() }
            guard bytes.count >= feed + 1 + size + 2 else { return false }
            body += bytes[(feed + 1)..<(feed + 1 + size)]
            guard bytes[feed + 1 + size] == 0x0D, bytes[feed + 2 + size] == 0x0A else { throw Malformed() }
            position = feed + 3 + size
            if size == 0 { return true }
        }
    }
}

import EventLoop

/// What a handler answers.
///
/// The server adds `Date`, `Content-Length` or `Transfer-Encoding`, and `Connection`; a handler sets `Content-Length`
/// only to announce the size of a stream.
public struct HTTPResponse: Sendable {
    public enum Body: Sendable {
        case empty
        case bytes([UInt8])
        /// Made by `HTTPResponse.file`.
        case file(FileBody)
        /// Called on the loop after the head was sent. Chunked, unless the headers have a `Content-Length`. If it
        /// throws, the connection is cut so that the client sees that something is missing.
        case stream(@Sendable (HTTPBodyWriter) async throws -> Void)
        /// Status 101: called once on the loop, after the head was sent; the connection belongs to the callee from
        /// then.
        case upgrade(@Sendable (sending UpgradedStream) -> Void)
        /// The answer comes later, by the `HTTPAnswer` that the closure is given: a long poll waits without a task,
        /// which would be most of its memory. Called once on the loop, after the handler; what it returns is called on
        /// the loop if the client leaves first. Status and headers of this response are not sent.
        case later(@Sendable (HTTPAnswer) -> @Sendable () -> Void)
    }

    public var status: Int
    public var headers: HTTPHeaders
    public var body: Body

    public init(status: Int, headers: HTTPHeaders = [:], body: Body = .empty) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// An answer that comes later: see `Body.later`.
    public static func later(_ begin: @escaping @Sendable (HTTPAnswer) -> @Sendable () -> Void) -> HTTPResponse {
        HTTPResponse(status: 200, body: .later(begin))
    }
}

/// Where the answer to one request goes that was not there when its handler returned.
public struct HTTPAnswer: Sendable, Equatable {
    let owner: HTTPLoop
    let id: ConnectionID
    let serial: UInt32

    /// Answers, from any thread. What comes after the first answer, or after the client has left, is dropped.
    /// - Parameter response: empty or of bytes; another body is answered 500.
    public func send(_ response: HTTPResponse) {
        let owner = owner
        if owner.loop.isCurrent {
            owner.assumeIsolated { [id, serial] in $0.answerLater(id, serial, response) }
        } else {
            owner.loop.execute { [id, serial] in owner.assumeIsolated { $0.answerLater(id, serial, response) } }
        }
    }

    /// Whether both answer the same request.
    public static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.serial == right.serial && left.owner === right.owner
    }
}

/// A connection that has left HTTP. Not Sendable: it lives on its loop.
public struct UpgradedStream {
    public let stream: TCPStream
    /// What the client had already sent after its request.
    public let leftover: [UInt8]

    public init(stream: TCPStream, leftover: [UInt8]) {
        self.stream = stream
        self.leftover = leftover
    }
}

/// Where a streaming answer's pieces go.
protocol HTTPBodySink: Sendable {
    func write(_ bytes: [UInt8]) async throws
}

/// Writes a streaming answer.
public struct HTTPBodyWriter: Sendable {
    private let sink: any HTTPBodySink

    init(_ sink: any HTTPBodySink) { self.sink = sink }

    /// Returns when the client has taken enough for more to be written. Empty pieces are not sent.
    /// - Throws: `HTTPError` when the client has left, is too slow, or when more is written than was announced.
    public func write(_ bytes: [UInt8]) async throws {
        guard !bytes.isEmpty else { return }
        try await sink.write(bytes)
    }
}

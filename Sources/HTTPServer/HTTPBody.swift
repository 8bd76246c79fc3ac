import Synchronization

/// Where the pieces of a body come from.
protocol HTTPBodySource: Sendable {
    /// The next piece, nil after the last. Throws `HTTPError`: 413 when more than `max` bytes come in all, 400 when the
    /// body is malformed or cut off, 408 when it is too slow.
    func next(max: Int) async throws -> [UInt8]?
}

/// The body of a request, read in pieces and once. What the handler does not read yet stops the client from sending.
public struct HTTPBody: Sendable {
    /// Nil when it comes in chunks.
    public let contentLength: Int?
    /// Bytes that reading lets through; the server's limit, unless the route has its own.
    public var max: Int

    private let source: (any HTTPBodySource)?

    /// No body.
    public static let empty = HTTPBody(contentLength: 0, max: 0, source: nil)

    /// A body at hand.
    public init(_ bytes: [UInt8]) {
        self.init(contentLength: bytes.count, max: .max, source: bytes.isEmpty ? nil : BytesSource(bytes))
    }

    init(contentLength: Int?, max: Int, source: (any HTTPBodySource)?) {
        self.contentLength = contentLength
        self.max = max
        self.source = source
    }

    /// Known to be empty without reading.
    public var isEmpty: Bool { source == nil }

    /// The next piece, nil at the end.
    /// - Throws: `HTTPError`: 413 beyond `max`, 400 when malformed or aborted, 408 when too slow.
    public func next() async throws -> [UInt8]? {
        guard let source else { return nil }
        if let contentLength, contentLength > max { throw HTTPError.bodyTooLarge }
        return try await source.next(max: max)
    }

    /// The whole body.
    /// - Parameter max: a tighter bound than the route's, if given.
    /// - Throws: as `next()`.
    public func collect(max: Int? = nil) async throws -> [UInt8] {
        var bounded = self
        if let max { bounded.max = Swift.min(max, self.max) }
        guard var whole = try await bounded.next() else { return [] }
        while let more = try await bounded.next() { whole += more }
        return whole
    }
}

/// A body that needs no connection.
private final class BytesSource: HTTPBodySource {
    private let rest: Mutex<[UInt8]?>

    init(_ bytes: [UInt8]) { rest = Mutex(bytes) }

    func next(max: Int) async throws -> [UInt8]? {
        let bytes = rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
        if let bytes, bytes.count > max { throw HTTPError.bodyTooLarge }
        return bytes
    }
}

import Glibc

/// HTTP/1.1 requests from bytes, without I/O: it is fed what arrives and says what it means (RFC 9112).
///
/// Heads are checked line by line here, so that only CRLF ends a line and nothing is folded, and read by llhttp once
/// they are complete; bodies are counted here. After an error there is no way back: where the next request would
/// start is anybody's guess, and a guess is what request smuggling lives on.
///
/// A class, since a connection keeps it: changing a struct in a property is checked for exclusive access at run time.
final class HTTPParser {
    enum Event {
        /// Everything was taken in; more is needed.
        case needsMore
        /// A head. Body events and `end` follow only if its framing is not `.none`.
        case head(ParsedHead)
        /// A piece of the body: offsets of the input.
        case body(Range<Int>)
        case end
    }

    private enum State {
        case head
        case length(Int)
        case chunked(ChunkDecoder)
        case failed(HTTPError)
    }

    /// RFC 9112 §2.2 asks servers to skip an empty line before a request; old clients send one after a body.
    static let emptyLinesMax = 2
    /// Method, version and spaces around the target.
    private static let requestLineSlack = 32

    private let limits: HTTPLimits
    private let heads: HeadParser
    private let headBytesMax: Int
    private var state = State.head

    // Of a head that has not arrived whole: its bytes, and how far its lines have been looked at.
    private var partial: [UInt8] = []
    private var scan = HeadScan()

    /// - Parameter heads: may be shared by all parsers of a thread.
    init(limits: HTTPLimits, heads: HeadParser) {
        self.limits = limits
        self.heads = heads
        headBytesMax = min(limits.headBytesMax, Int(UInt16.max))
    }

    /// Some of a head has arrived, but not all.
    var isInsideHead: Bool { !partial.isEmpty }

    /// Goes on from `position`, which moves to the first byte not taken.
    /// - Throws: `HTTPError`: 400, 413, 414, 417, 431, 501, 505, and the same again when called again.
    func next(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(HTTPError) -> Event {
        do throws(HTTPError) {
            switch state {
            case .head: return try nextHead(bytes, &position)
            case .length(let remaining):
                let count = min(remaining, bytes.count - position)
                if remaining > 0 && count == 0 { return .needsMore }
                if remaining == 0 {
                    state = .head
                    return .end
                }
                state = .length(remaining - count)
                position += count
                return .body((position - count)..<position)
            case .chunked(var decoder):
                let event = try decoder.next(bytes, &position)
                state = event == .end ? .head : .chunked(decoder)
                switch event {
                case .needsMore: return .needsMore
                case .data(let range): return .body(range)
                case .end: return .end
                }
            case .failed(let error): throw error
            }
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private func nextHead(
        _ bytes: UnsafeRawBufferPointer, _ position: inout Int
    ) throws(HTTPError) -> Event {
        guard position < bytes.count else { return .needsMore }
        // One byte more than may be: enough to see that it is too much.
        let room = headBytesMax + 1 - partial.count
        let piece = UnsafeRawBufferPointer(rebasing: bytes[position..<min(bytes.count, position + room)])
        let before = partial.count
        if partial.isEmpty {
            var scan = HeadScan()
            if try scan.run(piece, limits: limits) {
                position += scan.end
                return try complete(piece, scan)
            }
            partial = Array(piece)
            self.scan = scan
        } else {
            partial.append(contentsOf: piece)
            let found = try scanPartial()
            if found {
                position += scan.end - before
                let head = partial
                partial = []
                return try head.withUnsafeBytesTyped { bytes throws(HTTPError) in try complete(bytes, scan) }
            }
        }
        position += piece.count
        guard partial.count <= headBytesMax else {
            throw scan.lines == 0
                ? HTTPError(414, "The request target is too long.")
                : HTTPError(431, "The request head is too large.")
        }
        return .needsMore
    }

    private func scanPartial() throws(HTTPError) -> Bool {
        var scan = scan
        defer { self.scan = scan }
        return try partial.withUnsafeBytesTyped { bytes throws(HTTPError) in try scan.run(bytes, limits: limits) }
    }

    private func complete(
        _ bytes: UnsafeRawBufferPointer, _ scan: HeadScan
    ) throws(HTTPError) -> Event {
        let range = scan.start..<scan.end
        guard range.count <= headBytesMax else { throw HTTPError(431, "The request head is too large.") }
        let parsed = try heads.parse(UnsafeRawBufferPointer(rebasing: bytes[range]), limits: limits)
        switch parsed.framing {
        case .none: break
        case .length(let length): state = .length(length)
        case .chunked: state = .chunked(ChunkDecoder(limits: limits))
        }
        return .head(parsed)
    }

    /// Looks at a head line by line.
    private struct HeadScan {
        var start = 0
        var end = 0
        var lines = 0
        private var lineStart = 0
        private var scanned = 0
        private var emptyLines = 0

        /// - Parameter bytes: from the first byte of the head, on every call.
        /// - Returns: whether the empty line that ends the head is there.
        mutating func run(_ bytes: UnsafeRawBufferPointer, limits: HTTPLimits) throws(HTTPError) -> Bool {
            guard let base = bytes.baseAddress else { return false }
            while scanned < bytes.count, let found = memchr(base + scanned, 0x0A, bytes.count - scanned) {
                let feed = UnsafeRawPointer(found) - base
                guard feed > lineStart, bytes[feed - 1] == 0x0D else {
                    throw HTTPError(400, "A line of the head ends without CR.")
                }
                let length = feed - 1 - lineStart
                guard memchr(base + lineStart, 0x0D, length) == nil else {
                    throw HTTPError(400, "The head has a bare CR.")
                }
                let first = bytes[lineStart]
                scanned = feed + 1
                lineStart = scanned
                if length == 0 {
                    if lines > 0 {
                        end = scanned
                        return true
                    }
                    start = scanned
                    emptyLines += 1
                    guard emptyLines <= HTTPParser.emptyLinesMax else {
                        throw HTTPError(400, "There are empty lines before the request.")
                    }
                    continue
                }
                guard first != 0x20, first != 0x09 else {
                    throw HTTPError(400, "A line of the head starts with white space.")
                }
                lines += 1
                guard lines - 1 <= limits.headersMax else { throw HTTPError(431, "There are too many headers.") }
            }
            scanned = bytes.count
            if lines == 0, bytes.count - lineStart > limits.targetBytesMax + HTTPParser.requestLineSlack {
                throw HTTPError(414, "The request target is too long.")
            }
            return false
        }
    }
}

extension Array where Element == UInt8 {
    /// `withUnsafeBytes` that keeps the type of the error.
    func withUnsafeBytesTyped<T, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> T
    ) throws(Failure) -> T {
        try withUnsafeBufferPointer { buffer throws(Failure) in try body(UnsafeRawBufferPointer(buffer)) }
    }
}

import Glibc

/// Takes a `multipart/form-data` body apart, without I/O (RFC 7578, RFC 2046 §5.1).
///
/// It is strict where two readers could disagree: every line ends in CRLF, the boundary is preceded by CRLF (but for
/// the first), and a body that ends without its closing boundary is an error. What stands before the first boundary
/// and behind the last is skipped.
struct MultipartParser {
    enum Event: Equatable {
        /// Everything was taken in; more is needed.
        case needsMore
        case partBegin(HTTPHeaders)
        /// A piece of the part's content.
        case partData([UInt8])
        case partEnd
        /// The closing boundary was there. What follows is skipped.
        case end
    }

    private enum State {
        /// Before the first boundary.
        case preamble
        /// Right behind a boundary: CRLF starts a part, `--` ends the body.
        case boundaryEnd
        case head
        case content
        case epilogue
        case failed(HTTPError)
    }

    private let limits: MultipartLimits
    /// CRLF, two hyphens, the boundary.
    private let delimiter: [UInt8]
    private var state = State.preamble
    /// What arrived and could not be decided yet. Starts with a CRLF that nobody sent, so that the first boundary looks
    /// like the others.
    private var buffer: [UInt8] = [0x0D, 0x0A]
    private var parts = 0
    private var preambleBytes = 0

    /// - Parameter boundary: as in the Content-Type, without quotes.
    /// - Throws: 400 when it is not one of RFC 2046: 1 to 70 characters of a certain set, no space at the end.
    init(boundary: String, limits: MultipartLimits = MultipartLimits()) throws(HTTPError) {
        let bytes = Array(boundary.utf8)
        guard (1...70).contains(bytes.count), bytes.last != 0x20, bytes.allSatisfy(Self.isBoundary) else {
            throw HTTPError(400, "The multipart boundary is not a valid one.")
        }
        delimiter = Array("\r\n--".utf8) + bytes
        self.limits = limits
    }

    /// Takes what arrived. Call `next()` until it says `needsMore` before feeding more.
    mutating func feed(_ bytes: [UInt8]) {
        if case .epilogue = state { return }
        if buffer.isEmpty { buffer = bytes } else { buffer.append(contentsOf: bytes) }
    }

    /// Call when the body is over and `next()` said `needsMore`.
    /// - Throws: 400 when the closing boundary is missing.
    mutating func finish() throws(HTTPError) {
        if case .failed(let error) = state { throw error }
        guard case .epilogue = state else { throw fail("The multipart body ends before its closing boundary.") }
    }

    /// - Throws: `HTTPError` 400 or 413, and the same again when called again.
    mutating func next() throws(HTTPError) -> Event {
        while true {
            switch state {
            case .preamble: if try !skipPreamble() { return .needsMore }
            case .boundaryEnd:
                guard let event = try takeBoundaryEnd() else {
                    if case .head = state { continue }
                    return .needsMore
                }
                return event
            case .head: return try takeHead()
            case .content: return takeContent()
            case .epilogue:
                buffer = []
                return .needsMore
            case .failed(let error): throw error
            }
        }
    }

    private mutating func fail(_ message: String, status: Int = 400) -> HTTPError {
        let error = HTTPError(status, message)
        state = .failed(error)
        buffer = []
        return error
    }

    private mutating func skipPreamble() throws(HTTPError) -> Bool {
        let found = find(delimiter, from: 0)
        let skipped = found ?? buffer.count - tailThatMayBegin(delimiter)
        preambleBytes += skipped
        // Also when the boundary is there: what is refused must not depend on how it was cut.
        guard preambleBytes <= limits.preambleBytesMax else {
            throw fail("The multipart body does not start with its boundary.")
        }
        buffer.removeFirst(skipped + (found == nil ? 0 : delimiter.count))
        if found != nil { state = .boundaryEnd }
        return found != nil
    }

    /// Nil when nothing is to be told: a part begins (state `head`), or more is needed.
    private mutating func takeBoundaryEnd() throws(HTTPError) -> Event? {
        // RFC 2046 lets spaces and tabs stand between a boundary and its CRLF.
        var index = 0
        while index < buffer.count, buffer[index] == 0x20 || buffer[index] == 0x09 { index += 1 }
        guard index <= limits.paddingBytesMax else { throw fail("A boundary line is too long.") }
        guard buffer.count >= index + 2 else { return nil }
        if index == 0, buffer[0] == 0x2D, buffer[1] == 0x2D {
            buffer = []
            state = .epilogue
            return .end
        }
        guard buffer[index] == 0x0D, buffer[index + 1] == 0x0A else {
            throw fail("A multipart boundary is followed by something else than a line end.")
        }
        // The CRLF stays: a part without headers has its empty line right here.
        buffer.removeFirst(index)
        parts += 1
        guard parts <= limits.partsMax else { throw fail("The multipart body has too many parts.", status: 413) }
        state = .head
        return nil
    }

    private mutating func takeHead() throws(HTTPError) -> Event {
        guard let end = find([0x0D, 0x0A, 0x0D, 0x0A], from: 0) else {
            // Three more may be the beginning of the mark that ends it.
            guard buffer.count <= limits.partHeadBytesMax + 3 else { throw fail("The head of a part is too large.") }
            return .needsMore
        }
        guard end <= limits.partHeadBytesMax else { throw fail("The head of a part is too large.") }
        let lines = end > 2 ? buffer[2..<end] : []
        let headers: HTTPHeaders
        do throws(HTTPError) {
            headers = try Self.headers(lines)
        } catch {
            state = .failed(error)
            throw error
        }
        // The last CRLF stays in front of the content: an empty part's delimiter starts with it.
        buffer.removeFirst(end + 2)
        skipsLineEnd = true
        state = .content
        return .partBegin(headers)
    }

    /// The CRLF in front of the buffer belongs to the head, unless the delimiter starts with it.
    private var skipsLineEnd = false

    private mutating func takeContent() -> Event {
        if let found = find(delimiter, from: 0) {
            let start = skipsLineEnd ? 2 : 0
            if found > start {
                let data = Array(buffer[start..<found])
                buffer.removeFirst(found)
                skipsLineEnd = false
                return .partData(data)
            }
            buffer.removeFirst(found + delimiter.count)
            skipsLineEnd = false
            state = .boundaryEnd
            return .partEnd
        }
        let decided = buffer.count - tailThatMayBegin(delimiter)
        guard decided > 0 else { return .needsMore }
        let start = skipsLineEnd ? 2 : 0
        guard decided > start else { return .needsMore }
        skipsLineEnd = false
        // The piece goes on as it came, without what may be the boundary's beginning: of a large content nothing is
        // copied, and one that waits to be written stands in memory once.
        var data = buffer
        buffer = Array(data[decided...])
        data.removeLast(data.count - decided)
        if start > 0 { data.removeFirst(start) }
        return .partData(data)
    }

    // MARK: Looking

    private func find(_ mark: [UInt8], from start: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            mark.withUnsafeBytes { mark in
                guard let base = bytes.baseAddress, let pattern = mark.baseAddress else { return nil }
                var index = start
                // Every mark starts with CR, which memchr finds faster than anything written here.
                while index + mark.count <= bytes.count,
                    let found = memchr(base + index, 0x0D, bytes.count - index - mark.count + 1)
                {
                    index = UnsafeRawPointer(found) - base
                    if memcmp(base + index, pattern, mark.count) == 0 { return index }
                    index += 1
                }
                return nil
            }
        }
    }

    /// How many of the buffer's last bytes are a beginning of `mark`.
    private func tailThatMayBegin(_ mark: [UInt8]) -> Int {
        let count = buffer.count
        for start in max(0, count - mark.count + 1)..<count where buffer[start] == mark[0] {
            if buffer[start...].elementsEqual(mark[..<(count - start)]) { return count - start }
        }
        return 0
    }

    private static func isBoundary(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x20: true
        default: "'()+_,-./:=?".utf8.contains(byte)
        }
    }

    /// The lines of a part's head, without the last line end.
    private static func headers(_ lines: ArraySlice<UInt8>) throws(HTTPError) -> HTTPHeaders {
        var headers = HTTPHeaders()
        var rest = lines
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0D) ?? rest.endIndex
            let line = rest[rest.startIndex..<end]
            guard end == rest.endIndex || (end + 1 < rest.endIndex && rest[end + 1] == 0x0A) else {
                throw HTTPError(400, "The head of a part has a bare CR.")
            }
            rest = end == rest.endIndex ? [] : rest[(end + 2)...]
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(isToken),
                line[colon...].allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 })
            else { throw HTTPError(400, "The head of a part is malformed.") }
            var value = line[(colon + 1)...].drop { $0 == 0x20 || $0 == 0x09 }
            while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
            headers.add(String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
        }
        return headers
    }
}

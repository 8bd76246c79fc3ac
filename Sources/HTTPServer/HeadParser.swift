import Cllhttp
import Glibc

/// What a request's head says, once it has been found sound.
struct ParsedHead: Sendable {
    enum Framing: Sendable, Equatable {
        case none
        case length(Int)
        case chunked
    }

    let head: RequestHead
    let method: HTTPMethod
    let path: String
    /// Of HTTP/1.x: 0 or 1.
    let minor: UInt8
    let framing: Framing
    let keepAlive: Bool
    let expectsContinue: Bool
}

/// Reads one complete head through llhttp, and adds what that leaves open. It keeps nothing between heads: one serves
/// a whole loop.
final class HeadParser {
    /// Where llhttp's callbacks put what they are given.
    private struct Sink {
        var base: UnsafePointer<CChar>?
        var fields: [RequestHead.Field] = []
        var target = 0..<0
        var name = 0..<0
        var value = 0..<0
        /// llhttp's, as they stand when the headers are complete: it clears them afterwards. Nil until then.
        var flags: UInt32?

        /// A span that goes on where the former ended is its continuation.
        func range(_ at: UnsafePointer<CChar>?, _ length: Int, after former: Range<Int>) -> Range<Int> {
            guard let at, let base else { return former }
            let start = at - base
            let continues = !former.isEmpty && start == former.upperBound
            return (continues ? former.lowerBound : start)..<(start + length)
        }
    }

    private static let get = Array("GET ".utf8)
    private static let lineEnd = Array(" HTTP/1.".utf8)

    private let parser: UnsafeMutablePointer<llhttp_t>
    private let settings: UnsafeMutablePointer<llhttp_settings_t>
    private let sink: UnsafeMutablePointer<Sink>

    init() {
        parser = .allocate(capacity: 1)
        settings = .allocate(capacity: 1)
        sink = .allocate(capacity: 1)
        sink.initialize(to: Sink())
        llhttp_settings_init(settings)
        setCallbacks()
    }

    deinit {
        sink.deinitialize(count: 1)
        sink.deallocate()
        settings.deallocate()
        parser.deallocate()
    }

    private static func sink(_ parser: UnsafeMutablePointer<llhttp_t>?) -> UnsafeMutablePointer<Sink>? {
        parser?.pointee.data?.assumingMemoryBound(to: Sink.self)
    }

    private func setCallbacks() {
        settings.pointee.on_url = { parser, at, length in
            guard let sink = HeadParser.sink(parser) else { return -1 }
            sink.pointee.target = sink.pointee.range(at, length, after: sink.pointee.target)
            return 0
        }
        settings.pointee.on_header_field = { parser, at, length in
            guard let sink = HeadParser.sink(parser) else { return -1 }
            sink.pointee.name = sink.pointee.range(at, length, after: sink.pointee.name)
            return 0
        }
        settings.pointee.on_header_value = { parser, at, length in
            guard let sink = HeadParser.sink(parser) else { return -1 }
            sink.pointee.value = sink.pointee.range(at, length, after: sink.pointee.value)
            return 0
        }
        settings.pointee.on_header_value_complete = { parser in
            guard let sink = HeadParser.sink(parser) else { return -1 }
            let (name, value) = (sink.pointee.name, sink.pointee.value)
            sink.pointee.fields.append(
                RequestHead.Field(
                    nameStart: UInt16(truncatingIfNeeded: name.lowerBound),
                    nameEnd: UInt16(truncatingIfNeeded: name.upperBound),
                    valueStart: UInt16(truncatingIfNeeded: value.lowerBound),
                    valueEnd: UInt16(truncatingIfNeeded: value.upperBound)))
            sink.pointee.name = 0..<0
            sink.pointee.value = 0..<0
            return 0
        }
        settings.pointee.on_headers_complete = { parser in
            guard let sink = HeadParser.sink(parser) else { return -1 }
            sink.pointee.flags = parser.map { UInt32($0.pointee.flags) }
            // The body is not llhttp's: ours is stricter about what stands between chunks.
            return 1
        }
    }

    /// - Parameter bytes: one head from its first byte to the empty line, at most 65535 bytes, its line ends already
    ///   found to be CRLF.
    /// - Throws: 400, 414, 417, 501, 505.
    func parse(_ bytes: UnsafeRawBufferPointer, limits: HTTPLimits) throws(HTTPError) -> ParsedHead {
        let method = try method(bytes)
        llhttp_init(parser, HTTP_REQUEST, settings)
        parser.pointee.data = UnsafeMutableRawPointer(sink)
        let base = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        sink.pointee = Sink(base: base)
        sink.pointee.fields.reserveCapacity(12)
        let code = llhttp_execute(parser, base, bytes.count)
        guard code == HPE_OK || code == HPE_PAUSED_UPGRADE, sink.pointee.flags != nil else {
            throw Self.error(code)
        }
        guard parser.pointee.http_major == 1, parser.pointee.http_minor <= 1 else {
            throw HTTPError(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        }
        let target = sink.pointee.target
        // llhttp lets more spaces through than RFC 9112 §3 has.
        let line = Self.lineEnd
        guard target.lowerBound == method.rawValue.utf8.count + 1, bytes[target.upperBound...].starts(with: line),
            bytes[target.upperBound + line.count + 1] == 0x0D
        else { throw HTTPError(400, "The request line is malformed.") }
        guard target.count <= limits.targetBytesMax else { throw HTTPError(414, "The request target is too long.") }
        let head = RequestHead(
            bytes: Array(bytes), fields: trimmed(bytes), targetStart: target.lowerBound, targetEnd: target.upperBound)
        return try checked(head, method)
    }

    /// The method is looked at before llhttp, which knows more of them than are allowed here.
    private func method(_ bytes: UnsafeRawBufferPointer) throws(HTTPError) -> HTTPMethod {
        if bytes.starts(with: Self.get) { return .get }
        let end = bytes.firstIndex(of: 0x20) ?? 0
        for method in HTTPMethod.allowed where method.rawValue.utf8.count == end {
            if method.rawValue.utf8.elementsEqual(bytes[..<end]) { return method }
        }
        guard end > 0, bytes[..<end].allSatisfy(isToken) else {
            throw HTTPError(400, "The request line is malformed.")
        }
        throw HTTPError(501, "This method is not known here.")
    }

    /// The fields with the white space behind their values taken off, which llhttp leaves there.
    private func trimmed(_ bytes: UnsafeRawBufferPointer) -> [RequestHead.Field] {
        let count = sink.pointee.fields.count
        for index in 0..<count {
            var field = sink.pointee.fields[index]
            while field.valueEnd > field.valueStart {
                let last = bytes[Int(field.valueEnd) - 1]
                guard last == 0x20 || last == 0x09 else { break }
                field.valueEnd -= 1
            }
            sink.pointee.fields[index] = field
        }
        let fields = sink.pointee.fields
        sink.pointee.fields = []
        return fields
    }

    private func checked(_ head: RequestHead, _ method: HTTPMethod) throws(HTTPError) -> ParsedHead {
        let minor = parser.pointee.http_minor
        var hosts = 0
        var length: Int?
        var chunked = false
        var expectsContinue = false
        for field in head.fields {
            switch field.nameEnd - field.nameStart {
            case 0: throw HTTPError(400, "A header has no name.")
            case 4 where head.isNamed(field, "Host"):
                hosts += 1
                guard head.bytes[Int(field.valueStart)..<Int(field.valueEnd)].allSatisfy(isHost) else {
                    throw HTTPError(400, "The Host header is not a host.")
                }
            case 6 where minor == 1 && head.isNamed(field, "Expect"):
                guard head.value(field).lowercased() == "100-continue" else {
                    throw HTTPError(417, "Only 100-continue may be expected.")
                }
                expectsContinue = true
            case 14 where head.isNamed(field, "Content-Length"):
                guard length == nil else { throw HTTPError(400, "Content-Length is given twice.") }
                length = try contentLength(head.value(field))
            case 17 where head.isNamed(field, "Transfer-Encoding"):
                guard !chunked else { throw HTTPError(400, "Transfer-Encoding is given twice.") }
                try checkCoding(head.value(field).lowercased())
                chunked = true
            default: break
            }
        }
        guard hosts == 1 || (hosts == 0 && minor == 0) else {
            throw HTTPError(400, hosts == 0 ? "The Host header is missing." : "Host is given twice.")
        }
        guard !chunked || minor == 1 else { throw HTTPError(400, "HTTP/1.0 has no Transfer-Encoding.") }
        guard !chunked || length == nil else {
            throw HTTPError(400, "Content-Length and Transfer-Encoding exclude each other.")
        }
        let path = try RequestPath.decode(head.bytes[head.targetStart..<head.targetEnd])
        guard path != "*" || method == .options else { throw HTTPError(400, "Only OPTIONS may ask about *.") }
        let flags = sink.pointee.flags ?? 0
        let close = flags & F_CONNECTION_CLOSE.rawValue != 0
        let framing: ParsedHead.Framing =
            chunked ? .chunked : (length ?? 0) > 0 ? .length(length ?? 0) : .none
        return ParsedHead(
            head: head, method: method, path: path, minor: minor, framing: framing,
            keepAlive: !close && (minor == 1 || flags & F_CONNECTION_KEEP_ALIVE.rawValue != 0),
            expectsContinue: expectsContinue && framing != .none)
    }

    private func contentLength(_ text: String) throws(HTTPError) -> Int {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            throw HTTPError(400, "Content-Length is not a number.")
        }
        guard let length = Int(text) else { throw HTTPError.bodyTooLarge }
        return length
    }

    /// RFC 9112 §6.1: chunked must be last, else the body has no end; codings beside it are not implemented.
    private func checkCoding(_ value: String) throws(HTTPError) {
        if value == "chunked" { return }
        guard value.hasSuffix("chunked") else {
            throw HTTPError(400, "The last Transfer-Encoding is not chunked.")
        }
        throw HTTPError(501, "Only the Transfer-Encoding chunked is known here.")
    }

    private static func error(_ code: llhttp_errno_t) -> HTTPError {
        switch code {
        case HPE_INVALID_METHOD: HTTPError(501, "This method is not known here.")
        case HPE_INVALID_URL: HTTPError(400, "The request target is malformed.")
        case HPE_INVALID_VERSION: HTTPError(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        case HPE_INVALID_CONSTANT: HTTPError(400, "The request line is malformed.")
        case HPE_INVALID_CONTENT_LENGTH: HTTPError(400, "Content-Length is not a number.")
        case HPE_UNEXPECTED_CONTENT_LENGTH:
            HTTPError(400, "Content-Length is given twice, or beside Transfer-Encoding.")
        case HPE_INVALID_TRANSFER_ENCODING: HTTPError(400, "The last Transfer-Encoding is not chunked.")
        default: HTTPError(400, "The request head is malformed.")
        }
    }
}

/// RFC 9110 §5.6.2: what names of headers and methods are made of.
func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
}

/// RFC 3986 §3.2.2 and §3.2.3: a name or address with a port, and nothing that could begin a path or a user.
private func isHost(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x3B, 0x41...0x5B, 0x5D, 0x61...0x7A, 0x5F, 0x7E: true
    case 0x21, 0x24...0x2E, 0x3D: true
    default: false
    }
}

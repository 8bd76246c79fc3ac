import Glibc

/// Writes the head of an answer.
enum ResponseHead {
    enum Connection {
        /// Nothing to say: HTTP/1.1 stays open.
        case implied
        case keepAlive
        case close
        /// The handler's own headers say it (101).
        case handlers
    }

    enum Framing {
        /// The status allows no body, or a header of the handler's tells its length.
        case none
        case length(Int)
        case chunked
    }

    static func append(
        to out: inout [UInt8], _ response: HTTPResponse, framing: Framing, connection: Connection, date: [UInt8]
    ) {
        appendStatus(response.status, to: &out)
        response.headers.forEachField { name, value in
            guard !isServers(name, framing, connection) else { return }
            appendText(name, to: &out)
            out.append(0x3A)
            out.append(0x20)
            appendText(value, to: &out)
            out.append(0x0D)
            out.append(0x0A)
        }
        switch framing {
        case .none: break
        case .length(let count):
            out.append(contentsOf: contentLength)
            appendNumber(count, to: &out)
            out.append(0x0D)
            out.append(0x0A)
        case .chunked: out.append(contentsOf: chunked)
        }
        switch connection {
        case .implied, .handlers: break
        case .keepAlive: out.append(contentsOf: keepAlive)
        case .close: out.append(contentsOf: close)
        }
        out.append(contentsOf: date)
        out.append(0x0D)
        out.append(0x0A)
    }

    private static let contentLength = Array("Content-Length: ".utf8)
    private static let chunked = Array("Transfer-Encoding: chunked\r\n".utf8)
    private static let keepAlive = Array("Connection: keep-alive\r\n".utf8)
    private static let close = Array("Connection: close\r\n".utf8)

    /// Fields that the server alone writes.
    private static func isServers(_ name: String, _ framing: Framing, _ connection: Connection) -> Bool {
        switch name.utf8.count {
        case 14:
            // Two lengths, one of them wrong, are how answers get split.
            if case .none = framing { false } else { same(name, "content-length") }
        case 4: same(name, "date")
        case 10: connection != .handlers && same(name, "connection")
        case 17: same(name, "transfer-encoding")
        default: false
        }
    }

    private static func same(_ name: String, _ lowercased: StaticString) -> Bool {
        lowercased.withUTF8Buffer { $0.elementsEqual(name.utf8) { $0 == lowercase($1) } }
    }

    private static func appendStatus(_ status: Int, to out: inout [UInt8]) {
        if status == 200 {
            out.append(contentsOf: okLine)
            return
        }
        out.append(contentsOf: version)
        appendNumber(status, to: &out)
        out.append(0x20)
        out.append(contentsOf: reason(status).utf8)
        out.append(0x0D)
        out.append(0x0A)
    }

    private static let version = Array("HTTP/1.1 ".utf8)
    private static let okLine = Array("HTTP/1.1 200 OK\r\n".utf8)

    /// Whatever could end the field early becomes a space (RFC 9110 §5.5): a value never splits an answer.
    private static func appendText(_ text: String, to out: inout [UInt8]) {
        let isClean = text.utf8.withContiguousStorageIfAvailable { bytes in
            guard !bytes.contains(where: endsField) else { return false }
            out.append(contentsOf: bytes)
            return true
        }
        if isClean != true { out.append(contentsOf: text.utf8.lazy.map { endsField($0) ? 0x20 : $0 }) }
    }

    private static func endsField(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }

    static func appendNumber(_ number: Int, to out: inout [UInt8]) {
        var divisor = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            out.append(0x30 + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    static func appendHexadecimal(_ number: Int, to out: inout [UInt8]) {
        var shift = 0
        while number >> shift > 15 { shift += 4 }
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> shift & 15)
            out.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            shift -= 4
        }
    }

    /// The phrase is for people who read traces; clients ignore it.
    static func reason(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}

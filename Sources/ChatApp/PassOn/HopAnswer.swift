import HTTPServer

/// What an owner answered.
struct HopAnswer: Sendable, Equatable {
    let status: Int
    let headers: HTTPHeaders
    var body: [UInt8]

    /// Fields that belong to the connection between the instances (RFC 9110 §7.6.1), or that the server writes itself.
    private static let ofTheHop = ["Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Date"]

    /// For the client.
    var response: HTTPResponse {
        var headers = headers
        for name in Self.ofTheHop { headers.remove(name) }
        return HTTPResponse(status: status, headers: headers, body: body.isEmpty ? .empty : .bytes(body))
    }
}

/// Reads one answer of an owner's server (RFC 9112), without I/O. It takes what our own server writes: HTTP/1.1, a
/// `Content-Length`, no interim answers; anything else is a fault, since a guess would mix up two clients' answers.
struct AnswerParser {
    enum Event: Equatable {
        case needsMore
        /// - Parameter mayStay: whether the connection is good for another request.
        case answer(HopAnswer, mayStay: Bool)
        /// A 101, and what the owner has sent behind it.
        case switched(HopAnswer, rest: [UInt8])
    }

    struct Fault: Error, Equatable {}

    static let headersMax = 100

    private let isUpgrade: Bool
    private let isHead: Bool
    private let headBytesMax: Int
    private let bodyBytesMax: Int
    private var buffer: [UInt8] = []
    private var scanned = 0
    private var head: (answer: HopAnswer, length: Int, mayStay: Bool)?

    init(to request: HopRequest, limits: PassOnLimits) {
        isUpgrade = request.kind == .upgrade
        isHead = request.isHead
        headBytesMax = limits.headBytesMax
        bodyBytesMax = limits.answerBytesMax
    }

    /// Takes what arrived. Not to be called again after anything but `needsMore`.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(Fault) -> Event {
        buffer.append(contentsOf: bytes)
        if head == nil {
            guard let end = headEnd() else {
                guard buffer.count <= headBytesMax else { throw Fault() }
                return .needsMore
            }
            guard end <= headBytesMax else { throw Fault() }
            let answer = try Self.answer(Array(buffer[..<(end - 4)]))
            buffer.removeFirst(end)
            if answer.status == 101 {
                guard isUpgrade else { throw Fault() }
                return .switched(answer, rest: buffer)
            }
            head = (answer, try length(of: answer), !answer.headers.hasElement("Connection", "close"))
        }
        guard let head, buffer.count <= head.length else { throw Fault() }
        guard buffer.count == head.length else { return .needsMore }
        var answer = head.answer
        answer.body = buffer
        return .answer(answer, mayStay: head.mayStay)
    }

    /// Behind the empty line.
    private mutating func headEnd() -> Int? {
        var index = max(0, scanned - 3)
        while index + 3 < buffer.count {
            if buffer[index] == 0x0D, buffer[index + 1] == 0x0A, buffer[index + 2] == 0x0D, buffer[index + 3] == 0x0A {
                return index + 4
            }
            index += 1
        }
        scanned = buffer.count
        return nil
    }

    private func length(of answer: HopAnswer) throws(Fault) -> Int {
        if answer.headers.contains("Transfer-Encoding") { throw Fault() }
        if isHead || answer.status == 204 || answer.status == 304 { return 0 }
        let values = answer.headers.all("Content-Length")
        guard values.count == 1, !values[0].isEmpty, values[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let length = Int(values[0]), length <= bodyBytesMax
        else { throw Fault() }
        return length
    }

    private static func answer(_ head: [UInt8]) throws(Fault) -> HopAnswer {
        var lines: [ArraySlice<UInt8>] = []
        var rest = head[...]
        while let feed = rest.firstIndex(of: 0x0A) {
            guard feed > rest.startIndex, rest[feed - 1] == 0x0D else { throw Fault() }
            lines.append(rest[..<(feed - 1)])
            rest = rest[(feed + 1)...]
        }
        lines.append(rest)
        guard lines.count <= headersMax + 1, !head.contains(0), lines.allSatisfy({ !$0.contains(0x0D) }) else {
            throw Fault()
        }
        let status = String(decoding: lines[0], as: UTF8.self).split(
            separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard status.count >= 2, status[0] == "HTTP/1.1", status[1].utf8.count == 3, let code = Int(status[1]),
            code == 101 || (200...599).contains(code)
        else { throw Fault() }
        var fields: [HTTPHeaders.Element] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { throw Fault() }
            var value = line[(colon + 1)...].drop { $0 == 0x20 || $0 == 0x09 }
            while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
            fields.append(
                (name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self)))
        }
        return HopAnswer(status: code, headers: HTTPHeaders(fields), body: [])
    }
}

@testable import HTTPServer

/// What a parser made of some bytes: comparable, with the pieces of a body joined.
enum Seen: Equatable, CustomStringConvertible {
    case head(String)
    case body(String)
    case end
    case error(Int)

    var description: String {
        switch self {
        case .head(let text): "head(\(text))"
        case .body(let text): "body(\(text))"
        case .end: "end"
        case .error(let status): "error(\(status))"
        }
    }
}

/// Feeds `input` in pieces of the given sizes, the last size repeated, and stops at the first error.
func parse(_ input: [UInt8], pieces: [Int] = [.max], limits: HTTPLimits = HTTPLimits()) -> [Seen] {
    let parser = HTTPParser(limits: limits, heads: HeadParser())
    var seen: [Seen] = []
    var start = 0
    var turn = 0
    while start < input.count {
        let size = min(pieces[min(turn, pieces.count - 1)], input.count - start)
        turn += 1
        // A copy of exactly these bytes, so that a read past the piece is a read past an allocation.
        let piece = Array(input[start..<(start + size)])
        start += size
        var position = 0
        do {
            try piece.withUnsafeBytes { bytes in
                loop: while true {
                    switch try parser.next(bytes, &position) {
                    case .needsMore: break loop
                    case .head(let parsed): seen.append(.head(describe(parsed)))
                    case .body(let range): join(latin(bytes[range]), to: &seen)
                    case .end: seen.append(.end)
                    }
                }
            }
        } catch {
            return seen + [.error((error as? HTTPError)?.status ?? 0)]
        }
    }
    return seen
}

func parse(_ text: String, pieces: [Int] = [.max], limits: HTTPLimits = HTTPLimits()) -> [Seen] {
    parse(Array(text.utf8), pieces: pieces, limits: limits)
}

/// A character for each byte, so that pieces of a body join to the same text wherever they were cut.
func latin(_ bytes: some Sequence<UInt8>) -> String {
    var text = String.UnicodeScalarView()
    for byte in bytes { text.append(Unicode.Scalar(byte)) }
    return String(text)
}

private func join(_ text: String, to seen: inout [Seen]) {
    if case .body(let before)? = seen.last {
        seen[seen.count - 1] = .body(before + text)
    } else {
        seen.append(.body(text))
    }
}

private func describe(_ parsed: ParsedHead) -> String {
    let headers = HTTPHeaders(received: parsed.head).map { "\($0.name)=\($0.value)" }.joined(separator: "|")
    return "\(parsed.method) \(parsed.path) 1.\(parsed.minor) \(parsed.framing) \(headers)"
}

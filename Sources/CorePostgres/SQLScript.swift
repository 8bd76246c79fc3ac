/// Takes a script apart into its statements, so that each can be sent by itself and an error named by its line.
///
/// Knows strings, dollar quotes, quoted names and comments (PostgreSQL manual, 4.1). It does not know the bodies of
/// `BEGIN ATOMIC`, whose semicolons look like ends of statements: write such functions with dollar quotes.
struct SQLScript {
    struct Statement: Equatable {
        let text: String
        /// The line on which it begins, from 1.
        let line: Int
    }

    private let bytes: [UInt8]
    private var at = 0
    private var line = 1

    static func statements(_ text: String, firstLine: Int = 1) -> [Statement] {
        var script = SQLScript(text, firstLine: firstLine)
        var statements: [Statement] = []
        while let statement = script.next() { statements.append(statement) }
        return statements
    }

    private init(_ text: String, firstLine: Int) {
        bytes = Array(text.utf8)
        line = firstLine
    }

    private mutating func next() -> Statement? {
        skipBlank()
        guard at < bytes.count else { return nil }
        let start = at
        let startLine = line
        while at < bytes.count, bytes[at] != UInt8(ascii: ";") { step() }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        if at < bytes.count { advance() }
        return text.allSatisfy(\.isWhitespace) ? next() : Statement(text: text, line: startLine)
    }

    /// White space, comments and lone semicolons between statements.
    private mutating func skipBlank() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x0A, 0x09, 0x0D, UInt8(ascii: ";"): advance()
            case UInt8(ascii: "-") where peek(1) == UInt8(ascii: "-"): skipLine()
            case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"): skipComment()
            default: return
            }
        }
    }

    /// One byte, or everything that belongs together.
    private mutating func step() {
        switch bytes[at] {
        case UInt8(ascii: "'"): skipQuoted(UInt8(ascii: "'"), escapes: isEscapeString)
        case UInt8(ascii: "\""): skipQuoted(UInt8(ascii: "\""), escapes: false)
        case UInt8(ascii: "-") where peek(1) == UInt8(ascii: "-"): skipLine()
        case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"): skipComment()
        case UInt8(ascii: "$"): skipDollar()
        default: advance()
        }
    }

    private func peek(_ distance: Int) -> UInt8? { at + distance < bytes.count ? bytes[at + distance] : nil }

    private mutating func advance() {
        if bytes[at] == UInt8(ascii: "\n") { line += 1 }
        at += 1
    }

    private mutating func skipLine() {
        while at < bytes.count, bytes[at] != UInt8(ascii: "\n") { at += 1 }
    }

    private mutating func skipComment() {
        var depth = 0
        repeat {
            if bytes[at] == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
                depth += 1
                at += 2
            } else if bytes[at] == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
                depth -= 1
                at += 2
            } else {
                advance()
            }
        } while depth > 0 && at < bytes.count
    }

    /// E'…': a backslash keeps the next character from ending it. The E is no part of a longer word.
    private var isEscapeString: Bool {
        guard at > 0, bytes[at - 1] | 0x20 == UInt8(ascii: "e") else { return false }
        return at < 2 || !Self.isWord(bytes[at - 2])
    }

    private mutating func skipQuoted(_ quote: UInt8, escapes: Bool) {
        advance()
        while at < bytes.count {
            if escapes, bytes[at] == UInt8(ascii: "\\"), at + 1 < bytes.count {
                at += 1
            } else if bytes[at] == quote {
                advance()
                // A doubled one stands for itself.
                guard at < bytes.count, bytes[at] == quote else { return }
            }
            advance()
        }
    }

    /// $$…$$ or $tag$…$tag$; a `$1` or a name with a dollar in it is neither.
    private mutating func skipDollar() {
        if at > 0, Self.isWord(bytes[at - 1]) { return advance() }
        var end = at + 1
        while end < bytes.count, Self.isWord(bytes[end]), end > at + 1 || !Self.isDigit(bytes[end]) { end += 1 }
        guard end < bytes.count, bytes[end] == UInt8(ascii: "$") else { return advance() }
        let tag = bytes[at...end]
        at = end + 1
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "$"), bytes[at...].starts(with: tag) {
                at += tag.count
                return
            }
            advance()
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isWord(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F || byte >= 0x80
    }
}

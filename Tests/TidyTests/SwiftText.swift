/// A Swift source file, split into what the compiler reads as code and what stands in string literals.
///
/// A small lexer, not a parser: enough to look for words in code without being fooled by comments and strings. It does
/// not know regex literals; a quotation mark in one spoils at most the rest of its line.
struct SwiftText {
    struct Literal {
        /// 1-based line of the opening quotation mark.
        let line: Int
        let text: String
    }

    /// Relative to the repository's root.
    let path: String
    let lines: [Substring]
    /// The file with comments and the insides of string literals blanked out; every line stays where it was.
    let code: [UInt8]
    /// String literals in the order they end. An interpolation is left out of the literal and read as code.
    let literals: [Literal]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var lexer = Lexer(bytes: Array(text.utf8))
        lexer.run()
        code = lexer.code
        literals = lexer.literals
    }

    /// The code, line by line, without comments and strings.
    var codeLines: [String] {
        code.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
    }
}

private struct Lexer {
    private enum Mode {
        /// In an interpolation, with the number of parentheses still open; at the top level the number is unused.
        case code(parentheses: Int)
        case string(hashes: Int, multiline: Bool, line: Int, text: [UInt8])
    }

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1
    private var modes: [Mode] = [.code(parentheses: 0)]
    private(set) var code: [UInt8] = []
    private(set) var literals: [SwiftText.Literal] = []

    init(bytes: [UInt8]) {
        self.bytes = bytes
        code.reserveCapacity(bytes.count)
    }

    mutating func run() {
        while index < bytes.count {
            switch modes[modes.count - 1] {
            case .code(let parentheses): readCode(parentheses: parentheses)
            case .string(let hashes, let multiline, let line, let text):
                readString(hashes: hashes, multiline: multiline, line: line, text: text)
            }
        }
    }

    private func at(_ offset: Int) -> UInt8 {
        index + offset < bytes.count ? bytes[index + offset] : 0
    }

    private func starts(_ word: String, at offset: Int = 0) -> Bool {
        word.utf8.enumerated().allSatisfy { at(offset + $0.offset) == $0.element }
    }

    /// Moves on, keeping the bytes as code or blanking them. Newlines are always kept, so lines stay in place.
    private mutating func take(_ count: Int, blank: Bool) {
        for _ in 0..<count where index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\n") { line += 1 }
            code.append(blank && byte != UInt8(ascii: "\n") ? UInt8(ascii: " ") : byte)
            index += 1
        }
    }

    private mutating func readCode(parentheses: Int) {
        if starts("//") {
            while index < bytes.count, at(0) != UInt8(ascii: "\n") { take(1, blank: true) }
            return
        }
        if starts("/*") {
            skipBlockComment()
            return
        }
        var hashes = 0
        while at(hashes) == UInt8(ascii: "#") { hashes += 1 }
        if at(hashes) == UInt8(ascii: "\"") {
            let multiline = starts("\"\"\"", at: hashes)
            modes.append(.string(hashes: hashes, multiline: multiline, line: line, text: []))
            take(hashes + (multiline ? 3 : 1), blank: true)
            return
        }
        if modes.count > 1 {
            switch at(0) {
            case UInt8(ascii: "("): modes[modes.count - 1] = .code(parentheses: parentheses + 1)
            case UInt8(ascii: ")") where parentheses == 0:
                modes.removeLast()
                take(1, blank: true)
                return
            case UInt8(ascii: ")"): modes[modes.count - 1] = .code(parentheses: parentheses - 1)
            default: break
            }
        }
        take(1, blank: false)
    }

    private mutating func skipBlockComment() {
        var depth = 0
        repeat {
            if starts("/*") {
                depth += 1
                take(2, blank: true)
            } else if starts("*/") {
                depth -= 1
                take(2, blank: true)
            } else {
                take(1, blank: true)
            }
        } while depth > 0 && index < bytes.count
    }

    private mutating func readString(hashes: Int, multiline: Bool, line startLine: Int, text: [UInt8]) {
        let marks = String(repeating: "#", count: hashes)
        let end = (multiline ? "\"\"\"" : "\"") + marks
        if starts(end) || (!multiline && at(0) == UInt8(ascii: "\n")) {
            literals.append(.init(line: startLine, text: String(decoding: text, as: UTF8.self)))
            modes.removeLast()
            take(starts(end) ? end.utf8.count : 0, blank: true)
            return
        }
        if starts("\\" + marks + "(") {
            modes[modes.count - 1] = .string(
                hashes: hashes, multiline: multiline, line: startLine, text: text + [UInt8(ascii: " ")])
            modes.append(.code(parentheses: 0))
            take(2 + hashes, blank: true)
            return
        }
        let length = starts("\\" + marks) ? 2 + hashes : 1
        let more = bytes[index..<min(index + length, bytes.count)]
        modes[modes.count - 1] = .string(hashes: hashes, multiline: multiline, line: startLine, text: text + more)
        take(length, blank: true)
    }
}

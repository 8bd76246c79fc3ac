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
    /// The same, line by line.
    let codeLines: [String]
    /// String literals in the order they end. An interpolation is left out of the literal and read as code.
    let literals: [Literal]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var lexer = Lexer(bytes: Array(text.utf8))
        lexer.run()
        code = lexer.code
        codeLines = code.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        literals = lexer.literals
    }

}

private struct Lexer {
    private enum Mode {
        /// In an interpolation, with the number of parentheses still open; at the top level the number is unused.
        case code(parentheses: Int)
        case string(hashes: Int, multiline: Bool, line: Int)
    }

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1
    private var modes: [Mode] = [.code(parentheses: 0)]
    /// What has been read of each open string; apart from the modes, so that they grow in place.
    private var texts: [[UInt8]] = []
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
            case .string(let hashes, let multiline, let line):
                readString(hashes: hashes, multiline: multiline, line: line)
            }
        }
    }

    private func at(_ offset: Int) -> UInt8 {
        index + offset < bytes.count ? bytes[index + offset] : 0
    }

    private func starts(_ word: StaticString, at offset: Int = 0) -> Bool {
        for index in 0..<word.utf8CodeUnitCount where at(offset + index) != word.utf8Start[index] { return false }
        return true
    }

    private func hashes(_ count: Int, at offset: Int) -> Bool {
        for index in 0..<count where at(offset + index) != UInt8(ascii: "#") { return false }
        return true
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
            modes.append(.string(hashes: hashes, multiline: multiline, line: line))
            texts.append([])
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

    private mutating func readString(hashes count: Int, multiline: Bool, line startLine: Int) {
        let marks = multiline ? 3 : 1
        let ends = (multiline ? starts("\"\"\"") : starts("\"")) && hashes(count, at: marks)
        if ends || (!multiline && at(0) == UInt8(ascii: "\n")) {
            literals.append(.init(line: startLine, text: String(decoding: texts.removeLast(), as: UTF8.self)))
            modes.removeLast()
            take(ends ? marks + count : 0, blank: true)
            return
        }
        let escapes = starts("\\") && hashes(count, at: 1)
        if escapes, at(1 + count) == UInt8(ascii: "(") {
            texts[texts.count - 1].append(UInt8(ascii: " "))
            modes.append(.code(parentheses: 0))
            take(2 + count, blank: true)
            return
        }
        let length = escapes ? 2 + count : 1
        texts[texts.count - 1] += bytes[index..<min(index + length, bytes.count)]
        take(length, blank: true)
    }
}

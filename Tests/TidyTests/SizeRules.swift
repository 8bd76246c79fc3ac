/// How long a line, a function and a file may be (STYLE: House rules).
enum SizeRules {
    static let functionLinesMax = 70
    static let lineColumnsMax = 120
    static let fileLinesMax = 400
    static let mainLinesMax = 60

    /// Lines and file length, for text of any language.
    static func check(path: String, lines: [Substring], linesMax: Int = fileLinesMax) -> [Finding] {
        var findings = lines.enumerated().compactMap { offset, line in
            line.count > lineColumnsMax
                ? Finding(path: path, line: offset + 1, "\(line.count) columns, \(lineColumnsMax) at most.") : nil
        }
        // A final newline is no line of its own.
        let count = lines.last == "" ? lines.count - 1 : lines.count
        if count > linesMax {
            findings.append(Finding(path: path, line: count, "\(count) lines in the file, \(linesMax) at most."))
        }
        return findings
    }

    static func checkFunctions(_ file: SwiftText) -> [Finding] {
        let code = file.code
        var findings: [Finding] = []
        var lineOf = [Int]()
        lineOf.reserveCapacity(code.count)
        var line = 1
        for byte in code {
            lineOf.append(line)
            if byte == UInt8(ascii: "\n") { line += 1 }
        }
        for start in declarations(in: code) {
            guard let body = body(in: code, after: start) else { continue }
            let count = lineOf[body.upperBound] - lineOf[start] + 1
            if count > functionLinesMax {
                findings.append(
                    Finding(
                        path: file.path, line: lineOf[start],
                        "\(count) lines in the function, \(functionLinesMax) at most."))
            }
        }
        return findings
    }

    /// Where `func`, `init`, `deinit` and `subscript` declarations start. A call of `.init` is not one.
    private static func declarations(in code: [UInt8]) -> [Int] {
        let words = ["func", "init", "deinit", "subscript"].map { Array($0.utf8) }
        var starts: [Int] = []
        var index = 0
        while index < code.count {
            guard isWord(code[index]) else {
                index += 1
                continue
            }
            var end = index
            while end < code.count, isWord(code[end]) { end += 1 }
            let before = index > 0 ? code[index - 1] : UInt8(ascii: "\n")
            if words.contains(Array(code[index..<end])), before != UInt8(ascii: "."), before != UInt8(ascii: "`") {
                starts.append(index)
            }
            index = end
        }
        return starts
    }

    /// From the opening to the closing brace of the declaration's body; nil for a protocol's requirement.
    private static func body(in code: [UInt8], after start: Int) -> ClosedRange<Int>? {
        var depth = 0
        var index = start
        while index < code.count, isWord(code[index]) { index += 1 }
        while index < code.count {
            switch code[index] {
            case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "}") where depth == 0: return nil
            case UInt8(ascii: "{") where depth == 0:
                return closingBrace(in: code, from: index).map { index...$0 }
            case let byte where depth == 0 && isWord(byte) && !isWord(code[index - 1]):
                if startsDeclaration(code, at: index) { return nil }
            default: break
            }
            if depth < 0 { return nil }
            index += 1
        }
        return nil
    }

    private static func startsDeclaration(_ code: [UInt8], at index: Int) -> Bool {
        for word in ["func", "init", "deinit", "subscript", "var", "let", "case", "associatedtype"] {
            let end = index + word.utf8.count
            guard end < code.count, !isWord(code[end]) else { continue }
            if code[index..<end].elementsEqual(word.utf8) { return true }
        }
        return false
    }

    private static func closingBrace(in code: [UInt8], from open: Int) -> Int? {
        var depth = 0
        for index in open..<code.count {
            if code[index] == UInt8(ascii: "{") { depth += 1 }
            if code[index] == UInt8(ascii: "}") {
                depth -= 1
                if depth == 0 { return index }
            }
        }
        return nil
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        (byte >= 0x61 && byte <= 0x7A) || (byte >= 0x41 && byte <= 0x5A) || (byte >= 0x30 && byte <= 0x39)
            || byte == UInt8(ascii: "_") || byte >= 0x80
    }
}

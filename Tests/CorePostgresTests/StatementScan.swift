import Foundation

/// The SQL of a folder of Swift sources: every literal, its interpolations replaced by `$1`, `$2`… or, where they
/// name a fragment (`Columns.user`), by the fragment's text.
struct StatementScan {
    struct Statement {
        let file: String
        let line: Int
        let text: String
        let bindCount: Int
    }

    /// A literal as it stands: text and interpolated expressions by turns.
    struct Literal {
        enum Piece: Equatable {
            case text(String)
            case expression(String)
        }

        let file: String
        let line: Int
        /// The type whose body it is in, and the constant it is the value of.
        let type: String
        let constant: String?
        let pieces: [Piece]
    }

    let literals: [Literal]
    private let fragments: [String: Literal]

    init(folder: URL) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        self.init(
            try names.sorted().map { name in
                (file: name, text: try String(contentsOf: folder.appending(path: name), encoding: .utf8))
            })
    }

    init(_ sources: [(file: String, text: String)]) {
        literals = sources.flatMap { source in
            var scanner = LiteralScanner(file: source.file, text: source.text)
            return scanner.scan()
        }
        fragments = Dictionary(
            literals.compactMap { literal in literal.constant.map { ("\(literal.type).\($0)", literal) } },
            uniquingKeysWith: { first, _ in first })
    }

    /// What PostgreSQL would be given: literals that begin as a statement does.
    var statements: [Statement] {
        literals.compactMap { literal in
            guard case .text(let start)? = literal.pieces.first else { return nil }
            let word = start.trimmingCharacters(in: .whitespacesAndNewlines).prefix { $0.isLetter }
            guard ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(word) else { return nil }
            var binds = 0
            let text = render(literal, &binds)
            return Statement(file: literal.file, line: literal.line, text: text, bindCount: binds)
        }
    }

    /// Tables that the sources make for themselves: for a transaction, or before the first migration.
    var ownTables: [String] {
        literals.flatMap { literal in
            var binds = 0
            return render(literal, &binds).matches(of: /CREATE (?:TEMP(?:ORARY)? )?TABLE [^;]*/).map { String($0.0) }
        }
    }

    private func render(_ literal: Literal, _ binds: inout Int) -> String {
        var text = ""
        for piece in literal.pieces {
            switch piece {
            case .text(let part): text += part
            case .expression(let expression):
                let name = expression.replacing(/^Self\./, with: "\(literal.type).")
                if let fragment = fragments[name] {
                    text += render(fragment, &binds)
                } else {
                    binds += 1
                    text += "$\(binds)"
                }
            }
        }
        return text
    }
}

/// Finds string literals in Swift source, past comments and raw strings.
private struct LiteralScanner {
    let file: String
    private let characters: [Character]
    private var index = 0
    private var line = 1
    /// The code since the last literal or brace, for finding what a literal is the value of.
    private var code = ""
    private var type = ""

    init(file: String, text: String) {
        self.file = file
        characters = Array(text.replacing("\r\n", with: "\n"))
    }

    mutating func scan() -> [StatementScan.Literal] {
        var literals: [StatementScan.Literal] = []
        while index < characters.count {
            if at("//") {
                while index < characters.count, characters[index] != "\n" { advance() }
            } else if at("#\"") {
                skipRaw()
            } else if characters[index] == "\"" {
                let start = line
                let constant = code.firstMatch(of: /static let (\w+): SQL =\s*$/).map { String($0.1) }
                literals.append(
                    StatementScan.Literal(file: file, line: start, type: type, constant: constant, pieces: literal()))
                code = ""
            } else {
                note(characters[index])
                advance()
            }
        }
        return literals
    }

    private mutating func note(_ character: Character) {
        code.append(character)
        guard character == "{" else { return }
        if let match = code.matches(of: /\b(?:enum|struct|class|extension)\s+(\w+)/).last { type = String(match.1) }
        code = ""
    }

    private func at(_ text: String) -> Bool { characters[index...].starts(with: text) }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where index < characters.count {
            if characters[index] == "\n" { line += 1 }
            index += 1
        }
    }

    private mutating func skipRaw() {
        advance(2)
        while index < characters.count, !at("\"#") { advance() }
        advance(2)
    }

    private mutating func literal() -> [StatementScan.Literal.Piece] {
        let quote = at("\"\"\"") ? "\"\"\"" : "\""
        advance(quote.count)
        var pieces: [StatementScan.Literal.Piece] = []
        var text = ""
        while index < characters.count, !at(quote) {
            if at("\\(") {
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                advance(2)
                pieces.append(.expression(expression()))
            } else if at("\\\\") {
                text.append("\\")
                advance(2)
            } else {
                text.append(characters[index])
                advance()
            }
        }
        advance(quote.count)
        if !text.isEmpty { pieces.append(.text(text)) }
        return pieces
    }

    /// Up to the parenthesis that closes an interpolation.
    private mutating func expression() -> String {
        var depth = 1
        var text = ""
        while index < characters.count {
            let character = characters[index]
            if character == "\"" {
                // A literal within: whatever it has, it is part of the expression.
                text += "\"\""
                _ = literal()
                continue
            }
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            advance()
            if depth == 0 { break }
            text.append(character)
        }
        return text
    }
}

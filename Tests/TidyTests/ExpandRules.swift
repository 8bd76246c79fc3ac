import Foundation

/// What a migration may do while the last release is at work on the table (docs/operations/migrations.md). What a rule
/// finds may be right for a reason: the comment before the statement then begins with "safe:" and says it.
enum ExpandRules {
    /// The newest migration of 0.1.0. Before it nobody ran anything.
    static let baseline = "20261201091900"

    private struct Rule {
        let pattern: Regex<Substring>
        let text: String
        /// Whether it is nothing to anybody where the table is made by the same file.
        var isFreeOnNewTables = true
    }

    private static var rules: [Rule] {
        [
            Rule(
                pattern: /(?i)\bDROP\s+(?:TABLE|COLUMN|VIEW|DOMAIN|TYPE|FUNCTION)\b/,
                text: "The last release may still use what is dropped here: that waits for a release.",
                isFreeOnNewTables: false),
            Rule(
                pattern: /(?i)^ALTER\s+TABLE\b.*\bRENAME\s+(?!CONSTRAINT\b)\w+/,
                text: "The last release knows it by its old name: add the new one, fill it, drop the old one later.",
                isFreeOnNewTables: false),
            Rule(
                pattern: /(?i)\bSET\s+NOT\s+NULL\b/,
                text: "This reads the whole table under a lock: validate a CHECK (… IS NOT NULL) before it."),
            Rule(
                pattern: /(?i)\bADD\s+COLUMN\s+\w+\s+[^,;]*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)/,
                text: "The last release's INSERTs do not name the column: give it a DEFAULT."),
            Rule(
                pattern: /(?i)\bALTER\s+COLUMN\s+\w+\s+(?:SET\s+DATA\s+)?TYPE\b/,
                text: "This rewrites the table under a lock: add a column of the new type instead."),
            Rule(
                pattern: /(?i)\bADD\s+CONSTRAINT\s+\w+\s+(?:CHECK|FOREIGN\s+KEY)\b(?!.*\bNOT\s+VALID\b)/,
                text: "This reads the whole table under a lock: add it NOT VALID, and validate it in a file of its own."
            ),
            Rule(
                pattern: /(?i)\bADD\s+CONSTRAINT\s+\w+\s+(?:UNIQUE|PRIMARY\s+KEY)\s*\(/,
                text: "This builds an index under a lock: build it CONCURRENTLY, then ADD … USING INDEX."),
            Rule(
                pattern: /(?i)^CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY\b)/,
                text: "Writes wait while this is built: CONCURRENTLY, in a file with transaction:false."),
            Rule(
                pattern: /(?i)^(?:UPDATE|DELETE\s+FROM)\b/,
                text: "This holds every row it touches until the end: fill in batches, by work items."),
            Rule(pattern: /(?i)^LOCK\s+TABLE\b/, text: "Services wait while this is held."),
        ]
    }

    static func check(name: String, text: String) -> [Finding] {
        guard name.prefix(14) > baseline else { return [] }
        let statements = up(of: text)
        let made = Set(
            statements.compactMap { statement in
                statement.text.firstMatch(of: /(?i)^CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/).map {
                    String($0.1)
                }
            })
        return statements.filter { !$0.isSafe }.flatMap { statement in
            rules.compactMap { rule in
                guard statement.text.firstMatch(of: rule.pattern) != nil else { return nil }
                if rule.isFreeOnNewTables, let table = table(of: statement.text), made.contains(table) { return nil }
                return Finding(path: "migrations/\(name)", line: statement.line, rule.text)
            }
        }
    }

    private struct Statement {
        let line: Int
        let text: String
        let isSafe: Bool
    }

    private static func table(of statement: String) -> String? {
        let patterns = [
            /(?i)^(?:ALTER|LOCK)\s+TABLE\s+(?:ONLY\s+)?(\w+)/, /(?i)\bINDEX\b.*?\bON\s+(\w+)/, /(?i)^UPDATE\s+(\w+)/,
            /(?i)^DELETE\s+FROM\s+(\w+)/,
        ]
        return patterns.lazy.compactMap { statement.firstMatch(of: $0).map { String($0.1) } }.first
    }

    /// The statements of the up part on a line each, with what their comments say. They end with a line that ends with
    /// a semicolon, outside of a function's body.
    private static func up(of text: String) -> [Statement] {
        var statements: [Statement] = []
        var (current, isSafe, isBody, start) = ([String](), false, false, 0)
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("-- migrate:down") { break }
            if line.hasPrefix("--") {
                if current.isEmpty, line.hasPrefix("-- safe: ") { isSafe = true }
                continue
            }
            guard !line.isEmpty else { continue }
            if current.isEmpty { start = index + 1 }
            // What a function does when it is called is not done by the migration.
            if !isBody { current.append(line) }
            if line.components(separatedBy: "$$").count.isMultiple(of: 2) { isBody.toggle() }
            guard !isBody, line.hasSuffix(";") else { continue }
            statements.append(Statement(line: start, text: current.joined(separator: " "), isSafe: isSafe))
            (current, isSafe) = ([], false)
        }
        return statements
    }
}

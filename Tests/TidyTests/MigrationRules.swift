/// Migrations in dbmate's format: `20261201090000_create_users.sql` with an up part and a down part.
enum MigrationRules {
    static func check(name: String, text: String) -> [Finding] {
        let path = "migrations/\(name)"
        var findings: [Finding] = []
        if name.wholeMatch(of: /[0-9]{14}_[a-z][a-z0-9_]*\.sql/) == nil {
            findings.append(Finding(path: path, line: 1, "The name is 14 digits, then _words_in_lower_case."))
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let ups = lines.indices.filter { lines[$0].hasPrefix("-- migrate:up") }
        let downs = lines.indices.filter { lines[$0].hasPrefix("-- migrate:down") }
        guard let up = ups.first, let down = downs.first, ups.count == 1, downs.count == 1, up < down else {
            findings.append(Finding(path: path, line: 1, "One \"-- migrate:up\" comes before one \"-- migrate:down\"."))
            return findings
        }
        for (part, range) in [("up", up + 1..<down), ("down", down + 1..<lines.count)] {
            let statements = lines[range].filter { line in
                let line = line.drop(while: \.isWhitespace)
                return !line.isEmpty && !line.hasPrefix("--")
            }
            if statements.isEmpty {
                findings.append(Finding(path: path, line: range.lowerBound, "The \(part) part has no statement."))
            }
        }
        return findings
    }

    /// Two migrations of one version would run in an order nobody chose.
    static func checkVersions(names: [String]) -> [Finding] {
        var seen: [Substring: String] = [:]
        return names.sorted().compactMap { name in
            let version = name.prefix(14)
            defer { seen[version] = name }
            return seen[version].map {
                Finding(path: "migrations/\(name)", line: 1, "The version is that of \($0) too.")
            }
        }
    }
}

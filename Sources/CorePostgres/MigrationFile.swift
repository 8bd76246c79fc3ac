import Foundation

/// A migration in dbmate's format: `20261201090000_create_users.sql`, with a `-- migrate:up` and a `-- migrate:down`
/// part.
public struct MigrationFile: Sendable, Equatable {
    /// A larger one is not a migration of ours.
    public static let bytesMax = 4 * 1024 * 1024
    public static let filesMax = 10_000

    public struct Part: Sendable, Equatable {
        public let text: String
        /// The line of the file on which the text begins, from 1.
        public let line: Int
        /// False for `transaction:false`, which CREATE INDEX CONCURRENTLY needs.
        public let inTransaction: Bool
    }

    public let version: String
    public let name: String
    public let up: Part
    public let down: Part

    public init(name: String, text: String) throws(MigrationError) {
        let digits = name.prefix { $0.isASCII && $0.isNumber }
        guard digits.count == 14, name.dropFirst(14).hasPrefix("_"), name.hasSuffix(".sql") else {
            throw MigrationError(name, "the name must be 14 digits, an underscore, words, and .sql")
        }
        guard !text.utf8.contains(0) else { throw MigrationError(name, "the file has a NUL in it") }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let ups = lines.indices.filter { lines[$0].hasPrefix("-- migrate:up") }
        let downs = lines.indices.filter { lines[$0].hasPrefix("-- migrate:down") }
        guard let up = ups.first, ups.count == 1 else {
            throw MigrationError(
                name, line: ups.dropFirst().first.map { $0 + 1 }, "there must be one \"-- migrate:up\"")
        }
        guard let down = downs.first, downs.count == 1, down > up else {
            throw MigrationError(
                name, line: downs.dropFirst().first.map { $0 + 1 },
                "there must be one \"-- migrate:down\", after \"-- migrate:up\"")
        }
        if let stray = lines[..<up].firstIndex(where: Self.isStatement) {
            throw MigrationError(name, line: stray + 1, "a statement stands before \"-- migrate:up\"")
        }
        version = String(digits)
        self.name = name
        self.up = Self.part(lines, from: up, to: down)
        self.down = Self.part(lines, from: down, to: lines.count)
        for part in [self.up, self.down] where !part.inTransaction {
            // What ran before a failure would stay, and the file could not be run again.
            let statements = SQLScript.statements(part.text, firstLine: part.line)
            guard statements.count <= 1 else {
                throw MigrationError(
                    name, line: statements[1].line, "a part with transaction:false holds one statement only")
            }
        }
    }

    /// All migrations of a folder, by version.
    public static func load(directory: String) throws(MigrationError) -> [MigrationFile] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else {
            throw MigrationError(directory, "there is no such folder, or it cannot be read")
        }
        let wanted = names.filter { $0.hasSuffix(".sql") }.sorted()
        guard !wanted.isEmpty else { throw MigrationError(directory, "the folder has no .sql files") }
        guard wanted.count <= filesMax else { throw MigrationError(directory, "more than \(filesMax) migrations") }
        var files: [MigrationFile] = []
        for name in wanted {
            guard let data = FileManager.default.contents(atPath: directory + "/" + name) else {
                throw MigrationError(name, "the file cannot be read")
            }
            guard data.count <= bytesMax, let text = String(data: data, encoding: .utf8) else {
                throw MigrationError(name, "the file is not UTF-8 text, or larger than \(bytesMax) bytes")
            }
            let file = try MigrationFile(name: name, text: text)
            if let last = files.last, last.version == file.version {
                throw MigrationError(name, "its version is that of \(last.name) too")
            }
            files.append(file)
        }
        return files
    }

    private static func part(_ lines: [Substring], from: Int, to: Int) -> Part {
        Part(
            text: lines[(from + 1)..<to].joined(separator: "\n"), line: from + 2,
            inTransaction: !lines[from].contains("transaction:false"))
    }

    private static func isStatement(_ line: Substring) -> Bool {
        let line = line.drop(while: \.isWhitespace)
        return !line.isEmpty && !line.hasPrefix("--")
    }
}

/// What is wrong with a migration, and where.
public struct MigrationError: Error, Sendable, Equatable, CustomStringConvertible {
    public let file: String
    public let line: Int?
    public let reason: String

    init(_ file: String, line: Int? = nil, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    public var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(reason)" }
}

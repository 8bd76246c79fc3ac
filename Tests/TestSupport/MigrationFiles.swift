import Foundation

/// The SQL files of `migrations/`, in dbmate's format, in order. Test databases get all of them.
struct MigrationFiles {
    struct File: Equatable {
        let name: String
        let up: String
        /// False for what PostgreSQL refuses within a transaction, such as CREATE INDEX CONCURRENTLY.
        let inTransaction: Bool
    }

    let files: [File]
    /// Changes with any name or byte of them.
    let digest: String

    static func load() throws -> MigrationFiles {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = root.appending(path: "migrations")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let files = try names.filter { $0.hasSuffix(".sql") }.sorted().map { name in
            (name: name, text: try String(contentsOf: folder.appending(path: name), encoding: .utf8))
        }
        return try MigrationFiles(files)
    }

    init(_ files: [(name: String, text: String)]) throws {
        self.files = try files.map { try Self.parse($0.name, $0.text) }
        // FNV-1a: it only has to tell versions apart.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for file in files {
            for byte in file.name.utf8 + [0] + file.text.utf8 + [0] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        digest = String(hash, radix: 16)
    }

    static func parse(_ name: String, _ text: String) throws -> File {
        var up: [Substring] = []
        var inTransaction = true
        var isUp = false
        var hasUp = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let mark = line.drop { $0 == " " }
            if mark.hasPrefix("-- migrate:up") {
                isUp = true
                hasUp = true
                inTransaction = !mark.contains("transaction:false")
            } else if mark.hasPrefix("-- migrate:down") {
                isUp = false
            } else if isUp {
                up.append(line)
            }
        }
        guard hasUp else { throw TestDatabaseError("\(name) has no -- migrate:up") }
        return File(name: name, up: up.joined(separator: "\n"), inTransaction: inTransaction)
    }

    /// The statements of a file that cannot run as one script: split at lines that end with a semicolon, outside of $$.
    static func statements(_ text: String) -> [String] {
        var statements: [String] = []
        var current: [Substring] = []
        var isQuoted = false
        for line in text.split(separator: "\n") {
            current.append(line)
            if line.components(separatedBy: "$$").count.isMultiple(of: 2) { isQuoted.toggle() }
            if !isQuoted, line.trimmingCharacters(in: .whitespaces).hasSuffix(";") {
                statements.append(current.joined(separator: "\n"))
                current = []
            }
        }
        if !current.isEmpty { statements.append(current.joined(separator: "\n")) }
        return statements
    }
}

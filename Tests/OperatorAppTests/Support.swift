import Core
import CorePostgres
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import OperatorApp

/// What commands have written.
final class Transcript: Sendable {
    private let text = Mutex(("", ""))

    var output: String { text.withLock { $0.0 } }
    var complaints: String { text.withLock { $0.1 } }
    var json: OrderedJSON? { try? OrderedJSON.parse(Array(output.utf8)) }

    func terminal(isWatched: Bool = false) -> Terminal {
        Terminal(
            write: { words in self.text.withLock { $0.0 += words } },
            complain: { words in self.text.withLock { $0.1 += words } }, isWatched: isWatched)
    }
}

/// The real repositories on a test's database.
struct TestBackend: OperatorBackend {
    let database: Database
    var imports: any ImportRepository { PostgresImport(db: database) }
    var users: any UserRepository { PostgresUsers(db: database) }
    var people: any PeopleRepository { PostgresPeople(db: database) }
    var companies: any CompanyRepository { PostgresCompanies(db: database) }
    var queue: any WorkQueueOperations { PostgresWorkQueue(db: database) }
    var backup: any DatabaseBackup { PostgresBackup(db: database) }
    var health: any DatabaseHealth { PostgresHealth(db: database) }
    var databaseAddress: String { database.configuration.address }
    var databaseName: String { database.configuration.database }
    func migrationVersions(directory: String) throws -> [String] {
        try MigrationFile.load(directory: directory).map(\.version)
    }

    func migrator(directory: String) throws -> any SchemaMigrator {
        Migrator(database: database, files: try MigrationFile.load(directory: directory))
    }
    func ping() async throws { try await database.ping() }
    var obstacle: String? { nil }
    var refusal: String? { nil }
    func close() async {}
}

/// Runs a command line on a test's database.
/// - Returns: the exit status and what was written.
func martlet(
    _ words: String..., on database: Database, environment: [String: String] = [:], now: Date = .now
) async -> (status: Int32, said: Transcript) {
    let transcript = Transcript()
    let command = Operator(
        environment: environment.merging(["MARTLET_DATABASE_URL": "postgres://test"]) { given, _ in given },
        terminal: transcript.terminal(), now: { now }, connect: { _ in TestBackend(database: database) })
    return (await command.run(words), transcript)
}

/// Runs a command line that must not need a database.
func martlet(
    _ words: [String], environment: [String: String] = [:], isWatched: Bool = false
) async -> (status: Int32, said: Transcript) {
    struct NoDatabase: Error {}
    let transcript = Transcript()
    let command = Operator(
        environment: environment, terminal: transcript.terminal(isWatched: isWatched),
        connect: { _ in throw NoDatabase() })
    return (await command.run(words), transcript)
}

/// A folder that is gone after the test.
func withFolder<T>(_ body: (URL) async throws -> T) async throws -> T {
    let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

extension URL {
    /// Writes a file into this folder and gives its path.
    func file(_ name: String, _ text: String) throws -> String {
        let path = appending(path: name)
        try Data(text.utf8).write(to: path)
        return path.path
    }
}

/// The repository's root.
let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

/// Real data beside the repository, which is not part of it; nil on machines that do not have it.
var sharedData: URL? {
    let named = ProcessInfo.processInfo.environment["MARTLET_SHARED"].map { URL(filePath: $0) }
    let data = (named ?? root.deletingLastPathComponent().appending(path: "shared")).appending(path: "data")
    return FileManager.default.fileExists(atPath: data.path) ? data : nil
}

extension OrderedJSON {
    subscript(name: String) -> OrderedJSON? {
        guard case .object(let object) = self else { return nil }
        return object[name]
    }

    var number: Int? {
        guard case .number(let digits) = self else { return nil }
        return Int(digits)
    }

    var items: [OrderedJSON] {
        guard case .array(let items) = self else { return [] }
        return items
    }

    var string: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }
}

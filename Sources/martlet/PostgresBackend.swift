import Core
import CorePostgres
import EventLoop
import OperatorApp
import Postgres
import ServiceKit
import Synchronization

/// What the operator's commands work with, on PostgreSQL.
struct PostgresBackend: OperatorBackend {
    private let loops: LoopGroup
    /// Past any pooler: migrations and imports need sessions of their own.
    private let database: Database
    /// What the services use, where it is another way.
    private let pooled: Database?
    private let obstacles = Obstacles()
    let imports: any ImportRepository
    let users: any UserRepository
    let people: any PeopleRepository
    let companies: any CompanyRepository
    let queue: any WorkQueueOperations
    let backup: any DatabaseBackup
    let health: any DatabaseHealth
    var databaseName: String { database.configuration.database }
    var databaseAddress: String { database.configuration.address }

    init(_ configuration: PostgresConfiguration, notify: Bool) {
        // One loop: the command waits for the database, not for the network.
        loops = LoopGroup(count: 1, name: "operator")
        let obstacles = obstacles
        let note: @Sendable (PostgresEvent) -> Void = { obstacles.note($0) }
        // Told apart from a direct way by the caller, who has refused to go on without one.
        database = Database(configuration.direct ?? configuration, loops: loops, log: note)
        pooled = configuration.isPooled ? Database(configuration, loops: loops, log: note) : nil
        imports = PostgresImport(db: database, notify: notify)
        users = PostgresUsers(db: database, notify: notify)
        people = PostgresPeople(db: database, notify: notify)
        companies = PostgresCompanies(db: database, notify: notify)
        queue = PostgresWorkQueue(db: database, notify: notify)
        backup = PostgresBackup(db: database)
        health = PostgresHealth(db: database)
    }

    func migrator(directory: String) throws -> any SchemaMigrator {
        Migrator(database: database, files: try MigrationFile.load(directory: directory))
    }

    func migrationVersions(directory: String) throws -> [String] {
        try MigrationFile.load(directory: directory).map(\.version)
    }

    var obstacle: String? { obstacles.text }
    var refusal: String? { obstacles.refusal }

    func ping() async throws {
        try await database.ping()
        try await pooled?.ping()
    }

    func close() async {
        await pooled?.close()
        await database.close()
        await loops.stop()
    }
}

/// What connections ran into.
private final class Obstacles: Sendable {
    private struct State {
        var hasMetPooler = false
        var refusal: String?
    }

    private let state = Mutex(State())

    func note(_ event: PostgresEvent) {
        state.withLock { state in
            switch event.kind {
            case .poolerMet: state.hasMetPooler = true
            case .connectFailed: state.refusal = event.reason.split(whereSeparator: \.isNewline).joined(separator: " ")
            case .connected: state.refusal = nil
            case .connectionLost, .listening: break
            }
        }
    }

    var text: String? { state.withLock { $0.hasMetPooler } ? "\(DatabaseSettings.poolerMet)" : nil }
    var refusal: String? { state.withLock { $0.refusal } }
}

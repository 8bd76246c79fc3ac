import Core
import CorePostgres
import EventLoop
import OperatorApp
import Postgres

/// What the operator's commands work with, on PostgreSQL.
struct PostgresBackend: OperatorBackend {
    private let loops: LoopGroup
    private let database: Database
    let imports: any ImportRepository
    let users: any UserRepository
    let companies: any CompanyRepository
    let queue: any WorkQueueOperations

    init(_ configuration: PostgresConfiguration, notify: Bool) {
        // One loop: the command waits for the database, not for the network.
        loops = LoopGroup(count: 1, name: "operator")
        database = Database(configuration, loops: loops)
        imports = PostgresImport(db: database, notify: notify)
        users = PostgresUsers(db: database, notify: notify)
        companies = PostgresCompanies(db: database, notify: notify)
        queue = PostgresWorkQueue(db: database, notify: notify)
    }

    func migrator(directory: String) throws -> any SchemaMigrator {
        Migrator(database: database, files: try MigrationFile.load(directory: directory))
    }

    func ping() async throws { try await database.ping() }

    func close() async {
        await database.close()
        await loops.stop()
    }
}

import ChatApp
import Core
import CorePostgres
import Postgres
import ServiceKit

/// What `main` needs besides wiring.
enum Startup {
    /// For `--help`.
    static let about = "Martlet's chat: holds WebSockets and Socket.IO sessions, and passes on messages and presence."

    static let retrySeconds = 1.0

    /// Runs what begins with a look at the database, again and again until it is there: the process is alive and not
    /// ready in the meantime, so nobody has to start it a second time.
    static func whenDatabaseIsThere(_ context: ServiceContext, _ body: () async throws -> Void) async throws {
        var told = false
        while true {
            do {
                return try await body()
            } catch let error as AppError where error.code == .unavailable {
                if !told { context.log.warning("waiting for the database") }
                told = true
                try await context.clock.sleep(seconds: retrySeconds)
            }
        }
    }

    /// With values whose rules the modules know that use them: told together with all other mistakes.
    static func configuration(_ environment: inout Environment) throws -> ChatConfiguration {
        for name in ["MARTLET_DATABASE_URL", "MARTLET_DATABASE_DIRECT_URL"] {
            environment.verify(name) { _ = try PostgresConfiguration(url: $0) }
        }
        return try ChatConfiguration(&environment)
    }

    static func database(_ settings: DatabaseSettings) throws -> PostgresConfiguration {
        try PostgresConfiguration(
            url: settings.url.value, directURL: settings.directURL?.value, isPooled: settings.isPooled)
    }

    /// The database, its events in the log and its lanes among the metrics.
    static func open(_ settings: DatabaseSettings, _ context: ServiceContext, _ log: Log) throws -> Database {
        let database = Database(
            try Self.database(settings), loops: context.loops, tracer: context.traces?.tracer,
            log: DatabaseLog(log, clock: context.clock).note)
        context.metrics.show(database)
        watchSchema(of: database, context, log)
        return database
    }

    private static func watchSchema(of database: Database, _ context: ServiceContext, _ log: Log) {
        let schema = PostgresSchema(db: database)
        SchemaWatch(
            version: PostgresSchema.version, look: { try await schema.applied() }, clock: context.clock, log: log
        ).begin(context.health)
    }
}

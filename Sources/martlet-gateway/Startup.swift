import Core
import CoreHTTP
import CorePostgres
import EventLoop
import GatewayApp
import HTTPServer
import MediaStore
import Postgres
import ServiceKit

/// What `main` needs besides wiring.
enum Startup {
    /// For `--help`.
    static let about = "Answers Martlet's API: accounts, companies, postings, search, applications, files."

    /// A refused body is read to its end up to this size: a proxy that is cut off while it still sends tells its client
    /// that nobody is there, and not what was wrong.
    static var limits: HTTPLimits {
        var limits = HTTPLimits()
        limits.discardedBytesMax = 32 << 20
        return limits
    }

    /// Values whose rules the modules know that use them: told together with all other mistakes.
    static func verify(_ environment: inout Environment) {
        for name in ["MARTLET_DATABASE_URL", "MARTLET_DATABASE_DIRECT_URL"] {
            environment.verify(name) { _ = try PostgresConfiguration(url: $0) }
        }
    }

    static func watch(_ store: any WorkingStore, _ context: ServiceContext) -> WatchedStore {
        WatchedStore(
            store, health: context.health, metrics: context.metrics, clock: context.clock, log: context.log)
    }

    /// Uploads that broke off with a gateway that was killed: what the store holds of them is of no use to anybody.
    /// Nobody waits for it: an S3 may be slow, or away.
    static func begin(_ store: WatchedStore, _ context: ServiceContext) {
        store.start()
        Task { await sweep(store, context) }
    }

    private static func sweep(_ store: WatchedStore, _ context: ServiceContext) async {
        do {
            let removed = try await store.sweep(now: context.clock.now())
            if removed > 0 { context.log.info("removed temporary files", ["files": .int(Int64(removed))]) }
        } catch {
            context.log.warning("could not remove temporary files", ["error": .string("\(error)")])
        }
    }

    /// Nobody waits longer than 5 seconds for a server that is away or silent: a statement has its time, and then the
    /// silence after it.
    static func database(_ settings: DatabaseSettings) throws -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(
            url: settings.url.value, directURL: settings.directURL?.value, isPooled: settings.isPooled)
        configuration.writeMilliseconds = 2_500
        configuration.leasedMilliseconds = 2_500
        configuration.lockMilliseconds = 2_000
        configuration.silenceMilliseconds = 2_000
        configuration.connectMilliseconds = 3_000
        return configuration
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

    static func parts(
        _ configuration: GatewayConfiguration, _ context: ServiceContext, _ database: Database,
        _ sessions: PostgresSessions, _ guardian: SessionGuard, _ store: WatchedStore
    ) -> GatewayParts {
        let (notify, quota) = (configuration.database.notify, configuration.quota)
        return GatewayParts(
            users: PostgresUsers(
                db: database, notify: notify, mailDomain: configuration.mailDomain, quota: quota),
            sessions: sessions, entries: PostgresEntries(db: database),
            companies: PostgresCompanies(db: database, notify: notify, quota: quota),
            postings: PostgresPostings(db: database, notify: notify), search: PostgresSearch(db: database),
            applications: PostgresApplications(db: database, notify: notify, quota: quota),
            media: PostgresMedia(db: database, notify: notify, quota: quota), cvs: PostgresCVs(db: database),
            rooms: PostgresRooms(db: database),
            alerts: PostgresAlerts(db: database, notify: notify),
            accounts: PostgresAccounts(db: database, notify: notify, mailDomain: configuration.mailDomain),
            store: store, keys: configuration.keys,
            guardian: guardian, clock: context.clock, metrics: context.metrics, log: context.log,
            openAPI: configuration.openAPI, trusted: configuration.trusted,
            signInFailuresPerMinute: configuration.signInFailuresPerMinute,
            registrationsPerMinute: configuration.registrationsPerMinute,
            accountSettings: configuration.accountSettings)
    }
}

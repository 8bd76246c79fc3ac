import CorePostgres
import MediaTools
import Postgres
import ServiceKit

/// What `main` needs besides wiring.
enum Startup {
    /// For `--help`.
    static let about = "Does Martlet's background work: mail, alerts, uploaded files, clearing up."

    /// Values whose rules the modules know that use them: told together with all other mistakes.
    static func verify(_ environment: inout Environment) {
        for name in ["MARTLET_DATABASE_URL", "MARTLET_DATABASE_DIRECT_URL"] {
            environment.verify(name) { _ = try PostgresConfiguration(url: $0) }
        }
    }

    static func database(_ settings: DatabaseSettings) throws -> PostgresConfiguration {
        try PostgresConfiguration(
            url: settings.url.value, directURL: settings.directURL?.value, isPooled: settings.isPooled)
    }

    /// Those that are installed: a machine without tesseract takes scans all the same, and reads none.
    static func scanLanguages(_ wanted: [String], log: Log) -> [String] {
        let found = ScanLanguages.installed(of: wanted)
        let missing = wanted.filter { !found.contains($0) }
        if !missing.isEmpty {
            log.info("no tesseract for these languages", ["missing": .string(missing.joined(separator: "+"))])
        }
        return found
    }

    static func watchSchema(of database: Database, _ context: ServiceContext) {
        let schema = PostgresSchema(db: database)
        SchemaWatch(
            version: PostgresSchema.version, look: { try await schema.applied() }, clock: context.clock,
            log: context.log
        ).begin(context.health)
    }
}

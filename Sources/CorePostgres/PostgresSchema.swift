import Core
import Postgres

/// What of the schema is there, as far as a service has to know.
public struct PostgresSchema: Sendable {
    /// Of the newest file of `migrations/`: what the statements of this program are written for. A test holds the two
    /// together.
    public static let version = "20261201092400"

    private let db: Database

    public init(db: Database) { self.db = db }

    /// - Returns: whether this program's newest migration is applied, and the newest of all that are: nil for none.
    public func applied() async throws -> (isApplied: Bool, newest: String?) {
        try await mapped {
            // In a database that nobody has migrated there is no table to ask.
            let exists = try await db.short.first("SELECT to_regclass('schema_migrations') IS NOT NULL") {
                try $0.get(0, as: Bool.self)
            }
            guard exists == true else { return (isApplied: false, newest: nil) }
            let found = try await db.short.first(
                """
                SELECT (SELECT max(version) FROM schema_migrations),
                       EXISTS (SELECT FROM schema_migrations WHERE version = \(Self.version))
                """
            ) { row in
                (isApplied: try row.get(1, as: Bool.self), newest: try row.get(0, as: String?.self))
            }
            return found ?? (isApplied: false, newest: nil)
        }
    }
}

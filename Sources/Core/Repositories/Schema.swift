import Foundation

/// Brings the database to the shape this version's migrations describe. Used by the operator's command only: no service
/// changes the schema when it starts.
public protocol SchemaMigrator: Sendable {
    /// Applies what is pending, oldest first, each in a transaction of its own. Several processes may call it at once:
    /// one does the work, the others wait for it and find it done.
    /// - Parameter progress: called after each migration.
    /// - Throws: an error that names the file and line; what was applied before it stays.
    func up(progress: @Sendable (AppliedMigration) -> Void) async throws -> SchemaReport
    /// Takes the newest applied migration back; nil when there is none.
    func down() async throws -> AppliedMigration?
    func status() async throws -> [MigrationState]
}

public struct AppliedMigration: Sendable, Equatable {
    public let name: String
    public let milliseconds: Double

    public init(name: String, milliseconds: Double) {
        self.name = name
        self.milliseconds = milliseconds
    }
}

public struct SchemaReport: Sendable, Equatable {
    public let applied: [AppliedMigration]
    /// Another process was migrating, and this one has waited for it.
    public let waited: Bool
    /// Versions that the database has and this version of Martlet does not know: a newer one has been here.
    public let unknown: [String]

    public init(applied: [AppliedMigration], waited: Bool, unknown: [String]) {
        self.applied = applied
        self.waited = waited
        self.unknown = unknown
    }
}

public struct MigrationState: Sendable, Equatable {
    public enum Standing: String, Sendable {
        case applied, pending
        /// Applied, but the file is not what was applied.
        case changed
        /// Applied, but there is no such file.
        case unknown
    }

    public let version: String
    public let name: String
    public let standing: Standing

    public init(version: String, name: String, standing: Standing) {
        self.version = version
        self.name = name
        self.standing = standing
    }
}

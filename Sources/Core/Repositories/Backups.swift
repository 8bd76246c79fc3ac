/// The database, as far as it is saved and brought back as a whole.
public protocol DatabaseBackup: Sendable {
    /// What PostgreSQL's own programs connect by: environment variables and their values. There are secrets among them.
    var toolEnvironment: [String: String] { get }
    /// Gives `body` one moment of the database, which is to be seen for as long as it runs.
    func snapshot<T: Sendable>(_ body: (any DatabaseSnapshot) async throws -> T) async throws -> T
    /// As `server_version` says: `15.6`.
    func serverVersion() async throws -> String
    /// Whether nobody has made a table, a view or anything of that kind.
    func isEmpty() async throws -> Bool
    /// What goes before and after the script that a dump makes, as one transaction for `psql`.
    /// - Parameters:
    ///   - replacing: drop everything in the schema `public` before.
    ///   - expecting: the transaction fails at its end when a table has not as many rows.
    func restoring(replacing: Bool, expecting: [TableCount]) -> (begin: String, end: String)
    /// Lets the planner know what came.
    func analyze() async throws
}

/// One moment of a database.
public protocol DatabaseSnapshot: Sendable {
    /// For `pg_dump --snapshot`.
    var name: String { get }
    /// Versions of the migrations that were applied.
    func migrations() async throws -> [String]
    func tableCounts() async throws -> [TableCount]
    /// Keys of the objects that rows name, in the order of their bytes, after one of them.
    func objectKeys(after: String, limit: Int) async throws -> [NamedObject]
}

public struct TableCount: Sendable, Equatable {
    /// `public.users`
    public let table: String
    public let rows: Int64

    public init(table: String, rows: Int64) {
        self.table = table
        self.rows = rows
    }
}

public struct NamedObject: Sendable, Equatable {
    public let key: String
    /// The row says itself that its object was lost.
    public let isLost: Bool

    public init(key: String, isLost: Bool) {
        self.key = key
        self.isLost = isLost
    }
}

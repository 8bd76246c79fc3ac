/// Where the database is, and what stands before it.
public struct DatabaseSettings: Sendable {
    public enum Pooler: String, CaseIterable, Sendable {
        /// None, or one that gives each client a server connection of its own.
        case off
        /// One that gives each transaction another server connection, as pgbouncer does by `pool_mode = transaction`.
        case transaction
    }

    /// Said wherever a pooler was met that nobody had told of.
    public static let poolerMet: StaticString = """
        A connection pooler stands before PostgreSQL: set MARTLET_DATABASE_POOLER=transaction, and \
        MARTLET_DATABASE_DIRECT_URL for LISTEN and migrations.
        """

    public let url: Secret
    /// The server's own address, past the pooler.
    public let directURL: Secret?
    public let isPooled: Bool
    /// Off: nothing listens or notifies; polling does it all, slower.
    public let notify: Bool

    public init(_ environment: inout Environment) {
        url = environment.secret("MARTLET_DATABASE_URL", bytesMin: 1)
        directURL = environment.value("MARTLET_DATABASE_DIRECT_URL").map { Secret($0) }
        isPooled = environment.choice("MARTLET_DATABASE_POOLER", default: Pooler.off) == .transaction
        notify = environment.bool("MARTLET_NOTIFY", default: true)
        if isPooled, notify, directURL == nil {
            environment.mistake(
                "MARTLET_DATABASE_POOLER is transaction, and nobody can LISTEN through such a pooler: "
                    + "set MARTLET_DATABASE_DIRECT_URL, or MARTLET_NOTIFY=off")
        }
    }
}

import Core
import Postgres

public struct PostgresChatInstances: ChatInstanceRepository {
    /// The newest ones: more processes than anybody runs, were rows of killed ones to pile up.
    static let instancesMax = 1_000

    private let db: Database

    public init(db: Database) { self.db = db }

    public func all() async throws -> [(name: String, internalAddress: String)] {
        try await mapped {
            try await db.short.rows(
                """
                SELECT name, internal_address
                FROM chat_instances
                ORDER BY started_at DESC, name
                LIMIT \(Self.instancesMax)
                """
            ) {
                try (name: $0.get(0), internalAddress: $0.get(1))
            }
        }
    }
}

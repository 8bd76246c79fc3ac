import Core
import Postgres

public struct PostgresChatInstances: ChatInstanceRepository {
    /// The newest ones: a process that was killed leaves its row behind, and where each start has a new name those
    /// pile up.
    static let instancesMax = 1_000

    private let db: Database

    public init(db: Database) { self.db = db }

    public func start(_ name: String, internalAddress: String) async throws {
        _ = try await mapped {
            try await db.write.execute(
                """
                INSERT INTO chat_instances (name, internal_address) VALUES (\(name), \(internalAddress))
                ON CONFLICT (name) DO UPDATE
                SET internal_address = excluded.internal_address, started_at = now(), lease_until = now()
                """)
        }
    }

    public func stop(_ name: String, internalAddress: String) async throws {
        _ = try await mapped {
            try await db.write.execute(
                "DELETE FROM chat_instances WHERE name = \(name) AND internal_address = \(internalAddress)")
        }
    }

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

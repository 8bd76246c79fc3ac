import Core
import Postgres

public struct PostgresChatInstances: ChatInstanceRepository {
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

    public func stop(_ name: String) async throws {
        _ = try await mapped { try await db.write.execute("DELETE FROM chat_instances WHERE name = \(name)") }
    }

    public func all() async throws -> [(name: String, internalAddress: String)] {
        try await mapped {
            try await db.short.rows("SELECT name, internal_address FROM chat_instances ORDER BY name") {
                try (name: $0.get(0), internalAddress: $0.get(1))
            }
        }
    }
}

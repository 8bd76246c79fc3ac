import CorePostgres
import Foundation
import TestSupport
import Testing

@Suite("What of the schema is there")
struct SchemaTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "migrations").path

    @Test("the version that services look for is that of the newest migration")
    func version() throws {
        #expect(PostgresSchema.version == (try MigrationFile.load(directory: Self.folder).last?.version))
    }

    @Test("every reference to a person is found by an index: the others would be read whole when one is erased")
    func references() async throws {
        try await withTestDatabase { _, database in
            let bare = try await database.run(
                """
                SELECT c.conname FROM pg_constraint c
                WHERE c.contype = 'f' AND c.confrelid = 'users'::regclass AND NOT EXISTS (
                  SELECT FROM pg_index i
                  WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1] AND i.indisvalid)
                ORDER BY 1
                """)
            #expect(bare.isEmpty, "\(bare)")
        }
    }

    @Test("an empty database has none; one on the way is older; a migrated one is ours, and a newer one as well")
    func applied() async throws {
        try await withTestDatabase { db, database in
            let schema = PostgresSchema(db: db)
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            #expect(try await schema.applied() == (isApplied: false, newest: nil))
            let files = try MigrationFile.load(directory: Self.folder)
            _ = try await Migrator(database: db, files: files.dropLast()).up { _ in }
            #expect(try await schema.applied() == (isApplied: false, newest: files[files.count - 2].version))
            _ = try await Migrator(database: db, files: files).up { _ in }
            #expect(try await schema.applied() == (isApplied: true, newest: PostgresSchema.version))
            try await database.run("INSERT INTO schema_migrations VALUES ('20990101000001')")
            #expect(try await schema.applied() == (isApplied: true, newest: "20990101000001"))
        }
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// Migrations of a database that is in use.
@Suite("Locks of migrations")
struct MigrationLockTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "migrations").path

    private static let one = """
        -- migrate:up
        LOCK TABLE one;
        LOCK TABLE two;
        ALTER TABLE one ADD COLUMN more int;
        -- migrate:down

        """

    /// When a statement whose text is like this has waited for a lock for that long.
    private func waits(_ text: String, milliseconds: Int = 0, in database: TestDatabase) async throws {
        try await eventually {
            let waiters = try await database.run(
                """
                SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                  AND query LIKE '%\(text)%' AND clock_timestamp() - query_start > interval '\(milliseconds) ms'
                """)
            return !waiters.isEmpty
        }
    }

    /// Connections that look for a deadlock later than anything here takes.
    private func patientWriter(_ database: TestDatabase) throws -> Database {
        var configuration = try PostgresConfiguration(url: database.url + "?options=-c%20deadlock_timeout%3D90s")
        configuration.writeMilliseconds = 90_000
        configuration.lockMilliseconds = 90_000
        configuration.acquireMilliseconds = 90_000
        return Database(configuration, loops: database.loops)
    }

    /// Keeps a migration that has moved the rows from going on while somebody has the advisory lock.
    private static let hold = """
        CREATE FUNCTION hold_drop() RETURNS event_trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
        BEGIN
          IF current_query() LIKE '%DROP TABLE messages%' THEN PERFORM pg_advisory_xact_lock(7); END IF;
        END $$;
        CREATE EVENT TRIGGER hold_drop ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION hold_drop()
        """

    @Test("an edit and a repeat that come while messages are moved wait, and neither they nor the migration fail")
    func careful() async throws {
        try await withTestDatabase(configure: fourLeased) { db, database in
            let files = try MigrationFile.load(directory: Self.folder)
            let first = try #require(files.firstIndex { $0.name.contains("partition_messages") })
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            _ = try await Migrator(database: db, files: Array(files[..<first])).up { _ in }
            let migrator = Migrator(database: db, files: files)
            try await makeRooms(database, users: 2, rooms: [[1, 2]])
            // Who looks for the deadlock is the migration: those who write look much later than it.
            let other = try patientWriter(database)
            let rooms = PostgresRooms(db: other)
            _ = try await rooms.send([draft(1, 1, "a")], notify: nil)
            try await database.run(Self.hold)
            try await db.session { session in
                try await session.execute("SELECT pg_advisory_lock(7)")
                async let report = migrator.up { _ in }
                try await waits("DROP TABLE messages", in: database)
                let edit = try Message.Draft(
                    roomID: Room.ID(1), senderID: User.ID(1), clientID: "e", content: .edit(1, "new"))
                async let outcomes = rooms.send([edit, draft(1, 1, "a")], notify: nil)
                try await eventually {
                    let waiters = try await database.run(
                        """
                        SELECT FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
                        WHERE locktype = 'relation' AND NOT granted
                        """)
                    return !waiters.isEmpty
                }
                try await session.execute("SELECT pg_advisory_unlock(7)")
                #expect(try await report.applied.map(\.name) == files[first...].map(\.name))
                let answers = try await outcomes
                #expect(answers.count == 2 && answers[1] == .duplicate(seq: 1))
            }
            await other.close()
            #expect(
                try await database.run("SELECT seq, body FROM messages ORDER BY seq") == [
                    ["1", "hello"], ["2", "new"],
                ])
        }
    }

    @Test("a migration that waited for another while that waited for it is tried again")
    func deadlock() async throws {
        try await withTestDatabase(configure: fourLeased) { db, database in
            try await database.run(
                """
                DROP SCHEMA public CASCADE; CREATE SCHEMA public;
                CREATE TABLE one (id int); CREATE TABLE two (id int)
                """)
            var patience = Migrator.Patience()
            patience.lockMilliseconds = 60_000
            let migrator = Migrator(
                database: db, files: [try MigrationFile(name: "20260101000001_one.sql", text: Self.one)],
                patience: patience)
            try await db.session { session in
                // The migration is the one that finds out.
                try await session.script("SET deadlock_timeout = '60s'; BEGIN; LOCK TABLE two")
                async let report = migrator.up { _ in }
                try await waits("LOCK TABLE two", in: database)
                try await session.script("LOCK TABLE one; COMMIT; RESET deadlock_timeout")
                #expect(try await report.applied.count == 1)
            }
        }
    }

    @Test("the last attempt waits for longer than PostgreSQL takes to end an autovacuum for who waits")
    func lastAttempt() async throws {
        #expect(Migrator.lastLockMillisecondsMax > 1000 && Migrator.lockMillisecondsMax < 1000)
        try await withTestDatabase(configure: fourLeased) { db, database in
            try await database.run(
                """
                DROP SCHEMA public CASCADE; CREATE SCHEMA public;
                CREATE TABLE one (id int); CREATE TABLE two (id int)
                """)
            var patience = Migrator.Patience()
            patience.lockMilliseconds = 20
            patience.lastLockMilliseconds = 60_000
            patience.attempts = 2
            let migrator = Migrator(
                database: db, files: [try MigrationFile(name: "20260101000001_one.sql", text: Self.one)],
                patience: patience)
            try await db.session { session in
                // As a vacuum has it.
                try await session.script("BEGIN; LOCK TABLE one IN SHARE UPDATE EXCLUSIVE MODE")
                async let report = migrator.up { _ in }
                try await waits("LOCK TABLE one", milliseconds: 500, in: database)
                try await session.script("COMMIT")
                #expect(try await report.applied.count == 1)
            }
        }
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite("Migrations")
struct MigratorTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "migrations").path

    /// A database of one's own with nothing in it.
    private func withEmptyDatabase(_ body: (Database, TestDatabase) async throws -> Void) async throws {
        try await withTestDatabase(configure: fourLeased) { db, database in
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            try await body(db, database)
        }
    }

    private func file(_ number: Int, _ up: String, _ down: String = "SELECT 1;", options: String = "") throws
        -> MigrationFile
    {
        try MigrationFile(
            name: "2026010100000\(number)_step.sql",
            text: "-- migrate:up\(options)\n\(up)\n-- migrate:down\(options)\n\(down)\n")
    }

    private func failure(_ work: () async throws -> Void) async -> MigrationError? {
        await #expect(throws: MigrationError.self) { try await work() }
    }

    @Test("the project's own go up, down to nothing, and up again; dbmate's table names them all")
    func upDownUp() async throws {
        try await withEmptyDatabase { db, database in
            let files = try MigrationFile.load(directory: Self.folder)
            let migrator = Migrator(database: db, files: files)
            let told = Mutex<[String]>([])
            let first = try await migrator.up { step in told.withLock { $0.append(step.name) } }
            #expect(first.applied.map(\.name) == files.map(\.name) && told.withLock { $0 } == files.map(\.name))
            #expect(try await migrator.up { _ in }.applied == [])
            let listed = try await database.run("SELECT version FROM schema_migrations ORDER BY 1").compactMap { $0[0] }
            #expect(listed == files.map(\.version))
            for file in files.reversed() { #expect(try await migrator.down()?.name == file.name) }
            #expect(try await migrator.down() == nil)
            let left = try await database.run(
                """
                SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'public' AND relkind IN ('r', 'p', 'S', 'v') AND relname !~ '^schema_migration'
                UNION ALL SELECT typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
                WHERE n.nspname = 'public' AND typtype = 'd'
                UNION ALL SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                WHERE n.nspname = 'public' AND NOT EXISTS (
                  SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
                """)
            #expect(left.isEmpty, "\(left)")
            #expect(try await migrator.up { _ in }.applied.count == files.count)
            #expect(try await migrator.status().allSatisfy { $0.standing == .applied })
        }
    }

    @Test("of five that start at once one migrates, and all find it done")
    func atOnce() async throws {
        try await withEmptyDatabase { _, database in
            let files = try MigrationFile.load(directory: Self.folder)
            let reports = try await withThrowingTaskGroup(of: SchemaReport.self) { group in
                for _ in 0..<5 {
                    group.addTask {
                        let db = try database.open { $0.leasedMax = 1 }
                        let report: Result<SchemaReport, any Error>
                        do {
                            report = .success(try await Migrator(database: db, files: files).up { _ in })
                        } catch {
                            report = .failure(error)
                        }
                        await db.close()
                        return try report.get()
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(reports.count == 5 && reports.count { $0.applied.count == files.count } == 1)
            #expect(reports.count { $0.applied.isEmpty } == 4)
        }
    }

    @Test("one that fails is not half done: what was before it stays, and the error names file and line")
    func failing() async throws {
        try await withEmptyDatabase { db, database in
            let good = try file(1, "CREATE TABLE one (id int);", "DROP TABLE one;")
            let bad = try file(2, "CREATE TABLE two (id int);\n\nCREATE TABLE three (id int) nonsense;")
            let error = await failure { _ = try await Migrator(database: db, files: [good, bad]).up { _ in } }
            #expect(error?.file == bad.name && error?.line == 4)
            #expect(error?.reason.contains("nonsense") == true && error?.reason.contains("42601") == true)
            let tables = try await database.run("SELECT to_regclass('one') IS NULL, to_regclass('two') IS NULL")
            #expect(tables == [["f", "t"]])
            let mended = try file(2, "CREATE TABLE two (id int);", "DROP TABLE two;")
            let report = try await Migrator(database: db, files: [good, mended]).up { _ in }
            #expect(report.applied.map(\.name) == [mended.name])
        }
    }

    @Test("a file edited after it was applied is refused; edits of the down part are not")
    func changed() async throws {
        try await withEmptyDatabase { db, _ in
            let file = try file(1, "CREATE TABLE one (id int);", "DROP TABLE one;")
            _ = try await Migrator(database: db, files: [file]).up { _ in }
            let edited = try self.file(1, "CREATE TABLE one (id bigint);", "DROP TABLE one;")
            let migrator = Migrator(database: db, files: [edited, try self.file(2, "SELECT 1;")])
            let error = await failure { _ = try await migrator.up { _ in } }
            #expect(error?.file == edited.name)
            #expect(try await migrator.status().map(\.standing) == [.changed, .pending])
            let downOnly = try self.file(1, "CREATE TABLE one (id int);", "DROP TABLE IF EXISTS one;")
            #expect(try await Migrator(database: db, files: [downOnly]).up { _ in }.applied == [])
        }
    }

    @Test("what dbmate has applied is known, and a newer Martlet's migrations do not disturb an older one")
    func others() async throws {
        try await withEmptyDatabase { db, database in
            try await database.run(
                """
                CREATE TABLE schema_migrations (version varchar(128) PRIMARY KEY);
                INSERT INTO schema_migrations VALUES ('20260101000001'), ('20990101000001');
                """)
            let files = [try file(1, "CREATE TABLE one (id int);"), try file(2, "CREATE TABLE two (id int);")]
            let report = try await Migrator(database: db, files: files).up { _ in }
            #expect(report.applied.map(\.name) == [files[1].name] && report.unknown == ["20990101000001"])
            let error = await failure { _ = try await Migrator(database: db, files: files).down() }
            #expect(error?.file == "20990101000001")
        }
    }

    @Test("a reader that holds its lock makes a migration give up in time, and nobody waits behind it for longer")
    func lockTimeout() async throws {
        try await withEmptyDatabase { db, database in
            let first = try file(1, "CREATE TABLE one (id int);")
            _ = try await Migrator(database: db, files: [first]).up { _ in }
            let reader = try database.open()
            var patience = Migrator.Patience()
            patience.lockMilliseconds = 100
            patience.attempts = 1
            let migrator = Migrator(
                database: db, files: [first, try file(2, "ALTER TABLE one ADD COLUMN more int;")], patience: patience)
            try await reader.transaction { transaction in
                try await transaction.execute("SELECT id FROM one")
                let start = ContinuousClock.now
                let error = await failure { _ = try await migrator.up { _ in } }
                #expect(error?.line == 2 && error?.reason.contains("pg_stat_activity") == true)
                #expect(ContinuousClock.now - start < .seconds(60))
            }
            #expect(try await migrator.up { _ in }.applied.count == 1)
            await reader.close()
        }
    }

    @Test("whoever waits for another that migrates does not wait for ever")
    func boundedWait() async throws {
        try await withEmptyDatabase { db, database in
            let other = try database.open()
            var patience = Migrator.Patience()
            patience.waitMilliseconds = 100
            let migrator = Migrator(database: db, files: [try file(1, "SELECT 1;")], patience: patience)
            try await other.session { session in
                try await session.execute("SELECT pg_advisory_lock(hashtextextended('martlet migrate', 0))")
                let error = await failure { _ = try await migrator.up { _ in } }
                #expect(error?.reason.contains("another process") == true)
            }
            await other.close()
        }
    }

    @Test("transaction:false runs what PostgreSQL refuses within one")
    func withoutTransaction() async throws {
        try await withEmptyDatabase { db, database in
            let table = try file(1, "CREATE TABLE one (id int);", "DROP TABLE one;")
            let index = try file(
                2, "CREATE INDEX CONCURRENTLY one_id2 ON one ((id + 1));", "DROP INDEX CONCURRENTLY one_id2;",
                options: " transaction:false")
            #expect(try await Migrator(database: db, files: [table, index]).up { _ in }.applied.count == 2)
            #expect(try await database.run("SELECT to_regclass('one_id2') IS NOT NULL") == [["t"]])
            // Were the second one to fail, the first would stay.
            let two = #expect(throws: MigrationError.self) {
                try file(
                    3, "CREATE INDEX CONCURRENTLY a ON one (id);\nCREATE INDEX CONCURRENTLY b ON one (id);",
                    "SELECT 1;", options: " transaction:false")
            }
            #expect(two?.reason.contains("one statement only") == true && two?.line == 3)
            let within = try file(2, "CREATE INDEX CONCURRENTLY one_id3 ON one (id);")
            let error = await failure {
                _ = try await Migrator(database: db, files: [table, index, try file(3, within.up.text)]).up { _ in }
            }
            #expect(error?.line == 2)
        }
    }

    @Test("an index that is built concurrently waits for whoever is at work, and for no one who migrates as well")
    func concurrently() async throws {
        try await withEmptyDatabase { db, database in
            let table = try file(1, "CREATE TABLE one (id int);")
            let index = try file(
                2, "CREATE INDEX CONCURRENTLY one_id4 ON one (id);", "DROP INDEX CONCURRENTLY one_id4;",
                options: " transaction:false")
            _ = try await Migrator(database: db, files: [table]).up { _ in }
            var patience = Migrator.Patience()
            patience.lockMilliseconds = 1
            let migrator = Migrator(database: db, files: [table, index], patience: patience)
            let (first, other) = (try database.open(), try database.open())
            let migrating = try await first.transaction { transaction in
                try await transaction.execute("INSERT INTO one VALUES (1)")
                let migrating = Task { try await migrator.up { _ in } }
                func isThere(_ sql: String) async throws {
                    try await eventually { try await database.run(sql) == [["t"]] }
                }
                try await isThere(
                    "SELECT count(*) > 0 FROM pg_stat_activity "
                        + "WHERE datname = current_database() AND wait_event_type = 'Lock'")
                let second = Task { try await Migrator(database: other, files: [table, index]).up { _ in } }
                try await isThere(
                    "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
                        + "AND query LIKE '%pg_sleep($1)%' AND pid <> pg_backend_pid()")
                return (migrating, second)
            }
            #expect(try await migrating.0.value.applied.count == 1)
            let late = try await migrating.1.value
            #expect(late.applied.isEmpty && late.waited)
            let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'one_id4'::regclass"
            #expect(try await database.run(valid) == [["t"]])
            await first.close()
            await other.close()
        }
    }

    @Test("an index that could not be built is named as what is left, and after it is dropped all goes on")
    func halfDone() async throws {
        try await withEmptyDatabase { db, database in
            try await database.run("CREATE TABLE other (id int); CREATE TABLE \"One\" (id int)")
            try await database.run("INSERT INTO other VALUES (1), (1); INSERT INTO \"One\" VALUES (7), (7)")
            // Somebody else's, and no business of this migration.
            await #expect(throws: (any Error).self) {
                try await database.run("CREATE UNIQUE INDEX CONCURRENTLY other_key ON other (id)")
            }
            let index = try file(
                2, "CREATE UNIQUE INDEX CONCURRENTLY \"One_key\" ON \"One\" (id);",
                "DROP INDEX CONCURRENTLY \"One_key\";", options: " transaction:false")
            var patience = Migrator.Patience()
            patience.concurrentMilliseconds = 50
            let migrator = Migrator(database: db, files: [index])
            let hurried = Migrator(database: db, files: [index], patience: patience)
            let drop = "DROP INDEX CONCURRENTLY \"One_key\""
            func left(_ error: MigrationError?, _ reason: String) {
                #expect(error?.file == index.name && error?.line == 2)
                let text = error?.reason ?? ""
                #expect(text.contains(reason) && text.contains("then \(drop); and migrate again"), "\(text)")
                #expect(!text.contains("nothing of this") && !text.contains("other_key"), "\(text)")
            }
            left(await failure { _ = try await migrator.up { _ in } }, "[23505]")
            // Again without the operator's step: the same step is named.
            left(await failure { _ = try await migrator.up { _ in } }, "[42P07]")
            try await database.run("DELETE FROM \"One\"; INSERT INTO \"One\" VALUES (7)")
            try await database.run(drop)
            // Somebody has a row of the table, and keeps it for longer than the build has.
            try await db.transaction { transaction in
                try await transaction.execute("UPDATE \"One\" SET id = 8")
                left(await failure { _ = try await hurried.up { _ in } }, "a lock was not to be had in 1 attempts")
            }
            try await database.run(drop)
            #expect(try await migrator.up { _ in }.applied.map(\.name) == [index.name])
            #expect(try await migrator.status().map(\.standing) == [.applied])
            let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = '\"One_key\"'::regclass"
            #expect(try await database.run(valid) == [["t"]])
            // Taken back as far as it goes, it is invalid as well; and the same again takes the rest.
            try await db.transaction { transaction in
                try await transaction.execute("UPDATE \"One\" SET id = 9")
                let error = await failure { _ = try await hurried.down() }
                #expect(error?.reason.hasSuffix("mend the cause and do the same again") == true)
            }
            #expect(try await migrator.down()?.name == index.name)
        }
    }

    @Test(
        "an index that was built and not recorded is named with its table, and after it is dropped all goes on",
        arguments: ["one_id5", "\"One id\""])
    func builtButNotRecorded(name: String) async throws {
        try await withEmptyDatabase { db, database in
            try await database.run("CREATE TABLE one (id int); CREATE INDEX one_id ON one (id)")
            let index = try file(
                1, "create index concurrently \(name)\n  ON one (id);", "DROP INDEX CONCURRENTLY \(name);",
                options: " transaction:false")
            let migrator = Migrator(database: db, files: [index])
            #expect(try await migrator.up { _ in }.applied.count == 1)
            // As if the program had been killed before that.
            try await database.run("DELETE FROM schema_migrations")
            let drop = "DROP INDEX CONCURRENTLY \(name)"
            let error = await failure { _ = try await migrator.up { _ in } }
            let text = error?.reason ?? ""
            #expect(text.contains("[42P07]; the index \(name) on one is there and valid"), "\(text)")
            #expect(text.hasSuffix("\(drop); and migrate again") && error?.line == 2, "\(text)")
            try await database.run(drop)
            #expect(try await migrator.up { _ in }.applied.count == 1)
            // A table of that name is nothing to drop.
            try await database.run("DELETE FROM schema_migrations")
            try await database.run(drop)
            try await database.run("CREATE TABLE \(name) (id int)")
            let other = await failure { _ = try await migrator.up { _ in } }
            #expect(other?.reason.contains("no index of it is invalid") == true, "\(other?.reason ?? "")")
        }
    }

    @Test("what fails outside of a transaction and leaves no index says so, and not that nothing was applied")
    func halfDoneOtherwise() async throws {
        try await withEmptyDatabase { db, database in
            let index = try file(
                1, "CREATE INDEX CONCURRENTLY one_id ON one (id);", "DROP INDEX CONCURRENTLY one_id;",
                options: " transaction:false")
            let migrator = Migrator(database: db, files: [index])
            let error = await failure { _ = try await migrator.up { _ in } }
            #expect(error?.reason.contains("no index of it is invalid") == true, "\(error?.reason ?? "")")
            try await database.run("CREATE TABLE one (id int)")
            #expect(try await migrator.up { _ in }.applied.count == 1)
            let bad = try file(2, "CREATE TABLE one (id int);")
            let within = await failure { _ = try await Migrator(database: db, files: [index, bad]).up { _ in } }
            #expect(within?.reason.hasSuffix("[42P07]; nothing of this migration was applied") == true)
        }
    }

    @Test(
        "a file that is no migration is refused with the reason",
        arguments: [
            ("users.sql", "-- migrate:up\n-- migrate:down\n", "14 digits"),
            ("20260101000001_a.sql", "CREATE TABLE a ();", "migrate:up"),
            ("20260101000001_a.sql", "-- migrate:up\nSELECT 1;\n", "migrate:down"),
            ("20260101000001_a.sql", "SELECT 1;\n-- migrate:up\n-- migrate:down\n", "before"),
            ("20260101000001_a.sql", "-- migrate:down\n-- migrate:up\n", "after"),
            ("20260101000001_a.sql", "-- migrate:up\n-- migrate:up\n-- migrate:down\n", "one \"-- migrate:up\""),
            ("20260101000001_a.sql", "-- migrate:up\n\0\n-- migrate:down\n", "NUL"),
        ])
    func malformed(name: String, text: String, reason: String) {
        let error = #expect(throws: MigrationError.self) { try MigrationFile(name: name, text: text) }
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Partitions")
struct PartitionTests {
    /// What each is divided by.
    private static let keys = ["messages": "room_id", "alert_deliveries": "alert_id"]

    @Test("messages and deliveries are hashed by what every statement on them names, and hold what they held")
    func layout() async throws {
        try await withTestDatabase { _, database in
            for (table, key) in Self.keys {
                let found = try await database.run(
                    """
                    SELECT pg_get_partkeydef('\(table)'::regclass),
                           (SELECT count(*) FROM pg_inherits WHERE inhparent = '\(table)'::regclass)
                    """)
                #expect(found == [["HASH (\(key))", "4"]])
            }
            try await database.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, body) SELECT i, 1, i, 'a' FROM generate_series(1, 800) i;
                INSERT INTO alert_deliveries (alert_id, posting_id, pending) SELECT i, 1, true
                  FROM generate_series(1, 800) i
                """)
            for table in Self.keys.keys {
                let counts = try await database.run("SELECT count(*) FROM \(table) GROUP BY tableoid")
                #expect(counts.count == 4 && counts.allSatisfy { Int($0[0]!)! > 50 })
            }
        }
    }

    @Test("a migration back and forth keeps every row and every name of a constraint and an index")
    func moved() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 2 }) { db, database in
            let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "migrations").path
            let files = try MigrationFile.load(directory: folder)
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            let before = try #require(files.firstIndex { $0.name.contains("partition_messages") })
            let old = Array(files[..<before])
            _ = try await Migrator(database: db, files: old).up { _ in }
            try await database.run(Self.rows)
            let names = try await database.run(Self.names)
            let held = try await database.run(Self.held)
            _ = try await Migrator(database: db, files: files).up { _ in }
            #expect(try await database.run(Self.held) == held)
            #expect(try await database.run(Self.names) == names)
            for _ in files[before...] { _ = try await Migrator(database: db, files: files).down() }
            #expect(try await database.run(Self.held) == held)
            #expect(try await database.run(Self.names) == names)
            let rest = try await database.run("SELECT relname FROM pg_class WHERE relname LIKE '%moved%'")
            #expect(rest == [])
        }
    }

    private static let rows = """
        INSERT INTO messages (room_id, seq, sender_id, client_id, kind, target_seq, body, media_id, created_at)
          SELECT i % 90, i, i % 7, 'c' || i, CASE i % 3 WHEN 0 THEN 'edit' ELSE 'text' END,
                 CASE i % 3 WHEN 0 THEN i - 1 END, repeat('é', i % 40), nullif(i % 5, 0), now() - i * interval '1 s'
          FROM generate_series(1, 900) i;
        INSERT INTO alert_deliveries (alert_id, posting_id, channel, pending)
          SELECT i % 90, i, 1 + i % 2, i % 4 = 0 FROM generate_series(1, 900) i
        """
    private static let held = """
        SELECT m::text FROM (SELECT * FROM messages) m UNION ALL SELECT d::text FROM alert_deliveries d ORDER BY 1
        """
    private static let names = """
        SELECT conname, contype::text FROM pg_constraint
        WHERE contype IN ('p', 'u') AND conrelid = ANY ('{messages,alert_deliveries}'::regclass[])
           OR conname LIKE 'messages%' AND contype = 'c'
        UNION ALL
        SELECT indexrelid::regclass::text, pg_get_expr(indpred, indrelid) FROM pg_index
        WHERE indrelid = ANY ('{messages,alert_deliveries}'::regclass[]) ORDER BY 1, 2
        """

    /// As it is in 0.1.0, which serves on while the schema is newer.
    private static let emptiedByPlace = """
        UPDATE messages SET body = '', media_id = NULL WHERE ctid = ANY (ARRAY(
          SELECT n.ctid FROM messages n WHERE n.room_id = 1 AND n.seq = 1))
        """

    @Test("a text that is deleted by its place, as the last release does it, takes nobody else's with it")
    func places() async throws {
        try await withTestDatabase { _, database in
            try await database.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, body) SELECT i, 1, i, 'a' FROM generate_series(1, 100) i
                """)
            let alike = try await database.run(
                "SELECT count(*) > 1 FROM messages WHERE ctid = (SELECT ctid FROM messages WHERE room_id = 1)")
            #expect(alike == [["t"]])
            try await database.run(Self.emptiedByPlace)
            #expect(try await database.run("SELECT count(*) FROM messages WHERE body = ''") == [["0"]])
            try await database.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, kind, target_seq, body) VALUES (1, 2, 1, 'delete', 1, '')
                """)
            try await database.run(Self.emptiedByPlace)
            let emptied = try await database.run("SELECT room_id FROM messages WHERE body = '' AND kind = 'text'")
            #expect(emptied == [["1"]])
            // By key nothing is in the way: an operator may erase what a person has written.
            try await database.run("UPDATE messages SET body = '' WHERE room_id = 2")
            #expect(try await database.run("SELECT body FROM messages WHERE room_id = 2") == [[""]])
        }
    }

    @Test(
        "limits of texts hold in every partition, under the names that they had",
        arguments: [
            ("messages_body_length", "repeat('x', 65537), 'text', 'c'"), ("messages_kind_known", "'x', 'shout', 'c'"),
            ("messages_client_id_length", "'x', 'text', ''"),
            ("messages_client_id_length", "'x', 'text', repeat('c', 65)"),
        ])
    func limits(name: String, values: String) async throws {
        try await withTestDatabase { db, _ in
            for room in 1...16 {
                let error = await #expect(throws: PostgresError.self) {
                    try await db.session { session in
                        try await session.script(
                            """
                            INSERT INTO messages (body, kind, client_id, room_id, seq, sender_id)
                            VALUES (\(values), \(room), 1, 1)
                            """)
                    }
                }
                #expect(error?.constraint == name)
            }
        }
    }

    @Test("the operator's page moves a partition, divides it in two, and every row is where it is looked for")
    func divided() async throws {
        let page = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "docs/operations/partitions.md"), encoding: .utf8)
        let recipes = page.components(separatedBy: "```").filter { $0.hasPrefix("sql\nBEGIN;") }
        try #require(recipes.count == 2)
        try await withTestDatabase { _, database in
            try await database.run(Self.rows)
            let held = try await database.run(Self.held)
            let names = try await database.run(Self.names)
            for recipe in recipes {
                // There is one disk here.
                let statements = recipe.dropFirst(4).replacingOccurrences(of: "'second'", with: "'pg_default'")
                try await database.run(statements)
                #expect(try await database.run(Self.held) == held)
                #expect(try await database.run(Self.names) == names)
            }
            let partitions = try await database.run(
                """
                SELECT count(DISTINCT tableoid), count(DISTINCT room_id) FROM messages
                WHERE tableoid::regclass::text IN ('messages_1a', 'messages_1b')
                """)
            #expect(partitions[0][0] == "2" && Int(partitions[0][1]!)! > 4)
            // Rooms are found by pruning, so a row in the wrong partition would be missing.
            let found = try await database.run(
                """
                SELECT count(*) FROM generate_series(0, 89) r CROSS JOIN LATERAL (
                  SELECT FROM messages m WHERE m.room_id = r AND m.seq > 0) f
                """)
            #expect(found == [["900"]])
        }
    }
}

import Core
import Postgres

/// What a backup asks of the database. It needs a way past any pooler.
public struct PostgresBackup: DatabaseBackup {
    private let db: Database

    public init(db: Database) { self.db = db }

    public var toolEnvironment: [String: String] { db.configuration.environment }

    public func snapshot<T: Sendable>(_ body: (any DatabaseSnapshot) async throws -> T) async throws -> T {
        try await db.session { session in
            // It is silent for as long as others read by its snapshot.
            try await session.script(
                """
                SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
                BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
                """)
            let name = try await session.first("SELECT pg_export_snapshot()") { try $0.get(0, as: String.self) }
            guard let name else { throw AppError.unavailable }
            return try await body(Snapshot(session: session, name: name))
        }
    }

    public func serverVersion() async throws -> String {
        try await mapped {
            try await db.long.first("SELECT current_setting('server_version')") { try $0.get(0) } ?? ""
        }
    }

    public func isEmpty() async throws -> Bool {
        try await mapped {
            try await db.long.first(
                """
                SELECT NOT EXISTS (
                  SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
                    AND NOT EXISTS (
                      SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))
                """
            ) { try $0.get(0, as: Bool.self) } ?? false
        }
    }

    public func restoring(replacing: Bool, expecting counts: [TableCount]) -> (begin: String, end: String) {
        // Whoever still uses the old tables is not waited for without an end.
        let clearing = "SET LOCAL lock_timeout = '10s'; DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
        let looks = counts.map { count in
            let parts = count.table.split(separator: ".", maxSplits: 1).map { Self.quoted(String($0), by: "\"") }
            let name = Self.quoted(count.table, by: "'")
            return """
                  SELECT count(*) INTO found FROM \(parts.joined(separator: "."));
                  IF found <> \(count.rows) THEN
                    RAISE EXCEPTION '% has % rows and should have \(count.rows)', \(name), found;
                  END IF;

                """
        }
        let begin = "BEGIN;\nSET LOCAL statement_timeout = 0;\n" + (replacing ? clearing + "\n" : "")
        let end = "DO $look$ DECLARE found bigint; BEGIN\n\(looks.joined())END $look$;\nCOMMIT;\n"
        return (begin, end)
    }

    private static func quoted(_ text: String, by mark: String) -> String {
        mark + text.replacing(mark, with: mark + mark) + mark
    }

    public func analyze() async throws {
        try await mapped { try await db.session { try await $0.script("SET statement_timeout = 0; ANALYZE") } }
    }

    /// The names of tables are data here, so the counts are made by statements that the server puts together.
    static let counts: SQL = """
        SELECT n.nspname || '.' || c.relname,
               (xpath('/row/c/text()', query_to_xml(
                 format('SELECT count(*) AS c FROM %I.%I', n.nspname, c.relname), false, true, '')))[1]::text::bigint
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
          AND NOT EXISTS (
            SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        ORDER BY 1
        """

    static func count(_ row: Row) throws -> TableCount { TableCount(table: try row.get(0), rows: try row.get(1)) }

    private struct Snapshot: DatabaseSnapshot {
        let session: Postgres.Session
        let name: String

        func migrations() async throws -> [String] {
            try await mapped {
                try await session.rows("SELECT version FROM schema_migrations ORDER BY version") { try $0.get(0) }
            }
        }

        func tableCounts() async throws -> [TableCount] {
            try await mapped { try await session.rows(PostgresBackup.counts, as: PostgresBackup.count) }
        }

        func objectKeys(after: String, limit: Int) async throws -> [NamedObject] {
            try await mapped {
                try await session.rows(
                    """
                    SELECT key, is_lost FROM (
                      (SELECT m.storage_key COLLATE "C" AS key, m.state = 'rejected' AS is_lost FROM media m
                       WHERE m.storage_key COLLATE "C" > \(after)
                         AND (m.state <> 'rejected' OR m.rejection = \(Media.lost.reason))
                       ORDER BY m.storage_key COLLATE "C" LIMIT \(limit))
                      UNION ALL
                      (SELECT v.storage_key COLLATE "C", m.state = 'rejected' FROM media_variants v
                       JOIN media m ON m.id = v.media_id
                       WHERE v.storage_key COLLATE "C" > \(after)
                         AND (m.state <> 'rejected' OR m.rejection = \(Media.lost.reason))
                       ORDER BY v.storage_key COLLATE "C" LIMIT \(limit))) k
                    ORDER BY key LIMIT \(limit)
                    """
                ) { NamedObject(key: try $0.get(0), isLost: try $0.get(1)) }
            }
        }
    }
}

import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Statements")
struct StatementTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources/CorePostgres")

    @Test("literals are found with their binds and fragments, past comments and other strings")
    func scan() {
        let source = ##"""
            // "SELECT 1"
            enum Parts {
                static let columns: SQL = "a, \(Self.more)"
                static let more: SQL =
                    """
                    b
                    """
            }
            struct Things {
                func find(_ id: Int) {
                    _ = "SELECT \(Parts.columns) FROM t WHERE id = \(id) AND n = \(f(id, "x)"))"
                    _ = "not a statement"
                    _ = Enqueue.item(payload: #"{"id":\#(id)}"#)
                    _ = """
                        UPDATE t SET x = E'\\t'
                        """
                }
            }
            """##
        let statements = StatementScan([(file: "a.swift", text: source)]).statements
        let texts = statements.map { statement in
            statement.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        #expect(texts == ["SELECT a, b FROM t WHERE id = $1 AND n = $2", #"UPDATE t SET x = E'\t'"#])
        #expect(statements.map(\.bindCount) == [2, 0])
    }

    @Test("every statement in the sources is one that the migrated schema takes")
    func prepared() async throws {
        let scan = try StatementScan(folder: Self.folder)
        #expect(scan.statements.count > 50)
        let tables = scan.ownTables.map { $0.replacing("ON COMMIT DROP", with: "") + ";" }.joined()
        try await withTestDatabase { _, database in
            for statement in scan.statements {
                do {
                    try await database.run("BEGIN; \(tables) PREPARE s AS \(statement.text); ROLLBACK; DEALLOCATE s")
                } catch {
                    Issue.record("\(statement.file):\(statement.line): \(error)\n\(statement.text)")
                }
            }
        }
    }

    @Test("no statement by key reads a big table from end to end")
    func plans() async throws {
        let files = [
            "PostgresUsers.swift", "PostgresSessions.swift", "PostgresCompanies.swift", "PostgresPostings.swift",
            "PostgresApplications.swift", "PostgresMedia.swift", "PostgresMedia+Use.swift", "PostgresMedia+Files.swift",
            "PostgresMedia+Delete.swift", "MediaStatements.swift", "PostgresRooms+Lists.swift",
            "PostgresRooms+History.swift", "PostgresRooms+Send.swift", "PostgresRooms.swift",
            "PostgresAccounts.swift", "PostgresAccountMails.swift", "AccountStatements.swift", "PostgresPresence.swift",
            "PostgresAlerts+Matching.swift", "PostgresUpkeep+Ledger.swift",
        ]
        let scan = try StatementScan(folder: Self.folder)
        let big =
            "users|sessions|session_refresh_tokens|media|media_variants|company_members|job_postings|applications"
            + "|application_events|rooms|room_members|account_mails|account_tokens|presence_changes"
            + "|messages(?:_\\d+)?|alert_deliveries(?:_\\d+)?"
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            // The total of the public list is counted, up to a bound, and is the one statement that is not by key.
            for statement in scan.statements
            where files.contains(statement.file) && !statement.text.contains("reltuples") {
                let arguments = Array(repeating: "NULL", count: statement.bindCount).joined(separator: ", ")
                let plan = try await database.run(
                    """
                    SET plan_cache_mode = force_generic_plan;
                    PREPARE s AS \(statement.text);
                    EXPLAIN (COSTS OFF) EXECUTE s\(arguments.isEmpty ? "" : "(\(arguments))")
                    """
                ).compactMap { $0[0] }
                let scans = try plan.filter { $0.contains(try Regex("Seq Scan on (\(big))\\b")) }
                #expect(scans == [], "\(statement.file):\(statement.line)\n\(plan.joined(separator: "\n"))")
            }
        }
    }

    /// Enough of everything that reading a table from end to end would be the slower way.
    private static let fill = """
        INSERT INTO users (username, email) SELECT 'user' || i, 'user' || i || '@example.org'
          FROM generate_series(1, 5000) i;
        INSERT INTO sessions (user_id, kind, expires_at) SELECT i, 'family', now() + i * interval '1 minute'
          FROM generate_series(1, 5000) i;
        INSERT INTO session_refresh_tokens (hash, session_id, generation)
          SELECT sha256(i::text::bytea), i, 0 FROM generate_series(1, 5000) i;
        INSERT INTO session_revocations (session_id, expires_at) SELECT i, now() FROM generate_series(1, 5000) i;
        INSERT INTO media (owner_id, kind, name, hash, bytes, sha256, storage_key)
          SELECT i, 'cv', 'cv.pdf', 'hash' || i, 1000, '', 'key' || i FROM generate_series(1, 5000) i;
        INSERT INTO media_variants (media_id, name, storage_key, hash, mime, ext, bytes, width, height)
          SELECT i, 'thumbnail', 'vkey' || i, 'vhash' || i, 'image/png', '.png', 100, 10, 10
          FROM generate_series(1, 5000) i;
        INSERT INTO companies (name, logo_media_id) SELECT 'Company ' || i, i FROM generate_series(1, 5000) i;
        INSERT INTO company_members (company_id, user_id) SELECT i, i FROM generate_series(1, 5000) i;
        INSERT INTO job_postings (company_id, title, state, published_at)
          SELECT i, 'Posting ' || i, 'published', now() FROM generate_series(1, 5000) i, generate_series(1, 2);
        INSERT INTO applications (posting_id, applicant_id, cv_media_id)
          SELECT i, 5001 - i, i FROM generate_series(1, 5000) i;
        INSERT INTO application_events (application_id, kind) SELECT i, 'initiated' FROM generate_series(1, 5000) i;
        INSERT INTO rooms (application_id) SELECT i FROM generate_series(1, 5000) i;
        INSERT INTO room_members (room_id, user_id) SELECT i, i FROM generate_series(1, 5000) i;
        INSERT INTO presence_changes (tx, user_ids) SELECT (i::text)::xid8, ARRAY[i] FROM generate_series(1, 5000) i;
        INSERT INTO messages (room_id, seq, sender_id, body)
          SELECT i, s, i, 'hello' FROM generate_series(1, 5000) i, generate_series(1, 20) s;
        INSERT INTO alert_deliveries (alert_id, posting_id, pending)
          SELECT i / 10, i, i % 10 = 0 FROM generate_series(1, 50000) i;
        INSERT INTO account_mails (message_id, kind, user_id, address, created_at, expires_at)
          SELECT i || '@example.org', 'reset', nullif(i % 2, 0) * i, 'user' || i || '@example.org', now(), now()
          FROM generate_series(1, 5000) i;
        INSERT INTO account_tokens (user_id, purpose, email, hash, mail_id, expires_at)
          SELECT i, 'reset', 'user' || i || '@example.org', sha256(i::text::bytea), i, now()
          FROM generate_series(1, 5000) i;
        ANALYZE
        """
}

import Core
import Postgres

/// Applies migrations in dbmate's format. Keeps dbmate's own table `schema_migrations`, so that either may be used, and
/// beside it what each applied file was, so that one edited afterwards is found.
///
/// It needs a connection that stays its own: a session lock keeps others out. Behind a transaction pooler give it the
/// database's own address.
public struct Migrator: SchemaMigrator {
    /// How long to wait for another process that is migrating. Its migrations may be long, but who waits is a start-up.
    public static let waitSecondsMax = 60
    /// How long a statement waits for a lock. While it waits, everyone who comes after waits behind it.
    public static let lockMillisecondsMax = 500
    /// In the last attempt: PostgreSQL ends an autovacuum for whoever has waited for it for `deadlock_timeout`, a
    /// second, and a vacuum of a big table takes longer than all attempts.
    public static let lastLockMillisecondsMax = 1500
    /// The same where there is no transaction: CREATE INDEX CONCURRENTLY waits for all that are open, and nobody waits
    /// behind it.
    public static let concurrentMillisecondsMax = 600_000
    /// Between two looks at whether another process still migrates. Nothing waits for long in one statement: its
    /// snapshot would be one of those that an index of the other process waits for.
    private static let pauseSeconds = 0.1
    /// A lock that was not to be had is asked for again, after half a second, one, two.
    public static let attemptsMax = 4

    private let database: Database
    private let files: [MigrationFile]
    private let patience: Patience

    /// How long it waits for others. Shorter in tests.
    public struct Patience: Sendable {
        public var waitMilliseconds = Migrator.waitSecondsMax * 1000
        public var lockMilliseconds = Migrator.lockMillisecondsMax
        public var concurrentMilliseconds = Migrator.concurrentMillisecondsMax
        public var lastLockMilliseconds = Migrator.lastLockMillisecondsMax
        public var attempts = Migrator.attemptsMax

        public init() {}
    }

    public init(database: Database, files: [MigrationFile], patience: Patience = Patience()) {
        self.database = database
        self.files = files
        self.patience = patience
    }

    public func up(progress: @Sendable (AppliedMigration) -> Void) async throws -> SchemaReport {
        try await database.session { session in
            try await prepare(session)
            // Usually there is nothing to do, and then nobody waits for anybody.
            let before = try await verified(session)
            guard before.contains(where: { $0.standing == .pending }) else {
                return SchemaReport(applied: [], waited: false, unknown: Self.unknown(before))
            }
            let waited = try await lock(session)
            // Between reading and locking another process may have done all of it.
            let states = try await verified(session)
            var applied: [AppliedMigration] = []
            for file in files where states.contains(where: { $0.version == file.version && $0.standing == .pending }) {
                let step = try await run(file, file.up, in: session) {
                    try await record(file, in: session)
                }
                applied.append(step)
                progress(step)
            }
            return SchemaReport(applied: applied, waited: waited, unknown: Self.unknown(states))
        }
    }

    public func down() async throws -> AppliedMigration? {
        try await database.session { session in
            try await prepare(session)
            _ = try await lock(session)
            let states = try await states(session)
            guard let last = states.last(where: { $0.standing != .pending }) else { return nil }
            guard let file = files.first(where: { $0.version == last.version }) else {
                throw MigrationError(last.version, "there is no file of this version, so it cannot be taken back")
            }
            return try await run(file, file.down, in: session) {
                try await session.execute("DELETE FROM schema_migrations WHERE version = \(file.version)")
            }
        }
    }

    public func status() async throws -> [MigrationState] {
        try await database.session { session in
            // A look makes nothing: a database that was looked at is as empty as before.
            let exists = try await session.first(
                "SELECT to_regclass('schema_migration_files') IS NOT NULL", as: { try $0.get(0, as: Bool.self) })
            guard exists == true else {
                return files.map { MigrationState(version: $0.version, name: $0.name, standing: .pending) }
            }
            return try await states(session)
        }
    }

    private static func unknown(_ states: [MigrationState]) -> [String] {
        states.filter { $0.standing == .unknown }.map(\.version)
    }

    /// Two processes that create the tables at once would collide; the lock is held for this moment only.
    private func prepare(_ session: Postgres.Session) async throws {
        try await session.script("SET statement_timeout = 0; SET client_min_messages = warning")
        let exists = try await session.first(
            "SELECT to_regclass('schema_migration_files') IS NOT NULL", as: { try $0.get(0, as: Bool.self) })
        if exists == true { return }
        try await session.script(
            """
            BEGIN;
            SELECT pg_advisory_xact_lock(hashtextextended('martlet schema_migrations', 0));
            CREATE TABLE IF NOT EXISTS schema_migrations (version varchar(128) PRIMARY KEY);
            CREATE TABLE IF NOT EXISTS schema_migration_files (
              version varchar(128) PRIMARY KEY REFERENCES schema_migrations ON DELETE CASCADE,
              name text NOT NULL, sha256 bytea NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
            COMMIT
            """)
    }

    /// - Returns: whether another process had it.
    private func lock(_ session: Postgres.Session) async throws -> Bool {
        let end = ContinuousClock.now + .milliseconds(patience.waitMilliseconds)
        var waited = false
        while true {
            let free = try await session.first(
                "SELECT pg_try_advisory_lock(hashtextextended('martlet migrate', 0))",
                as: { try $0.get(0, as: Bool.self) })
            if free == true { return waited }
            waited = true
            guard ContinuousClock.now < end else {
                throw MigrationError(
                    "schema_migrations", "another process has been migrating for over \(patience.waitMilliseconds) ms")
            }
            try await session.execute("SELECT pg_sleep(\(Self.pauseSeconds))")
        }
    }

    private func verified(_ session: Postgres.Session) async throws -> [MigrationState] {
        let states = try await states(session)
        if let changed = states.first(where: { $0.standing == .changed }) {
            throw MigrationError(
                changed.name, "the file has been changed since it was applied; write a new migration instead")
        }
        return states
    }

    private func states(_ session: Postgres.Session) async throws -> [MigrationState] {
        let applied = try await session.rows(
            """
            SELECT m.version, coalesce(f.name, ''),
                   f.sha256 IS NULL OR f.sha256 = sha256(convert_to(g.text, 'UTF8')) OR g.text IS NULL
            FROM schema_migrations m
            LEFT JOIN schema_migration_files f USING (version)
            LEFT JOIN unnest(\(files.map(\.version))::text[], \(files.map(\.up.text))::text[]) AS g(version, text)
              ON g.version = m.version
            """,
            as: { (try $0.get(0, as: String.self), try $0.get(1, as: String.self), try $0.get(2, as: Bool.self)) })
        var states = files.map { file in
            let row = applied.first { $0.0 == file.version }
            return MigrationState(
                version: file.version, name: file.name,
                standing: row.map { $0.2 ? .applied : .changed } ?? .pending)
        }
        for row in applied where !files.contains(where: { $0.version == row.0 }) {
            states.append(MigrationState(version: row.0, name: row.1, standing: .unknown))
        }
        return states.sorted { $0.version < $1.version }
    }

    private func record(_ file: MigrationFile, in session: Postgres.Session) async throws {
        try await session.execute("INSERT INTO schema_migrations (version) VALUES (\(file.version))")
        try await session.execute(
            """
            INSERT INTO schema_migration_files (version, name, sha256)
            VALUES (\(file.version), \(file.name), sha256(convert_to(\(file.up.text), 'UTF8')))
            """)
    }
}

extension Migrator {
    private func run(
        _ file: MigrationFile, _ part: MigrationFile.Part, in session: Postgres.Session, record: () async throws -> Void
    ) async throws -> AppliedMigration {
        let start = ContinuousClock.now
        // Only a whole transaction may be tried again; what ran outside of one is half done.
        let attempts = part.inTransaction ? patience.attempts : 1
        for attempt in 1... {
            let milliseconds =
                if !part.inTransaction {
                    patience.concurrentMilliseconds
                } else if attempt < attempts {
                    patience.lockMilliseconds
                } else {
                    patience.lastLockMilliseconds
                }
            do {
                try await session.execute("SELECT set_config('lock_timeout', \(String(milliseconds)), false)")
                try await once(file, part, in: session, record: record)
                break
            } catch let failure as StatementFailure {
                // Where it and another waited for each other, the other has gone on by then.
                guard failure.error.isLockTimeout || failure.error.isSerialization, attempt < attempts else {
                    let reason = explain(failure.error, attempts, milliseconds)
                    let rest = part.inTransaction ? Self.nothing : await leftovers(of: failure, in: session)
                    throw MigrationError(file.name, line: failure.statement.line, "\(reason); \(rest)")
                }
                try await session.execute("SELECT pg_sleep(\(0.25 * Double(1 << attempt)))")
            }
        }
        let taken = (ContinuousClock.now - start).components
        return AppliedMigration(
            name: file.name, milliseconds: Double(taken.seconds) * 1000 + Double(taken.attoseconds) / 1e15)
    }

    private struct StatementFailure: Error {
        let statement: SQLScript.Statement
        let error: PostgresError
    }

    private static let nothing = "nothing of this migration was applied"

    private func once(
        _ file: MigrationFile, _ part: MigrationFile.Part, in session: Postgres.Session, record: () async throws -> Void
    ) async throws {
        if part.inTransaction { try await session.script("BEGIN") }
        do {
            for statement in SQLScript.statements(part.text, firstLine: part.line) {
                do {
                    try await session.script(statement.text)
                } catch let error as PostgresError {
                    throw StatementFailure(statement: statement, error: error)
                }
            }
            try await record()
            if part.inTransaction { try await session.script("COMMIT") }
        } catch {
            if part.inTransaction { try? await session.script("ROLLBACK") }
            throw error
        }
    }

    private func explain(_ error: PostgresError, _ attempts: Int, _ milliseconds: Int) -> String {
        if error.isLockTimeout {
            return
                "a lock was not to be had in \(attempts) attempts, the last of \(milliseconds) ms: "
                + "someone holds it (look for a long transaction in pg_stat_activity, or for an autovacuum "
                + "\"to prevent wraparound\", which has to end by itself)"
        }
        let detail = error.detail.map { " (\($0))" } ?? ""
        return "\(error.message)\(detail) [\(error.sqlState)]"
    }

    /// What a statement without a transaction has left behind where it failed, and how to go on.
    ///
    /// CREATE INDEX CONCURRENTLY makes the index first and fills it then; one that was broken off stays, is kept up to
    /// date by every write, and is in the way of the next attempt. An index that is just being built is as invalid, and
    /// so is one of a partitioned table until its partitions have theirs: neither is taken for that.
    private func leftovers(of failure: StatementFailure, in session: Postgres.Session) async -> String {
        let statement = failure.statement
        let invalid = try? await session.rows(
            """
            SELECT i.indexrelid::regclass::text
            FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
            WHERE NOT i.indisvalid AND x.relkind = 'i' AND NOT EXISTS (
                SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)
              AND (strpos(\(statement.text), x.relname) > 0 OR strpos(\(statement.text), t.relname) > 0)
            ORDER BY 1
            """
        ) { try $0.get(0, as: String.self) }
        let ran = "the statement ran outside of a transaction, so it may be half done: "
        guard let invalid else {
            return ran + "look for what SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid names, "
                + "DROP INDEX CONCURRENTLY it, and migrate again"
        }
        if invalid.isEmpty, let built = await alreadyBuilt(failure, in: session) { return built }
        guard !invalid.isEmpty else { return ran + "no index of it is invalid, so mend the cause and migrate again" }
        if statement.text.uppercased().hasPrefix("DROP") {
            return ran + "\(invalid.joined(separator: ", ")) is invalid; mend the cause and do the same again"
        }
        return ran + "it left an invalid index; mend the cause, then "
            + invalid.map { "DROP INDEX CONCURRENTLY \($0); " }.joined() + "and migrate again"
    }
    /// Killed between the end of the build and its record, a migration leaves a good index, which is in the way of the
    /// next attempt as well. Whether it is what the file asks for only the operator can say.
    private func alreadyBuilt(_ failure: StatementFailure, in session: Postgres.Session) async -> String? {
        guard failure.error.sqlState == "42P07",  // duplicate_table (PostgreSQL manual, appendix A)
            let name = failure.statement.text.firstMatch(of: /CONCURRENTLY\s+("[^"]+"|\w+)\s+ON\s/.ignoresCase())?.1
        else { return nil }
        let index = try? await session.first(
            """
            SELECT indexrelid::regclass::text, indrelid::regclass::text FROM pg_index
            WHERE indisvalid AND indexrelid = to_regclass(\(String(name)))
            """,
            as: { (try $0.get(0, as: String.self), try $0.get(1, as: String.self)) })
        return index.map { name, table in
            "the index \(name) on \(table) is there and valid: a migration that was killed may have built it before it "
                + "was recorded. DROP INDEX CONCURRENTLY \(name); and migrate again"
        }
    }
}

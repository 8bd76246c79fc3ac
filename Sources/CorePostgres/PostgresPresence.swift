import Core
import Postgres

public struct PostgresPresence: PresenceRepository {
    /// The upper half of the keys of the processes' advisory locks, so that they meet nobody else's: "chat".
    static let lockClass: Int64 = 0x6368_6174
    /// Users of one row of `presence_changes`: it stays in its page.
    static let changeUsersMax = 500
    /// Users that one read of changes gives: more is a restart of everything, and everybody is looked up again.
    public static let changedUsersMax = 20_000

    private let db: Database
    private let notify: Bool

    /// - Parameter notify: false: nobody is woken, whatever the calls say.
    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    /// What the process's listening connection locks.
    public static func lockKey(of process: ChatProcess) -> Int64 { lockClass << 32 | Int64(process.run) }

    // MARK: Processes

    public func start(
        _ process: ChatProcess, lease seconds: Int, takesName: Bool, notify hint: String?
    ) async throws -> Bool {
        try await mapped {
            let (_, written, _, _) = try await db.write.batch(
                Statement(takesName ? Self.clearName(process) : Self.nothing),
                Statement(
                    """
                    INSERT INTO chat_instances (name, internal_address, run, lease_until)
                    VALUES (\(process.name), \(process.internalAddress), \(process.run),
                            now() + make_interval(secs => \(Double(seconds))::double precision))
                    ON CONFLICT DO NOTHING
                    """),
                // What a process left that died while it was written, too.
                Statement(
                    """
                    WITH gone AS (
                      DELETE FROM chat_presence p
                      WHERE NOT EXISTS (SELECT FROM chat_instances i WHERE i.run = p.run)
                      RETURNING p.user_id
                    ), \(Self.noted)
                    SELECT FROM gone
                    """), Statement(wake(hint)))
            return written.first == 1
        }
    }

    /// A statement of its own: the next one must see the name free.
    private static func clearName(_ process: ChatProcess) -> SQL {
        "DELETE FROM chat_instances WHERE name = \(process.name) OR run = \(process.run)"
    }

    private static let nothing: SQL = "SELECT 1"

    public func stop(_ process: ChatProcess, notify hint: String?) async throws {
        try await mapped {
            _ = try await db.write.batch([
                "DELETE FROM chat_instances WHERE run = \(process.run)", Self.deleteUsers(of: [process.run]),
                wake(hint),
            ])
        }
    }

    public func renew(_ process: ChatProcess, lease seconds: Int) async throws {
        try await mapped {
            _ = try await db.write.execute(
                """
                UPDATE chat_instances SET lease_until = now() + make_interval(secs => \(Double(seconds)))
                WHERE run = \(process.run)
                """)
        }
    }

    public func look() async throws -> [ChatProcessState] {
        try await mapped {
            try await db.short.rows(
                """
                WITH \(Self.held)
                SELECT i.name, i.run, i.run IN (SELECT h.run FROM held h),
                       extract(epoch FROM i.lease_until - now())::double precision
                FROM chat_instances i
                WHERE i.run IS NOT NULL
                ORDER BY i.started_at DESC, i.name LIMIT \(PostgresChatInstances.instancesMax)
                """
            ) { row in
                try ChatProcessState(
                    name: row.get(0), run: row.get(1), isLocked: row.get(2), leaseSeconds: row.get(3))
            }
        }
    }

    /// The runs whose locks are held. A key of 64 bits is shown in two halves and an `objsubid` of 1 (PostgreSQL
    /// manual, 54.12).
    private static let held: SQL = """
        held AS MATERIALIZED (
          SELECT l.objid::bigint AS run FROM pg_locks l
          WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.classid::bigint = \(Self.lockClass)
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        )
        """

    public func bury(_ runs: [Int32], notify hint: String?) async throws -> Int {
        let runs = runs.map(Int64.init)
        return try await mapped {
            try await db.write.batch([
                // Whoever came back since it was looked at stays.
                """
                WITH \(Self.held)
                DELETE FROM chat_instances i
                WHERE i.run = ANY (\(runs)::bigint[]) AND i.lease_until <= now()
                  AND NOT EXISTS (SELECT FROM held h WHERE h.run = i.run)
                """, Self.deleteUsers(of: runs), wake(hint),
            ]).first ?? 0
        }
    }

    /// A statement of its own, after the one that deletes the processes: a process writes users under a lock on its
    /// row, and what it has just committed must be seen.
    private static func deleteUsers(of runs: [some PostgresEncodable]) -> SQL {
        """
        WITH gone AS (
          DELETE FROM chat_presence p
          WHERE p.run = ANY (\(runs)::bigint[]) AND NOT EXISTS (SELECT FROM chat_instances i WHERE i.run = p.run)
          RETURNING p.user_id
        ), \(Self.noted)
        SELECT FROM gone
        """
    }

    private static let noted: SQL = """
        noted AS (
          INSERT INTO presence_changes (user_ids)
          SELECT array_agg(g.user_id) FROM (
            SELECT user_id, row_number() OVER () / \(Self.changeUsersMax) AS part FROM gone) g
          GROUP BY g.part
        )
        """

    // MARK: Users

    public func write(
        _ process: ChatProcess, online: [User.ID], offline: [User.ID], lease seconds: Int, notify hint: String?
    ) async throws -> Bool {
        let written: SQL = """
            WITH me AS MATERIALIZED (
              UPDATE chat_instances
              SET lease_until = now() + make_interval(secs => \(Double(seconds))::double precision)
              WHERE run = \(process.run) RETURNING run
            ), came AS (
              INSERT INTO chat_presence (user_id, run)
              SELECT o.id, m.run FROM me m, unnest(\(online.map(\.value))::bigint[]) AS o (id)
              ON CONFLICT (user_id, run) DO NOTHING RETURNING user_id
            ), gone_away AS (
              DELETE FROM chat_presence p
              USING me m WHERE p.user_id = ANY (\(offline.map(\.value))::bigint[]) AND p.run = m.run
              RETURNING p.user_id
            ), gone AS (
              SELECT user_id FROM came UNION ALL SELECT user_id FROM gone_away
            ), \(Self.noted)
            SELECT EXISTS (SELECT FROM me)
            """
        return try await mapped {
            let (found, _) = try await db.write.batch(
                Statement(written) { try $0.get(0, as: Bool.self) }, Statement(wake(hint)))
            return found.first ?? false
        }
    }

    public func online(among users: [User.ID]) async throws -> Set<User.ID> {
        guard !users.isEmpty else { return [] }
        return try await mapped {
            Set(
                try await db.short.rows(
                    """
                    SELECT DISTINCT p.user_id FROM chat_presence p
                    WHERE p.user_id = ANY (\(users.map(\.value))::bigint[])
                      AND EXISTS (SELECT FROM chat_instances i WHERE i.run = p.run)
                    """
                ) { try $0.get(0, as: User.ID.self) })
        }
    }

    public func changes(since bound: UInt64) async throws -> PresenceChanges {
        // As `PostgresRooms.changes`: nothing that commits later lies below the bound.
        try await mapped {
            let rows = try await db.short.rows(
                """
                SELECT pg_snapshot_xmin(pg_current_snapshot()), c.id
                FROM (SELECT 1) AS one LEFT JOIN (
                  SELECT DISTINCT unnest(user_ids) AS id FROM presence_changes
                  WHERE tx >= \(PostgresXID(bound))::xid8 LIMIT \(Self.changedUsersMax + 1)) AS c ON true
                """
            ) { try (bound: $0.get(0, as: PostgresXID.self), user: $0.get(1, as: User.ID?.self)) }
            let users = rows.compactMap(\.user)
            return PresenceChanges(
                users: Array(users.prefix(Self.changedUsersMax)), isWhole: users.count <= Self.changedUsersMax,
                bound: rows.first?.bound.value ?? bound)
        }
    }

    /// The last statement of a batch: wakes the other processes if somebody came or went.
    private func wake(_ hint: String?) -> SQL {
        guard notify, let hint else { return Self.nothing }
        return """
            SELECT pg_notify('martlet_chat', \(hint))
            WHERE EXISTS (SELECT FROM presence_changes WHERE tx = pg_current_xact_id_if_assigned())
            """
    }
}

import Core
import Postgres

public struct PostgresHealth: DatabaseHealth {
    /// Ready for longer than this, nobody seems to take it.
    public static let lateSecondsMax = 600
    /// A lease that ran out is taken up again within seconds, while there are workers.
    public static let lostSecondsMax = 300
    /// A picture is looked at within seconds.
    public static let pendingSecondsMax = 3600
    static let examplesMax = 5
    /// Beyond it one complaint is as good as another.
    public static let countMax = 1000

    private let db: Database

    public init(db: Database) { self.db = db }

    public func facts() async throws -> DatabaseFacts {
        let facts = try await mapped {
            try await db.write.first(
                """
                SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
                       array(SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) name
                             WHERE current_setting(name) IN ('off', 'local') ORDER BY name),
                       pg_encoding_to_char(d.encoding)::text,
                       current_setting('max_connections')::int
                         - current_setting('superuser_reserved_connections')::int,
                       (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'),
                       coalesce(has_schema_privilege(to_regnamespace('public')::oid, 'CREATE'), false)
                FROM pg_database d WHERE d.datname = current_database()
                """
            ) { row in
                DatabaseFacts(
                    version: try row.get(0), isStandby: try row.get(1), unsafeSettings: try row.get(2),
                    encoding: try row.get(3), connectionsMax: try row.get(4), connectionsUsed: try row.get(5),
                    mayCreate: try row.get(6))
            }
        }
        guard let facts else { throw AppError.unavailable }
        return facts
    }

    public func complaints() async throws -> [HealthComplaint] {
        let looks: [(HealthComplaint.Kind, SQL)] = [
            (.deadWork, "SELECT id FROM work_dead ORDER BY id DESC LIMIT \(Self.countMax)"),
            (
                .lateWork,
                """
                SELECT id FROM work_items
                WHERE NOT waiting AND leased_until IS NULL
                  AND run_at < now() - make_interval(secs => \(Double(Self.lateSecondsMax)))
                  AND kind <> ALL (ARRAY(
                    SELECT p.kind FROM work_pauses p WHERE p.paused AND (p.until IS NULL OR p.until > now())))
                ORDER BY id LIMIT \(Self.countMax)
                """
            ),
            (
                .lostLeases,
                """
                SELECT id FROM work_items
                WHERE leased_until < now() - make_interval(secs => \(Double(Self.lostSecondsMax)))
                ORDER BY id LIMIT \(Self.countMax)
                """
            ),
            (
                .roomNumbers,
                """
                SELECT r.id FROM rooms r
                WHERE r.last_seq <> coalesce((
                  SELECT m.seq FROM messages m WHERE m.room_id = r.id ORDER BY m.seq DESC LIMIT 1), 0)
                ORDER BY r.id LIMIT \(Self.countMax)
                """
            ),
            (
                .stuckUploads,
                """
                SELECT id FROM media
                WHERE state = 'pending'
                  AND created_at < now() - make_interval(secs => \(Double(Self.pendingSecondsMax)))
                ORDER BY id LIMIT \(Self.countMax)
                """
            ),
        ]
        var complaints: [HealthComplaint] = []
        for (kind, sql) in looks {
            let ids = try await mapped { try await db.long.rows(sql) { try $0.get(0, as: Int64.self) } }
            guard !ids.isEmpty else { continue }
            let examples = Array(ids.prefix(Self.examplesMax))
            complaints.append(HealthComplaint(kind: kind, count: Int64(ids.count), examples: examples))
        }
        return complaints
    }
}

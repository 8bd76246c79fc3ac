import Core
import Foundation
import Postgres

/// What an operator does with people's accounts; see `PeopleRepository`.
public struct PostgresPeople: PeopleRepository {
    /// The first number of the advisory lock of those who may take an administrator away: they take turns, so that of
    /// the last two each does not see the other.
    private static let administratorsLock: Int64 = 7411

    let db: Database
    let notify: Bool

    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    public func list(_ filter: UserFilter, after: User.ID?, limit: Int) async throws -> [User] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT \(Columns.user) FROM users u
                WHERE u.id > coalesce(\(after?.value as Int64?)::bigint, 0)
                  AND (\(filter.role as User.Role?)::text IS NULL OR u.role = \(filter.role as User.Role?)::text)
                  AND (\(filter.blocked as Bool?)::boolean IS NULL OR u.blocked = \(filter.blocked as Bool?)::boolean)
                  AND (\(filter.part as String?)::text IS NULL OR position(
                    lower(\(filter.part as String?)::text)
                    IN lower(concat_ws(' ', u.email, u.username, u.first_name, u.last_name))) > 0)
                ORDER BY u.id LIMIT \(limit)
                """
            ) { row in
                var reader = RowReader(row)
                return try reader.user()
            }
        }
    }

    public func setRole(_ role: User.Role, of id: User.ID) async throws {
        try await mapped {
            try await db.transaction { transaction in
                if role != .administrator { try await Self.keepAnAdministrator(without: id, in: transaction) }
                let changed = try await transaction.batch([
                    "UPDATE users SET role = \(role), updated_at = now() WHERE id = \(id) AND role <> \(role)",
                    """
                    INSERT INTO audit_log (action, subject, subject_id, detail)
                    SELECT 'user.role', 'user', u.id, jsonb_build_object('role', u.role) FROM users u WHERE u.id = \(id)
                    """,
                ])
                guard changed[1] == 1 else { throw AppError.notFound }
            }
        }
    }

    /// - Throws: `conflict` when the person is the last administrator who may sign in.
    static func keepAnAdministrator(without id: User.ID, in transaction: Transaction) async throws {
        let isLast = try await transaction.run(
            "SELECT pg_advisory_xact_lock(\(administratorsLock)::bigint::int, 0)",
            [
                """
                SELECT EXISTS (SELECT FROM users WHERE id = \(id) AND role = 'administrator' AND NOT blocked)
                  AND NOT EXISTS (SELECT FROM users WHERE id <> \(id) AND role = 'administrator' AND NOT blocked)
                """
            ]
        ) { _, rest in try rest[0][0].get(0, as: Bool.self) }
        guard !isLast else {
            throw AppError(
                .conflict,
                "this is the last administrator who is not blocked: make somebody else one before, by "
                    + "martlet user role WHO administrator")
        }
    }

    public func sessions(of id: User.ID, limit: Int) async throws -> [OpenSession] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT id, kind, created_at, rotated_at, expires_at FROM sessions
                WHERE user_id = \(id) AND revoked_at IS NULL AND expires_at > now()
                ORDER BY id DESC LIMIT \(limit)
                """
            ) { row in
                OpenSession(
                    id: try row.get(0), kind: try row.get(1), startedAt: try row.get(2), refreshedAt: try row.get(3),
                    expiresAt: try row.get(4))
            }
        }
    }

    public func endSessions(of id: User.ID) async throws -> Int {
        try await mapped {
            // The user's row is locked first: a sign-in that is just starting a session is either before, and ended
            // here, or after.
            try await db.transaction { transaction in
                let count = try await transaction.first(
                    """
                    SELECT (SELECT count(*) FROM sessions s
                            WHERE s.user_id = u.id AND s.revoked_at IS NULL AND s.expires_at > now())
                    FROM users u WHERE u.id = \(id) FOR NO KEY UPDATE
                    """
                ) { try $0.get(0, as: Int.self) }.orNotFound()
                _ = try await transaction.batch([
                    """
                    INSERT INTO audit_log (action, subject, subject_id) VALUES ('user.end_sessions', 'user', \(id))
                    """,
                    PostgresSessions.endAll(of: id, except: nil, notify: notify),
                ])
                return count
            }
        }
    }
}

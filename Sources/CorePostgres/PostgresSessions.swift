import Core
import Foundation
import Postgres

public struct PostgresSessions: SessionRepository {
    /// Generations of a family whose tokens are remembered, so that a replay is recognised: all of a family that
    /// refreshes every 15 minutes of its 60 days. Older tokens of a busier one are merely unknown.
    public static let generationsKeptMax = 6_000
    /// Rows one call of `prune` deletes of each table at most.
    public static let pruneMax = 10_000

    private let db: Database
    private let notify: Bool

    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    public func start(
        _ kind: Core.Session.Kind, user: User.ID, passwordHash: String?, refreshHash: [UInt8]?, expiresAt: Date
    ) async throws -> Core.Session {
        try await mapped {
            // FOR SHARE: a block or a change of password is either committed, and seen here, or it waits, and ends
            // this session.
            let session = try await db.write.first(
                """
                WITH started AS (
                  INSERT INTO sessions (user_id, kind, expires_at)
                  SELECT u.id, \(kind)::text, \(expiresAt)::timestamptz FROM users u
                  WHERE u.id = \(user) AND NOT u.blocked
                    AND (\(passwordHash)::text IS NULL OR u.password_hash = \(passwordHash)::text)
                  FOR SHARE
                  RETURNING id, user_id, kind, generation, expires_at
                ), token AS (
                  INSERT INTO session_refresh_tokens (hash, session_id, generation)
                  SELECT \(refreshHash)::bytea, s.id, s.generation FROM started s
                  WHERE \(refreshHash)::bytea IS NOT NULL
                )
                SELECT id, user_id, kind, generation, expires_at FROM started
                """, as: Self.session)
            guard let session else { throw AppError.unauthenticated }
            return session
        }
    }

    private static let session: @Sendable (Row) throws -> Core.Session = { row in
        try Core.Session(
            id: row.get(0), userID: row.get(1), kind: row.get(2), generation: row.get(3), expiresAt: row.get(4))
    }

    /// A session, and what a refresh token of it may do.
    private struct Family: Sendable {
        let session: Core.Session
        let rotatedAt: Date?
        let ended: Bool
        let tokenGeneration: Int

        enum Step { case rotate, repeatRotation, refuse, replay }

        func step(now: Date) -> Step {
            guard !ended, session.expiresAt > now else { return .refuse }
            if tokenGeneration == session.generation { return .rotate }
            guard tokenGeneration == session.generation - 1, let rotatedAt,
                now.timeIntervalSince(rotatedAt) <= Double(Core.Session.refreshGraceSeconds)
            else { return .replay }
            return .repeatRotation
        }
    }

    public func rotate(refreshHash: [UInt8], newRefreshHash: [UInt8], now: Date) async throws -> Core.Session {
        let session: Core.Session? = try await mapped {
            try await db.transaction { transaction in
                guard let family = try await find(refreshHash, in: transaction) else { return nil }
                switch family.step(now: now) {
                case .refuse: return nil
                case .replay:
                    // Committed, though the caller is refused: whoever holds this family's tokens must sign in again.
                    _ = try await transaction.execute(
                        Self.end(family.session.id, of: family.session.userID, notify: notify))
                    return nil
                case .rotate: return try await advance(family, newRefreshHash, now: now, in: transaction)
                case .repeatRotation:
                    try await add(newRefreshHash, to: family.session, in: transaction)
                    return family.session
                }
            }
        }
        guard let session else { throw AppError.unauthenticated }
        return session
    }

    private func find(_ refreshHash: [UInt8], in transaction: Transaction) async throws -> Family? {
        // The lock makes requests with tokens of one family take turns; each sees what the one before has done.
        try await transaction.first(
            """
            SELECT s.id, s.user_id, s.kind, s.generation, s.expires_at, s.rotated_at, s.revoked_at IS NOT NULL,
                   t.generation
            FROM session_refresh_tokens t JOIN sessions s ON s.id = t.session_id
            WHERE t.hash = \(refreshHash) FOR NO KEY UPDATE OF s
            """
        ) { row in
            Family(
                session: try Self.session(row), rotatedAt: try row.get(5), ended: try row.get(6),
                tokenGeneration: try row.get(7))
        }
    }

    private func add(_ hash: [UInt8], to session: Core.Session, in transaction: Transaction) async throws {
        _ = try await transaction.execute(
            """
            INSERT INTO session_refresh_tokens (hash, session_id, generation)
            VALUES (\(hash), \(session.id), \(session.generation))
            """)
    }

    private func advance(
        _ family: Family, _ hash: [UInt8], now: Date, in transaction: Transaction
    ) async throws -> Core.Session {
        let former = family.session
        let session = Core.Session(
            id: former.id, userID: former.userID, kind: former.kind, generation: former.generation + 1,
            expiresAt: former.expiresAt)
        _ = try await transaction.batch([
            "UPDATE sessions SET generation = \(session.generation), rotated_at = \(now) WHERE id = \(session.id)",
            """
            INSERT INTO session_refresh_tokens (hash, session_id, generation)
            VALUES (\(hash), \(session.id), \(session.generation))
            """,
            """
            DELETE FROM session_refresh_tokens
            WHERE session_id = \(session.id) AND generation < \(session.generation - Self.generationsKeptMax)
            """,
        ])
        return session
    }

    public func end(_ id: Core.Session.ID, user: User.ID) async throws {
        try await mapped { _ = try await db.write.execute(Self.end(id, of: user, notify: notify)) }
    }

    public func endAll(user: User.ID) async throws {
        try await mapped { _ = try await db.write.execute(Self.endAll(of: user, except: nil, notify: notify)) }
    }

    /// Ends one session and tells of it, if it was not ended.
    private static func end(_ id: Core.Session.ID, of user: User.ID, notify: Bool) -> SQL {
        """
        WITH ended AS (
          UPDATE sessions SET revoked_at = now()
          WHERE id = \(id) AND user_id = \(user) AND revoked_at IS NULL
          RETURNING id, kind, expires_at, coalesce(rotated_at, created_at) AS used_at
        ), noted AS (
          -- Of a family only access tokens live on without a look at the database, for 15 minutes; the rest is margin.
          INSERT INTO session_revocations (session_id, expires_at)
          SELECT id, CASE kind WHEN 'family' THEN greatest(now(), used_at) + interval '1 hour' ELSE expires_at END
          FROM ended RETURNING 1
        )
        SELECT pg_notify('martlet_session', '')
        FROM (SELECT count(*) AS sessions FROM noted) told WHERE told.sessions > 0 AND \(notify)
        """
    }

    /// Ends all sessions of a user, but one perhaps, and tells of it once. Part of others' transactions too.
    static func endAll(of user: User.ID, except kept: Core.Session.ID?, notify: Bool) -> SQL {
        """
        WITH ended AS (
          UPDATE sessions SET revoked_at = now()
          WHERE user_id = \(user) AND revoked_at IS NULL AND id IS DISTINCT FROM \(kept)
          RETURNING id, kind, expires_at, coalesce(rotated_at, created_at) AS used_at
        ), noted AS (
          INSERT INTO session_revocations (session_id, expires_at)
          SELECT id, CASE kind WHEN 'family' THEN greatest(now(), used_at) + interval '1 hour' ELSE expires_at END
          FROM ended RETURNING 1
        )
        SELECT pg_notify('martlet_session', '')
        FROM (SELECT count(*) AS sessions FROM noted) told WHERE told.sessions > 0 AND \(notify)
        """
    }

    public func revocations(since bound: UInt64) async throws -> Revocations {
        try await mapped {
            // One snapshot for the bound and the rows: a row that it does not show yet has a transaction of the bound
            // or above, however late it commits.
            let statement: SQL =
                """
                SELECT pg_snapshot_xmin(pg_current_snapshot()), r.session_id, r.expires_at
                FROM (SELECT 1) one LEFT JOIN session_revocations r ON r.tx >= \(PostgresXID(bound))
                """
            // The first read has all there are, the others a handful.
            let lane: any SQLExecutor = bound == 0 ? db.long : db.short
            let rows = try await lane.rows(statement) { row in
                (
                    bound: try row.get(0, as: PostgresXID.self), id: try row.get(1, as: Core.Session.ID?.self),
                    expiresAt: try row.get(2, as: Date?.self)
                )
            }
            return Revocations(
                sessions: rows.compactMap { row in
                    guard let id = row.id, let expiresAt = row.expiresAt else { return nil }
                    return (id: id, expiresAt: expiresAt)
                }, bound: rows.first?.bound.value ?? bound)
        }
    }

    public func prune(limit: Int) async throws -> Int {
        let limit = max(1, min(limit, Self.pruneMax))
        return try await mapped {
            // An hour's grace, for clocks that differ.
            let deleted = try await db.write.batch([
                """
                DELETE FROM sessions WHERE id = ANY (ARRAY(
                  SELECT id FROM sessions WHERE expires_at < now() - interval '1 hour'
                  ORDER BY expires_at LIMIT \(limit)))
                """,
                """
                DELETE FROM session_revocations WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM session_revocations WHERE expires_at < now() - interval '1 hour'
                  ORDER BY expires_at LIMIT \(limit)))
                """,
            ])
            return deleted.max() ?? 0
        }
    }
}

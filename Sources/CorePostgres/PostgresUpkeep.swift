import Core
import Foundation
import Postgres

public struct PostgresUpkeep: UpkeepRepository {
    /// Rows of one table that one round deletes: its locks and its WAL stay small, and the next hour goes on.
    static let rowsMax = 20_000
    /// Refreshing facts reads every word of every posting.
    static let refreshMilliseconds = 600_000
    static let deadSecondsMax: TimeInterval = 30 * 86400
    static let mailSecondsMax: TimeInterval = 90 * 86400
    /// Longer than any of their tokens is good; strangers' addresses are among them.
    static let accountMailSecondsMax: TimeInterval = 2 * 86400
    /// Who was away for longer reads from the rooms themselves.
    static let roomChangeSecondsMax: TimeInterval = 3600
    /// An expired session may still be asked about by a client that tries to refresh it.
    static let sessionSecondsMax: TimeInterval = 30 * 86400

    let db: Database

    public init(db: Database) { self.db = db }

    public func refreshSearchFacts() async throws {
        try await mapped {
            try await db.transaction { transaction in
                try await transaction.execute(
                    "SELECT set_config('statement_timeout', \(String(Self.refreshMilliseconds)), true)")
                try await transaction.execute("SELECT refresh_search_facts()")
            }
        }
    }

    public func prune(now: Date) async throws -> [String: Int] {
        try await mapped {
            var pruned: [String: Int] = [:]
            for (table, statement) in records(now: now) + cursors(now: now) {
                pruned[table] = try await db.write.execute(statement)
            }
            return pruned
        }
    }

    private func records(now: Date) -> [(String, SQL)] {
        let max = Self.rowsMax
        return [
            (
                "work_dead",
                """
                DELETE FROM work_dead WHERE id = ANY (ARRAY(
                  SELECT id FROM work_dead WHERE died_at < \(now - Self.deadSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "mails",
                """
                DELETE FROM mails WHERE id = ANY (ARRAY(
                  SELECT id FROM mails
                  WHERE state <> 'queued' AND ended_at < \(now - Self.mailSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "account_mails",
                """
                DELETE FROM account_mails WHERE id = ANY (ARRAY(
                  SELECT id FROM account_mails WHERE created_at < \(now - Self.accountMailSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "account_tokens",
                """
                DELETE FROM account_tokens WHERE hash = ANY (ARRAY(
                  SELECT hash FROM account_tokens
                  WHERE expires_at < \(now - Self.accountMailSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "alert_groups",
                """
                DELETE FROM alert_groups WHERE id = ANY (ARRAY(
                  SELECT g.id FROM alert_groups g
                  WHERE NOT EXISTS (SELECT FROM job_alerts a WHERE a.group_id = g.id)
                  LIMIT \(max) FOR UPDATE OF g SKIP LOCKED))
                """
            ),
        ]
    }

    /// What others follow by a cursor, and sessions.
    private func cursors(now: Date) -> [(String, SQL)] {
        let max = Self.rowsMax
        return [
            (
                "room_changes",
                """
                DELETE FROM room_changes WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM room_changes WHERE at < \(now - Self.roomChangeSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "presence_changes",
                """
                DELETE FROM presence_changes WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM presence_changes WHERE at < \(now - Self.roomChangeSecondsMax) LIMIT \(max)))
                """
            ),
            (
                "session_revocations",
                """
                DELETE FROM session_revocations WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM session_revocations WHERE expires_at < \(now) LIMIT \(max)))
                """
            ),
            (
                "sessions",
                """
                DELETE FROM sessions WHERE id = ANY (ARRAY(
                  SELECT id FROM sessions WHERE expires_at < \(now - Self.sessionSecondsMax) LIMIT \(max)))
                """
            ),
        ]
    }
}

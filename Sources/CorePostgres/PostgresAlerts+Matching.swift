import Core
import Foundation
import Postgres

/// What the worker does with alerts. Each is one statement and its wake-up in one transaction: the ledger, the mails
/// and their work items stand or fall together.
extension PostgresAlerts {
    public func match(_ postings: [JobPosting.ID], now: Date) async throws -> Int {
        let ids = postings.map(\.value)
        return try await mapped {
            try await db.transaction { transaction in
                let counts = try await transaction.first(
                    """
                    WITH matched AS MATERIALIZED (
                      SELECT m.posting_id, a.id AS alert_id, a.cadence
                      FROM match_postings(\(ids)::bigint[], \(now)) m
                      JOIN job_alerts a ON a.group_id = m.group_id AND a.state = 'active'
                      JOIN users u ON u.id = a.user_id AND u.confirmed AND NOT u.blocked
                      WHERE NOT EXISTS (SELECT FROM mail_suppressions s WHERE s.address = u.email)
                      ORDER BY a.id, m.posting_id),
                    ledger AS (
                      INSERT INTO alert_deliveries (alert_id, posting_id, pending)
                      SELECT alert_id, posting_id, cadence <> 'instant' FROM matched
                      ON CONFLICT ON CONSTRAINT alert_deliveries_once DO NOTHING
                      RETURNING alert_id, posting_id, pending),
                    mail AS (
                      INSERT INTO mails (message_id, user_id, alert_id, kind, posting_ids)
                      SELECT gen_random_uuid() || '@' || \(mailDomain), a.user_id, a.id, 'alert_instant',
                             array_agg(l.posting_id ORDER BY l.posting_id DESC)
                      FROM ledger l JOIN job_alerts a ON a.id = l.alert_id
                      WHERE NOT l.pending GROUP BY a.id, a.user_id
                      RETURNING id),
                    item AS (
                      INSERT INTO work_items (kind, payload, traceparent)
                      SELECT \(WorkItem.Kind.sendMail.rawValue), jsonb_build_object('mail_id', id),
                             \(Enqueue.traceparent)::varchar
                      FROM mail)
                    SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM mail)
                    """
                ) { (rows: try $0.get(0, as: Int.self), mails: try $0.get(1, as: Int.self)) }
                if let counts, counts.mails > 0 { try await transaction.wakeWorkers(notify: notify) }
                return counts?.rows ?? 0
            }
        }
    }

    public func digestsDue(now: Date) async throws -> Bool {
        try await mapped {
            try await db.short.first(
                "SELECT EXISTS (SELECT FROM job_alerts WHERE state = 'active' AND next_digest_at <= \(now))"
            ) { try $0.get(0, as: Bool.self) } ?? false
        }
    }

    public func collectDigests(now: Date, limit: Int) async throws -> Int {
        try await mapped {
            try await db.transaction { transaction in
                let mails =
                    try await transaction.first(
                        """
                        WITH due AS MATERIALIZED (
                          SELECT a.id, a.user_id, a.cadence, u.time_zone, u.confirmed AND NOT u.blocked AS is_wanted
                          FROM job_alerts a JOIN users u ON u.id = a.user_id
                          WHERE a.state = 'active' AND a.next_digest_at <= \(now)
                          ORDER BY a.next_digest_at LIMIT \(limit) FOR UPDATE OF a SKIP LOCKED),
                        moved AS (
                          UPDATE job_alerts a SET next_digest_at = next_digest_at(due.cadence, due.time_zone, \(now))
                          FROM due WHERE a.id = due.id),
                        taken AS (
                          UPDATE alert_deliveries d SET pending = false FROM due
                          WHERE d.alert_id = due.id AND d.pending RETURNING d.alert_id, d.posting_id),
                        mail AS (
                          INSERT INTO mails (message_id, user_id, alert_id, kind, posting_ids)
                          SELECT gen_random_uuid() || '@' || \(mailDomain), due.user_id, due.id,
                                 'alert_' || due.cadence,
                                 array_agg(s.posting_id ORDER BY s.published_at DESC, s.posting_id DESC)
                          FROM taken JOIN due ON due.id = taken.alert_id AND due.is_wanted
                          JOIN posting_search s ON s.posting_id = taken.posting_id AND s.expires_at > \(now)
                          GROUP BY due.id, due.user_id, due.cadence
                          RETURNING id),
                        item AS (
                          INSERT INTO work_items (kind, payload, traceparent)
                          SELECT \(WorkItem.Kind.sendMail.rawValue), jsonb_build_object('mail_id', id),
                                 \(Enqueue.traceparent)::varchar
                          FROM mail)
                        SELECT count(*) FROM mail
                        """
                    ) { try $0.get(0, as: Int.self) } ?? 0
                if mails > 0 { try await transaction.wakeWorkers(notify: notify) }
                return mails
            }
        }
    }
}

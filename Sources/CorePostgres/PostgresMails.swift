import Core
import Foundation
import Postgres

public struct PostgresMails: MailRepository {
    /// Postings shown in one mail; the others are counted.
    public static let itemsMax = 50
    static let subjectLengthMax = 150
    static let reasonLengthMax = 500

    let db: Database

    public init(db: Database) { self.db = db }

    private struct Head {
        let messageID: String
        let to: String
        let kind: String
        let alertID: JobAlert.ID
        let createdAt: Date
        let name: String
        let search: PostingSearch
        let isWanted: Bool
        let isSuppressed: Bool
    }

    public func take(_ id: Mail.ID) async throws -> Mail? {
        try await mapped {
            let (heads, rows) = try await db.long.batch(head(id), items(id))
            guard let head = heads.first else { return nil }
            guard head.isWanted, let total = rows.first?.total else {
                // Ended by the person in the meantime, or nothing of it is open any more.
                try await end(id, as: head.isSuppressed ? "suppressed" : "dropped")
                return nil
            }
            let items = rows.map { row in
                let reason = MatchReason(
                    search: head.search, wordsFound: row.words, distanceKm: row.distance, company: row.company)
                return MailItem(
                    postingID: row.id, title: row.title, company: row.company, place: row.place, reason: reason.text)
            }
            return Mail(
                id: id, messageID: head.messageID, to: head.to, kind: head.kind, alertID: head.alertID,
                subjectLine: Self.subject(alert: head.name, items: items, total: total), items: items,
                moreItems: total - items.count, createdAt: head.createdAt)
        }
    }

    private func head(_ id: Mail.ID) -> Statement<Head> {
        Statement(
            """
            SELECT m.message_id, u.email, m.kind, m.alert_id, m.created_at, a.name,
                   a.state = 'active' AND u.confirmed AND NOT u.blocked AND s.address IS NULL, s.address IS NOT NULL,
                   a.q, a.place_name, g.kind, g.remote, g.min_salary, g.company_id, g.lat, g.lng, g.radius_km
            FROM mails m JOIN users u ON u.id = m.user_id
            JOIN job_alerts a ON a.id = m.alert_id JOIN alert_groups g ON g.id = a.group_id
            LEFT JOIN mail_suppressions s ON s.address = u.email
            WHERE m.id = \(id) AND m.state = 'queued'
            """
        ) { row in
            Head(
                messageID: try row.get(0), to: try row.get(1), kind: try row.get(2), alertID: try row.get(3),
                createdAt: try row.get(4), name: try row.get(5), search: try PostgresAlerts.search(row, from: 8),
                isWanted: try row.get(6), isSuppressed: try row.get(7))
        }
    }

    private struct ItemRow {
        let id: JobPosting.ID
        let title: String
        let company: String
        let place: String
        let words: [String]
        let distance: Double?
        let total: Int
    }

    private func items(_ id: Mail.ID) -> Statement<ItemRow> {
        Statement(
            """
            SELECT p.id, p.title, c.name, p.place, words_found(a.q, s.tsv), km(s.lat, s.lng, g.lat, g.lng), t.total
            FROM (
              SELECT i.posting_id, i.n, m.alert_id, count(*) OVER () AS total
              FROM mails m, unnest(m.posting_ids) WITH ORDINALITY AS i (posting_id, n)
              JOIN posting_search s ON s.posting_id = i.posting_id AND s.expires_at > now()
              WHERE m.id = \(id) ORDER BY i.n LIMIT \(Self.itemsMax)) t
            JOIN posting_search s ON s.posting_id = t.posting_id
            JOIN job_postings p ON p.id = t.posting_id JOIN companies c ON c.id = p.company_id
            JOIN job_alerts a ON a.id = t.alert_id JOIN alert_groups g ON g.id = a.group_id
            ORDER BY t.n
            """
        ) { row in
            ItemRow(
                id: try row.get(0), title: try row.get(1), company: try row.get(2), place: try row.get(3),
                words: try row.get(4), distance: try row.get(5), total: try row.get(6))
        }
    }

    static func subject(alert name: String, items: [MailItem], total: Int) -> String {
        let text =
            if total == 1, let item = items.first {
                item.company.isEmpty ? item.title : "\(item.title) at \(item.company)"
            } else if name.isEmpty {
                "\(total) new postings for your alert"
            } else {
                "\(total) new postings for “\(name)”"
            }
        return text.count > subjectLengthMax ? text.prefix(subjectLengthMax - 1) + "…" : text
    }

    public func markSent(_ id: Mail.ID) async throws {
        try await mapped { try await end(id, as: "sent") }
    }

    private func end(_ id: Mail.ID, as state: String) async throws {
        try await db.write.execute(
            "UPDATE mails SET state = \(state), ended_at = now() WHERE id = \(id) AND state = 'queued'")
    }

    public func suppress(_ address: String, reason: String) async throws {
        let reason = reason.prefix(Self.reasonLengthMax).replacingOccurrences(of: "\0", with: " ")
        try await mapped {
            _ = try await db.write.batch([
                """
                INSERT INTO mail_suppressions (address, reason) VALUES (\(address), \(reason))
                ON CONFLICT (address) DO NOTHING
                """,
                """
                UPDATE mails m SET state = 'suppressed', ended_at = now() FROM users u
                WHERE u.email = \(address) AND m.user_id = u.id AND m.state = 'queued'
                """,
                """
                UPDATE account_mails SET state = 'suppressed', seed = NULL, ended_at = now()
                WHERE address = \(address) AND state = 'queued'
                """,
            ])
        }
    }
}

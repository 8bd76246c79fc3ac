import Core
import Foundation
import Postgres

public struct PostgresAccountMails: AccountMailRepository {
    private let db: Database

    public init(db: Database) { self.db = db }

    private struct Found: Sendable {
        let kind: AccountMail.Kind
        let messageID: String
        let address: String
        let newAddress: String?
        let token: AccountToken.Stored?
        let createdAt: Date
        let expiresAt: Date
        let user: User.ID
        let username: String
        let email: String
        let isConfirmed: Bool
        let isBlocked: Bool
        let isTaken: Bool
        let isSuppressed: Bool
    }

    /// What becomes of a mail that was asked for.
    private enum Decision {
        case send(AccountMail.Content, AccountToken.Purpose?)
        case end(String)
    }

    public func take(_ id: AccountMail.ID, now: Date) async throws -> AccountMail? {
        try await mapped {
            try await db.transaction { transaction in
                // The user's row first, as wherever tokens change. Whose address it is may change until then, so it is
                // looked up again below.
                _ = try await transaction.execute(
                    """
                    SELECT FROM account_mails m
                    JOIN users u ON u.id = coalesce(m.user_id, (SELECT o.id FROM users o WHERE o.email = m.address))
                    WHERE m.id = \(id) AND m.state = 'queued' FOR NO KEY UPDATE OF u
                    """)
                guard let found = try await find(id, in: transaction) else {
                    try await end(id, as: "dropped", on: transaction)
                    return nil
                }
                switch Self.decide(found, now: now) {
                case .end(let state):
                    try await end(id, as: state, on: transaction)
                    return nil
                case .send(let content, let purpose):
                    if let purpose, let token = found.token {
                        let isLatest = try await keep(token, of: found, for: purpose, mail: id, in: transaction)
                        guard isLatest else {
                            try await end(id, as: "dropped", on: transaction)
                            return nil
                        }
                    }
                    return AccountMail(
                        id: id, messageID: found.messageID, to: found.address, username: found.username,
                        content: content, createdAt: found.createdAt)
                }
            }
        }
    }

    private func find(_ id: AccountMail.ID, in transaction: Transaction) async throws -> Found? {
        try await transaction.first(
            """
            SELECT m.kind, m.message_id, m.address, m.new_address, m.seed, m.hash, m.created_at, m.expires_at,
                   u.id, u.username, u.email, u.confirmed, u.blocked,
                   EXISTS (SELECT FROM users o WHERE o.email = m.address AND o.id <> u.id),
                   EXISTS (SELECT FROM mail_suppressions s WHERE s.address = m.address)
            FROM account_mails m
            JOIN users u ON u.id = coalesce(m.user_id, (SELECT o.id FROM users o WHERE o.email = m.address))
            WHERE m.id = \(id) AND m.state = 'queued' FOR NO KEY UPDATE OF m
            """
        ) { row in
            let seed = try row.get(4, as: [UInt8]?.self)
            let hash = try row.get(5, as: [UInt8]?.self)
            return Found(
                kind: try row.get(0), messageID: try row.get(1), address: try row.get(2), newAddress: try row.get(3),
                token: seed.flatMap { seed in hash.map { AccountToken.Stored(seed: seed, hash: $0) } },
                createdAt: try row.get(6), expiresAt: try row.get(7), user: try row.get(8), username: try row.get(9),
                email: try row.get(10), isConfirmed: try row.get(11), isBlocked: try row.get(12),
                isTaken: try row.get(13), isSuppressed: try row.get(14))
        }
    }

    private static func decide(_ found: Found, now: Date) -> Decision {
        guard found.expiresAt > now, !found.isBlocked else { return .end("dropped") }
        guard !found.isSuppressed else { return .end("suppressed") }
        let isOwn = found.email == found.address
        switch (found.kind, found.token, found.newAddress) {
        case (.reset, let token?, _) where isOwn: return .send(.reset(token), .reset)
        case (.confirm, let token?, _) where isOwn && !found.isConfirmed: return .send(.confirm(token), .confirm)
        case (.change, let token?, _) where !isOwn:
            return found.isTaken ? .send(.addressTaken, nil) : .send(.change(token), .change)
        case (.changeNotice, _, let newAddress?): return .send(.changeNotice(newAddress: newAddress), nil)
        default: return .end("dropped")
        }
    }

    /// False when a later mail's token is there, or this one has been used.
    private func keep(
        _ token: AccountToken.Stored, of found: Found, for purpose: AccountToken.Purpose, mail: AccountMail.ID,
        in transaction: Transaction
    ) async throws -> Bool {
        try await transaction.execute(
            """
            INSERT INTO account_tokens AS t (user_id, purpose, email, hash, mail_id, expires_at)
            VALUES (\(found.user), \(purpose.rawValue), \(found.address), \(token.hash), \(mail), \(found.expiresAt))
            ON CONFLICT (user_id, purpose) DO UPDATE
            SET email = excluded.email, hash = excluded.hash, mail_id = excluded.mail_id,
                expires_at = excluded.expires_at, used_at = NULL
            WHERE t.mail_id < excluded.mail_id OR (t.mail_id = excluded.mail_id AND t.used_at IS NULL)
            """) == 1
    }

    public func markSent(_ id: AccountMail.ID) async throws {
        try await mapped { try await end(id, as: "sent", on: db.write) }
    }

    private func end(_ id: AccountMail.ID, as state: String, on executor: some SQLExecutor) async throws {
        try await executor.execute(
            """
            UPDATE account_mails SET state = \(state), seed = NULL, ended_at = now()
            WHERE id = \(id) AND state = 'queued'
            """)
    }

    public func suppress(_ address: String, reason: String) async throws {
        try await PostgresMails(db: db).suppress(address, reason: reason)
    }
}

import Core
import Foundation
import Postgres

public struct PostgresAccounts: AccountRepository {
    private let db: Database
    private let notify: Bool
    private let mailDomain: String

    /// - Parameter mailDomain: the right side of Message-IDs.
    public init(db: Database, notify: Bool = true, mailDomain: String = "localhost") {
        self.db = db
        self.notify = notify
        self.mailDomain = mailDomain
    }

    public func ask(_ kind: AccountMail.Kind, address: String, _ mailing: AccountMailing) async throws {
        try await mapped {
            _ = try await db.write.batch(
                [
                    AccountStatements.takeTurns(address),
                    AccountStatements.ask(kind, address: address, user: nil, mailing, domain: mailDomain),
                ] + (notify ? [Enqueue.wake] : []))
        }
    }

    public func find(hash: [UInt8], now: Date) async throws -> AccountToken? {
        try await mapped {
            try await db.short.first(
                """
                SELECT t.purpose, u.username, t.email
                FROM account_tokens t JOIN users u ON u.id = t.user_id
                WHERE t.hash = \(hash) AND t.used_at IS NULL AND t.expires_at > \(now) AND NOT u.blocked
                  AND (t.purpose = 'change' OR t.email = u.email)
                """
            ) { row in
                AccountToken(purpose: try row.get(0), username: try row.get(1), email: try row.get(2))
            }
        }
    }

    public func reset(hash: [UInt8], passwordHash: String, now: Date) async throws -> User {
        try await mapped {
            try await db.transaction { transaction in
                guard let used = try await use(hash, for: [.reset], now: now, in: transaction) else {
                    throw AppError.wrongResetCode
                }
                _ = try await transaction.batch(
                    [
                        """
                        UPDATE users SET password_hash = \(passwordHash), confirmed = true, updated_at = now()
                        WHERE id = \(used.user)
                        """,
                        Self.audit("user.reset", used.user),
                    ] + AccountStatements.voidTokens(of: used.user)
                        + [PostgresSessions.endAll(of: used.user, except: nil, notify: notify)])
                return try await transaction.first(
                    "SELECT \(Columns.user) FROM users u WHERE u.id = \(used.user)", as: Self.user
                ).orNotFound()
            }
        }
    }

    public func confirm(hash: [UInt8], now: Date) async throws -> User {
        try await mapped {
            try await db.transaction { transaction in
                guard let used = try await use(hash, for: [.confirm, .change], now: now, in: transaction) else {
                    throw AppError.wrongConfirmation
                }
                let isChange = used.purpose == .change
                var statements: [SQL] = [
                    """
                    UPDATE users SET email = \(used.email), confirmed = true, updated_at = now()
                    WHERE id = \(used.user)
                    """,
                    Self.audit(isChange ? "user.email" : "user.confirm", used.user),
                ]
                // What was mailed to the former address opens nothing any more.
                if isChange { statements += AccountStatements.voidTokens(of: used.user) }
                _ = try await transaction.batch(statements)
                return try await transaction.first(
                    "SELECT \(Columns.user) FROM users u WHERE u.id = \(used.user)", as: Self.user
                ).orNotFound()
            }
        }
    }

    private static let user: @Sendable (Row) throws -> User = { row in
        var reader = RowReader(row)
        return try reader.user()
    }

    private static func audit(_ action: String, _ user: User.ID) -> SQL {
        """
        INSERT INTO audit_log (actor_id, action, subject, subject_id)
        VALUES (\(user), \(action), 'user', \(user))
        """
    }

    private struct Used: Sendable {
        let user: User.ID
        let purpose: AccountToken.Purpose
        let email: String
    }

    /// Marks a token as used, when it is good. The user's row is locked before, as wherever tokens change: two uses
    /// take turns, and the second sees what the first has done.
    private func use(
        _ hash: [UInt8], for purposes: [AccountToken.Purpose], now: Date, in transaction: Transaction
    ) async throws -> Used? {
        let user = try await transaction.first(
            """
            SELECT u.id FROM account_tokens t JOIN users u ON u.id = t.user_id
            WHERE t.hash = \(hash) FOR NO KEY UPDATE OF u
            """
        ) { try $0.get(0, as: User.ID.self) }
        guard let user else { return nil }
        return try await transaction.first(
            """
            UPDATE account_tokens t SET used_at = \(now)
            FROM users u
            WHERE t.hash = \(hash) AND t.purpose = ANY (\(purposes.map(\.rawValue))) AND t.used_at IS NULL
              AND t.expires_at > \(now) AND u.id = t.user_id AND u.id = \(user) AND NOT u.blocked
              AND (t.purpose = 'change' OR t.email = u.email)
            RETURNING t.user_id, t.purpose, t.email
            """
        ) { row in
            Used(user: try row.get(0), purpose: try row.get(1), email: try row.get(2))
        }
    }
}

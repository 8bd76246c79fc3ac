import Core
import Foundation
import Postgres

/// What several repositories do with mails and tokens of accounts, as parts of their own transactions.
enum AccountStatements {
    /// The first number of the advisory locks of `takeTurns`: it keeps them apart from others.
    private static let turnsLock: Int64 = 7409

    /// Who asks for mails to one address takes turns, so that the limit holds; goes before `ask`.
    static func takeTurns(_ address: String) -> SQL {
        "SELECT pg_advisory_xact_lock(\(turnsLock)::bigint::int, hashtext(\(address)::text))"
    }

    /// Writes a mail and its work item, unless the address has had its mails of this kind and hour. Affects one row, or
    /// none then.
    static func ask(
        _ kind: AccountMail.Kind, address: String, user: User.ID?, newAddress: String? = nil, _ mailing: AccountMailing,
        domain: String
    ) -> SQL {
        let hasToken = kind != .changeNotice
        return """
            WITH mail AS (
              INSERT INTO account_mails
                (message_id, kind, user_id, address, new_address, seed, hash, created_at, expires_at)
              SELECT gen_random_uuid()::text || '@' || \(domain)::text, \(kind.rawValue)::text, \(user)::bigint,
                     \(address)::text, \(newAddress)::text, \(hasToken ? mailing.token.seed : nil)::bytea,
                     \(hasToken ? mailing.token.hash : nil)::bytea, \(mailing.now)::timestamptz,
                     \(mailing.now + kind.secondsMax)::timestamptz
              WHERE (SELECT count(*) FROM account_mails m
                     WHERE m.address = \(address)::text AND m.kind = \(kind.rawValue)::text
                       AND m.created_at > \(mailing.now - TimeInterval(AccountMail.limitSeconds))::timestamptz)
                    < \(AccountMail.perAddressAndHourMax)::bigint
              RETURNING id
            )
            INSERT INTO work_items (kind, payload, traceparent)
            SELECT \(WorkItem.Kind.sendAccountMail.rawValue), jsonb_build_object('mail_id', m.id),
                   \(Enqueue.traceparent)::varchar
            FROM mail m
            """
    }

    /// Voids what was mailed, or is about to be: the password is another one, so whoever asked before may have been
    /// somebody else. The user's row is locked before, here and where a mail is taken.
    static func voidTokens(of user: User.ID) -> [SQL] {
        [
            """
            UPDATE account_tokens SET used_at = now()
            WHERE user_id = \(user) AND purpose IN ('reset', 'change') AND used_at IS NULL
            """,
            """
            UPDATE account_mails SET state = 'dropped', seed = NULL, ended_at = now()
            WHERE state = 'queued' AND kind IN ('reset', 'change')
              AND (user_id = \(user) OR address = (SELECT u.email FROM users u WHERE u.id = \(user)))
            """,
        ]
    }
}

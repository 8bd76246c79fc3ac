import Core
import Foundation
import Postgres

public struct PostgresUsers: UserRepository {
    private let db: Database
    private let notify: Bool
    private let mailDomain: String
    private let quota: Media.Quota

    /// - Parameters:
    ///   - mailDomain: the right side of Message-IDs.
    ///   - quota: of one person's files.
    public init(
        db: Database, notify: Bool = true, mailDomain: String = "localhost", quota: Media.Quota = Media.Quota()
    ) {
        self.db = db
        self.notify = notify
        self.mailDomain = mailDomain
        self.quota = quota
    }

    private static let user: @Sendable (Row) throws -> User = { row in
        var reader = RowReader(row)
        return try reader.user()
    }

    public func create(
        _ draft: User.Draft, passwordHash: String, confirmation: AccountMailing?
    ) async throws -> User {
        try await mapped {
            let insert: SQL =
                """
                INSERT INTO users AS u (username, email, password_hash, first_name, last_name, phone_number, confirmed)
                VALUES (\(draft.username), \(draft.email), \(passwordHash), \(draft.firstName), \(draft.lastName),
                        \(draft.phoneNumber), \(confirmation == nil))
                RETURNING \(Columns.user)
                """
            guard let confirmation else { return try await db.write.first(insert, as: Self.user).orNotFound() }
            // The limit of mails does not hold an account up: whoever got none asks for another one later.
            let rest =
                [
                    AccountStatements.takeTurns(draft.email),
                    AccountStatements.ask(
                        .confirm, address: draft.email, user: nil, confirmation, domain: mailDomain),
                ] + (notify ? [Enqueue.wake] : [])
            return try await db.write.run(insert, rest) { result, _ in
                result.count > 0 ? try Self.user(result[0]) : nil
            }.orNotFound()
        }
    }

    public func find(_ id: User.ID) async throws -> User {
        try await mapped {
            try await db.short.first(
                "SELECT \(Columns.user) FROM users u WHERE u.id = \(id)", as: Self.user
            ).orNotFound()
        }
    }

    public func findForSignIn(identifier: String) async throws -> (user: User, passwordHash: String?)? {
        // Names have no @ and addresses have one, so that nobody signs in by a name that looks like another's address.
        let email = identifier.contains("@") ? identifier.lowercased() : nil
        return try await mapped {
            try await db.short.first(
                """
                SELECT u.password_hash, \(Columns.user) FROM users u
                WHERE u.id = CASE WHEN \(email)::text IS NULL
                  THEN (SELECT n.id FROM users n WHERE lower(n.username) = lower(\(identifier)::text)
                                                   AND n.username = \(identifier)::text)
                  ELSE (SELECT e.id FROM users e WHERE e.email = \(email)::text) END
                """
            ) { row in
                var reader = RowReader(row, from: 1)
                return (user: try reader.user(), passwordHash: try row.get(0, as: String?.self))
            }
        }
    }

    public func passwordHash(of id: User.ID) async throws -> String? {
        try await mapped {
            let found = try await db.short.first("SELECT password_hash FROM users WHERE id = \(id)") { row in
                [try row.get(0, as: String?.self)]
            }
            return try found.orNotFound()[0]
        }
    }

    public func setPassword(
        _ hash: String, replacing former: String?, of id: User.ID, endingSessionsExcept kept: Core.Session.ID?
    ) async throws {
        try await mapped {
            try await db.transaction { transaction in
                // The user's row is locked first: a sign-in that is just starting a session (FOR SHARE) is either
                // before, and ended here, or after, and finds another hash than the one it checked. Of two changes
                // that checked the same hash the second waits here, and finds the first one's.
                let present = try await transaction.first(
                    "SELECT password_hash FROM users WHERE id = \(id) FOR NO KEY UPDATE"
                ) { [try $0.get(0, as: String?.self)] }.orNotFound()[0]
                guard former == nil || former == present else {
                    throw AppError(.conflict, "The password has been changed meanwhile.")
                }
                _ = try await transaction.batch(
                    [
                        "UPDATE users SET password_hash = \(hash), updated_at = now() WHERE id = \(id)",
                        """
                        INSERT INTO audit_log (actor_id, action, subject, subject_id)
                        SELECT id, 'user.password', 'user', id FROM users WHERE id = \(id)
                        """,
                    ] + AccountStatements.voidTokens(of: id)
                        + [PostgresSessions.endAll(of: id, except: kept, notify: notify)])
            }
        }
    }

    public func rehashPassword(_ hash: String, replacing former: String, of id: User.ID) async throws {
        try await mapped {
            _ = try await db.write.execute(
                "UPDATE users SET password_hash = \(hash) WHERE id = \(id) AND password_hash = \(former)")
        }
    }

    public func update(
        _ id: User.ID, _ change: User.Change, picture: Media.Draft?, mailing: AccountMailing
    ) async throws -> ProfileUpdate {
        try await mapped {
            do {
                guard picture != nil || change.email != nil else {
                    let user = try await db.write.first(Self.write(change, to: id), as: Self.user).orNotFound()
                    return ProfileUpdate(user: user, pendingEmail: nil)
                }
                return try await db.transaction { transaction in
                    try await update(id, change, picture: picture, mailing: mailing, in: transaction)
                }
            } catch let error as PostgresError
                where error.sqlState == Self.invalidParameter
            {
                // Foundation knows some zones, of old, that the database's time zone files do not have.
                throw AppError.invalid("time_zone", "time_zone must be an IANA name such as Europe/Berlin")
            }
        }
    }

    /// What PostgreSQL raises for the name of an unknown time zone.
    private static let invalidParameter = "22023"

    private func update(
        _ id: User.ID, _ change: User.Change, picture: Media.Draft?, mailing: AccountMailing,
        in transaction: Transaction
    ) async throws -> ProfileUpdate {
        // The user's row makes two changes of one person take turns: of two pictures the first is then a former one.
        let present = try await transaction.first(
            "SELECT email, profile_media_id FROM users WHERE id = \(id) FOR NO KEY UPDATE"
        ) { (email: try $0.get(0, as: String.self), picture: try $0.get(1, as: Media.ID?.self)) }.orNotFound()
        var pending: String?
        if let email = change.email, email != present.email {
            pending = email
            let done = try await transaction.batch([
                AccountStatements.takeTurns(email),
                AccountStatements.ask(.change, address: email, user: id, mailing, domain: mailDomain),
                AccountStatements.ask(
                    .changeNotice, address: present.email, user: id, newAddress: email, mailing, domain: mailDomain),
            ])
            // No change without a notice: who took an account over must not be able to use the notices up.
            guard done.suffix(2) == [1, 1] else {
                throw AppError(
                    .tooMany, "Too many requests, please try again later.",
                    retryAfterSeconds: AccountMail.limitSeconds)
            }
        }
        if let picture {
            let media = try await MediaStatements.add(picture, owner: id, quota: quota, in: transaction)
            _ = try await transaction.batch(
                [
                    MediaStatements.process(media),
                    "UPDATE users SET profile_media_id = \(media) WHERE id = \(id)",
                ] + (present.picture.map { MediaStatements.delete([$0]) } ?? []))
        }
        let user = try await transaction.lastFirst(
            Self.write(change, to: id), waking: notify && (pending != nil || picture != nil), as: Self.user
        ).orNotFound()
        return ProfileUpdate(user: user, pendingEmail: pending)
    }

    private static func write(_ change: User.Change, to id: User.ID) -> SQL {
        """
        UPDATE users AS u SET
          username = coalesce(\(change.username), u.username),
          first_name = coalesce(\(change.firstName), u.first_name),
          last_name = coalesce(\(change.lastName), u.last_name),
          phone_number = coalesce(\(change.phoneNumber), u.phone_number),
          time_zone = coalesce(\(change.timeZone), u.time_zone),
          profile_media_id = coalesce(\(change.profileMediaID), u.profile_media_id),
          updated_at = now()
        WHERE u.id = \(id) AND (\(change.profileMediaID)::bigint IS NULL OR EXISTS (
          SELECT FROM media m
          WHERE m.id = \(change.profileMediaID)::bigint AND m.owner_id = u.id AND m.kind = 'profile'))
        RETURNING \(Columns.user)
        """
    }

    public func setBlocked(_ blocked: Bool, of id: User.ID, by actor: User.ID?) async throws {
        try await mapped {
            var statements: [SQL] = [
                "UPDATE users SET blocked = \(blocked), updated_at = now() WHERE id = \(id)",
                """
                INSERT INTO audit_log (actor_id, action, subject, subject_id)
                SELECT \(actor)::bigint, CASE WHEN \(blocked) THEN 'user.block' ELSE 'user.unblock' END, 'user', u.id
                FROM users u WHERE u.id = \(id)
                """,
            ]
            guard blocked else {
                guard try await db.write.batch(statements)[0] == 1 else { throw AppError.notFound }
                return
            }
            statements.append(PostgresSessions.endAll(of: id, except: nil, notify: notify))
            let all = statements
            try await db.transaction { transaction in
                try await PostgresPeople.keepAnAdministrator(without: id, in: transaction)
                guard try await transaction.batch(all)[0] == 1 else { throw AppError.notFound }
            }
        }
    }
}

extension Optional {
    /// What no row has, or none that the viewer may see.
    func orNotFound() throws(AppError) -> Wrapped {
        guard let self else { throw .notFound }
        return self
    }
}

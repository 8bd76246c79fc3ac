import Core
import Foundation
import Postgres

/// The right to erasure (GDPR, article 17). Rows that belong to a person alone go; what others rely on, such as the
/// numbers of a room, stays without anything of theirs in it. The person's row goes last, so that a request that is
/// still under way finds nobody, and its foreign keys refuse what it would write.
extension PostgresPeople {
    /// A worker or a person who takes the same rows in another order makes one of the two begin anew.
    private static let eraseAttemptsMax = 3
    /// Of a person with everything: rows are looked for that no index finds.
    private static let eraseMilliseconds = 600_000
    /// A send is given up by its service after five seconds (`writeMilliseconds`); this is for more than twice that.
    private static let olderSendLooksMax = 600
    private static let olderSendPauseSeconds = 0.02

    public func erasure(of id: User.ID) async throws -> Erasure {
        try await mapped {
            try await db.transaction { transaction in
                try await Self.keepAnAdministrator(without: id, in: transaction)
                let erasure = try await Self.count(id, in: transaction)
                return erasure.with(messages: try await Self.countMessages(id, in: transaction))
            }
        }
    }

    public func erase(_ id: User.ID) async throws -> Erasure {
        try await mapped {
            let (erasure, rooms) = try await inAttempts { try await erase(id, in: $0) }
            _ = try await lookAgain(id, in: rooms)
            return erasure
        }
    }

    /// The rooms are in no other place any more than in the audit log.
    public func finishErasure(of id: User.ID) async throws -> Int {
        try await mapped {
            let rooms = try await db.long.rows(
                """
                SELECT DISTINCT room::bigint FROM audit_log a, jsonb_array_elements_text(a.detail -> 'rooms') room
                WHERE a.subject = 'user' AND a.subject_id = \(id) AND a.action = 'user.erase'
                """
            ) { try $0.get(0, as: Int64.self) }
            return try await lookAgain(id, in: rooms)
        }
    }

    private func lookAgain(_ id: User.ID, in rooms: [Int64]) async throws -> Int {
        guard !rooms.isEmpty else { return 0 }
        try await awaitOlderSends()
        return try await inAttempts { try await emptyLate(of: id, in: rooms, $0) }
    }

    private func inAttempts<T: Sendable>(_ body: (Transaction) async throws -> T) async throws -> T {
        var attempt = 1
        while true {
            do {
                return try await db.transaction(statementMilliseconds: Self.eraseMilliseconds) { try await body($0) }
            } catch let error as PostgresError where error.isSerialization && attempt < Self.eraseAttemptsMax {
                attempt += 1
            }
        }
    }

    /// A send reads who is a member, waits for its room, and goes on with what it has read. One that waited while the
    /// person was erased is stored after that: this returns when all that began before have ended. They are seen where
    /// the services have the operator's role, as they should.
    private func awaitOlderSends() async throws {
        let now = try await db.long.first("SELECT clock_timestamp()::text") { try $0.get(0, as: String.self) }
        for _ in 0..<Self.olderSendLooksMax {
            let older = try await db.long.first(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE '%/write'
                  AND xact_start <= \(now)::text::timestamptz
                """
            ) { try $0.get(0, as: Int64.self) }
            if older == 0 { return }
            try await db.long.execute("SELECT pg_sleep(\(Self.olderSendPauseSeconds))")
        }
    }

    /// What was stored by sends that had waited. Nobody writes as this person any more.
    private func emptyLate(of id: User.ID, in rooms: [Int64], _ transaction: Transaction) async throws -> Int {
        let late = try await transaction.rows(
            """
            SELECT r.id FROM rooms r
            WHERE r.id = ANY (ARRAY(
              SELECT m.room_id FROM messages m
              WHERE m.room_id = ANY (\(rooms)::bigint[]) AND m.sender_id = \(id)
                AND (m.body <> '' OR m.media_id IS NOT NULL OR m.client_id IS NOT NULL)))
            ORDER BY r.id FOR NO KEY UPDATE OF r
            """
        ) { try $0.get(0, as: Int64.self) }
        guard !late.isEmpty else { return 0 }
        return try await transaction.batch(
            Self.empty(of: id, in: late) + (notify ? ["SELECT pg_notify('martlet_chat', '')"] : []))[0]
    }

    /// Everything but messages.
    private static func count(_ id: User.ID, in transaction: Transaction) async throws -> Erasure {
        try await transaction.first(
            """
            SELECT
              (SELECT count(*) FROM sessions s
               WHERE s.user_id = u.id AND s.revoked_at IS NULL AND s.expires_at > now()),
              (SELECT count(*) FROM media m WHERE m.owner_id = u.id),
              (SELECT coalesce(sum(m.bytes + (
                 SELECT coalesce(sum(v.bytes), 0) FROM media_variants v WHERE v.media_id = m.id)), 0)::bigint
               FROM media m WHERE m.owner_id = u.id AND m.state <> 'rejected'),
              (SELECT count(*) FROM applications a WHERE a.applicant_id = u.id),
              (SELECT count(*) FROM job_alerts a WHERE a.user_id = u.id),
              (SELECT count(*) FROM mails m WHERE m.user_id = u.id)
                + (SELECT count(*) FROM account_mails m
                   WHERE m.user_id = u.id OR m.address = u.email OR m.new_address = u.email),
              (SELECT count(*) FROM room_members rm WHERE rm.user_id = u.id),
              (SELECT count(*) FROM job_postings p
               WHERE p.state = 'published' AND p.company_id = ANY (\(aloneRepresented(id))))
            FROM users u WHERE u.id = \(id)
            """
        ) { row in
            Erasure(
                sessions: try row.get(0), files: try row.get(1), fileBytes: try row.get(2),
                applications: try row.get(3), alerts: try row.get(4), mails: try row.get(5), rooms: try row.get(6),
                messages: 0, postings: try row.get(7))
        }.orNotFound()
    }

    private static func countMessages(_ id: User.ID, in transaction: Transaction) async throws -> Int {
        try await transaction.first(
            """
            SELECT count(*) FROM messages m
            WHERE m.room_id = ANY (ARRAY(SELECT rm.room_id FROM room_members rm WHERE rm.user_id = \(id)))
              AND m.sender_id = \(id) AND (m.body <> '' OR m.media_id IS NOT NULL)
            """
        ) { try $0.get(0, as: Int.self) } ?? 0
    }

    /// Companies that nobody else is a member of, as an array.
    private static func aloneRepresented(_ id: User.ID) -> SQL {
        """
        ARRAY(SELECT me.company_id FROM company_members me
              WHERE me.user_id = \(id) AND NOT EXISTS (
                SELECT FROM company_members o WHERE o.company_id = me.company_id AND o.user_id <> me.user_id))
        """
    }

    // MARK: The transaction

    private struct Person: Sendable {
        let username: String
        let email: String
        let phone: String
    }

    /// Everything that is looked for without an index comes before the rooms: whoever sends there waits for their
    /// locks, and a chat keeps sends of other rooms waiting behind those. Nothing reads messages before: a migration
    /// takes the rooms first as well, and would wait for this one while this one waits for it.
    /// - Returns: with the rooms that the person was in.
    private func erase(_ id: User.ID, in transaction: Transaction) async throws -> (Erasure, [Int64]) {
        try await Self.keepAnAdministrator(without: id, in: transaction)
        // First the use, then the file, as whoever else puts files into their uses.
        _ = try await transaction.execute(
            """
            SELECT c.id FROM companies c JOIN media m ON m.id = c.logo_media_id
            WHERE m.owner_id = \(id) ORDER BY c.id FOR UPDATE OF c
            """)
        let person = try await transaction.first(
            "SELECT username, email, phone_number FROM users WHERE id = \(id) FOR UPDATE"
        ) {
            Person(username: try $0.get(0), email: try $0.get(1), phone: try $0.get(2))
        }.orNotFound()
        let erasure = try await Self.count(id, in: transaction)
        try await Self.leaveCompanies(id, person, in: transaction)
        try await Self.forgetWork(id, person, in: transaction)
        // What others' applications say of what this person did stays, without words.
        try await transaction.execute("UPDATE application_events SET note = '' WHERE actor_id = \(id) AND note <> ''")
        let media = try await transaction.rows("SELECT id FROM media WHERE owner_id = \(id) ORDER BY id") {
            try $0.get(0, as: Media.ID.self)
        }
        let (rooms, messages) = try await Self.emptyRooms(of: id, person, in: transaction)
        // Deleting an application touches its room.
        _ = try await transaction.batch(
            ["DELETE FROM applications WHERE applicant_id = \(id)"] + MediaStatements.delete(media) + [
                "DELETE FROM chat_presence WHERE user_id = \(id)",
                PostgresSessions.endAll(of: id, except: nil, notify: notify),
                "DELETE FROM users WHERE id = \(id)",
                """
                INSERT INTO audit_log (action, subject, subject_id, detail)
                VALUES ('user.erase', 'user', \(id), jsonb_build_object('rooms', \(rooms)::bigint[]))
                """,
            ] + (notify ? [Enqueue.wake, "SELECT pg_notify('martlet_chat', '')"] : []))
        return (erasure.with(messages: messages), rooms)
    }

    private struct NamedRoom: Sendable {
        let id: Room.ID
        let name: String?
        let applicant: User.ID?
        /// Members who are neither this person nor the applicant.
        let others: Int
    }

    /// The texts are emptied and deleted as the service deletes one: whoever looks at the room, or comes back to it,
    /// learns of it, and the numbers stay without gaps.
    private static func emptyRooms(
        of id: User.ID, _ person: Person, in transaction: Transaction
    ) async throws -> (rooms: [Int64], messages: Int) {
        let rooms = try await transaction.rows(
            """
            SELECT r.id, r.wire_name, a.applicant_id, (
              SELECT count(*) FROM room_members o
              WHERE o.room_id = r.id AND o.user_id <> \(id) AND o.user_id IS DISTINCT FROM a.applicant_id)
            FROM rooms r LEFT JOIN applications a ON a.id = r.application_id
            WHERE r.id = ANY (ARRAY(SELECT rm.room_id FROM room_members rm WHERE rm.user_id = \(id)))
            ORDER BY r.id FOR NO KEY UPDATE OF r
            """
        ) { row in
            NamedRoom(
                id: try row.get(0), name: try row.get(1), applicant: try row.get(2), others: try row.get(3))
        }
        guard !rooms.isEmpty else { return ([], 0) }
        let messages = try await countMessages(id, in: transaction)
        let ids = rooms.map(\.id.value)
        let renamed = rooms.compactMap { room in
            room.name.map { name in
                (
                    room.id.value,
                    Room.wireName(
                        name, without: id, named: person.username, isApplicant: room.applicant.map { $0 == id },
                        isAlone: room.others == 0)
                )
            }
        }
        _ = try await transaction.batch(
            empty(of: id, in: ids) + [
                """
                UPDATE rooms r SET wire_name = n.name
                FROM unnest(\(renamed.map(\.0))::bigint[], \(renamed.map(\.1))::text[]) AS n (id, name)
                WHERE r.id = n.id AND r.wire_name <> n.name
                """
            ])
        return (ids, messages)
    }

    private static func empty(of id: User.ID, in rooms: [Int64]) -> [SQL] {
        [
            emptyTexts(of: id, in: rooms),
            // Ids of messages are the client's to choose.
            """
            UPDATE messages SET client_id = NULL
            WHERE room_id = ANY (\(rooms)::bigint[]) AND sender_id = \(id) AND client_id IS NOT NULL
            """,
        ]
    }

    private static func emptyTexts(of id: User.ID, in rooms: [Int64]) -> SQL {
        """
        WITH mine AS MATERIALIZED (
          SELECT m.room_id, m.seq, m.kind FROM messages m
          WHERE m.room_id = ANY (\(rooms)::bigint[]) AND m.sender_id = \(id)
            AND (m.body <> '' OR m.media_id IS NOT NULL)
        ), texts AS (
          SELECT t.room_id, t.seq, row_number() OVER (PARTITION BY t.room_id ORDER BY t.seq) AS number
          FROM mine t WHERE t.kind = 'text'
        ), bumped AS (
          UPDATE rooms r SET last_seq = r.last_seq + c.count
          FROM (SELECT room_id, count(*) AS count FROM texts GROUP BY room_id) c
          WHERE r.id = c.room_id
          RETURNING r.id, r.last_seq - c.count AS base
        ), deleted AS (
          INSERT INTO messages (room_id, seq, sender_id, kind, target_seq, body)
          SELECT t.room_id, b.base + t.number, \(Message.system)::bigint, 'delete', t.seq, ''
          FROM texts t JOIN bumped b ON b.id = t.room_id
        ), noted AS (
          INSERT INTO room_changes (room_ids) SELECT array_agg(id ORDER BY id) FROM bumped HAVING count(*) > 0
        )
        UPDATE messages m SET body = '', media_id = NULL
        FROM mine WHERE m.room_id = mine.room_id AND m.seq = mine.seq
        """
    }

    /// A company is no person and stays. Its logo goes to a colleague; where there is none, nobody can answer
    /// applications any more, and its postings are closed.
    private static func leaveCompanies(_ id: User.ID, _ person: Person, in transaction: Transaction) async throws {
        let closed = try await transaction.rows(
            """
            UPDATE job_postings SET state = 'closed', updated_at = now()
            WHERE state = 'published' AND company_id = ANY (\(aloneRepresented(id)))
            RETURNING id
            """
        ) { try $0.get(0, as: Int64.self) }
        _ = try await transaction.batch([
            "SELECT index_postings(\(closed)::bigint[])",
            """
            INSERT INTO audit_log (action, subject, subject_id, detail)
            SELECT 'posting.update', 'posting', p, '{"state": "closed"}' FROM unnest(\(closed)::bigint[]) p
            """,
            """
            UPDATE companies SET email = CASE WHEN lower(email) = \(person.email) THEN '' ELSE email END,
              phone = CASE WHEN phone = \(person.phone) THEN '' ELSE phone END, updated_at = now()
            WHERE id = (SELECT me.company_id FROM company_members me WHERE me.user_id = \(id))
              AND (lower(email) = \(person.email) OR (phone = \(person.phone) AND phone <> ''))
            """,
            """
            UPDATE media m SET owner_id = o.user_id, name = 'logo' || coalesce(m.ext, ''), updated_at = now()
            FROM companies c CROSS JOIN LATERAL (
              SELECT me.user_id FROM company_members me
              WHERE me.company_id = c.id AND me.user_id <> \(id) ORDER BY me.created_at, me.user_id LIMIT 1) o
            WHERE c.logo_media_id = m.id AND m.owner_id = \(id)
            """,
        ])
    }

    /// Alerts with the searches that nobody else has saved, mails, and what the queue says of them. What a worker has
    /// in its hands finds nothing when it comes to it.
    private static func forgetWork(_ id: User.ID, _ person: Person, in transaction: Transaction) async throws {
        let groups = try await transaction.rows("SELECT group_id FROM job_alerts WHERE user_id = \(id)") {
            try $0.get(0, as: Int64.self)
        }
        let itsOwn: SQL = """
            CASE kind
              WHEN 'process_upload' THEN
                (payload ->> 'media_id')::bigint IN (SELECT m.id FROM media m WHERE m.owner_id = \(id))
              WHEN 'send_mail' THEN
                (payload ->> 'mail_id')::bigint IN (SELECT m.id FROM mails m WHERE m.user_id = \(id))
              WHEN 'send_account_mail' THEN (payload ->> 'mail_id')::bigint IN (
                SELECT m.id FROM account_mails m
                WHERE m.user_id = \(id) OR m.address = \(person.email) OR m.new_address = \(person.email))
              ELSE false END
            """
        _ = try await transaction.batch([
            "DELETE FROM work_dead WHERE \(itsOwn)",
            "UPDATE work_items SET last_error = NULL WHERE last_error IS NOT NULL AND \(itsOwn)",
            """
            DELETE FROM account_mails
            WHERE user_id = \(id) OR address = \(person.email) OR new_address = \(person.email)
            """,
            "DELETE FROM mail_suppressions WHERE address = \(person.email)",
            "DELETE FROM job_alerts WHERE user_id = \(id)",
            // As the hourly round does; whoever is just saving the same search holds the group.
            """
            DELETE FROM alert_groups WHERE id = ANY (ARRAY(
              SELECT g.id FROM alert_groups g
              WHERE g.id = ANY (\(groups)::bigint[]) AND NOT EXISTS (
                SELECT FROM job_alerts a WHERE a.group_id = g.id)
              FOR UPDATE OF g SKIP LOCKED))
            """,
        ])
    }
}

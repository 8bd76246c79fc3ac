import Core
import Postgres

/// The room that an acceptance opens, within its transaction: both sides are in it, and it has one message, when anyone
/// can see that the application is accepted.
struct ApplicationRoom {
    let applicationID: Application.ID
    /// The member who accepts.
    let actorID: User.ID

    private struct Parties: Sendable {
        let applicantID: User.ID
        let applicant: String
        let representativeID: User.ID
        let representative: String
    }

    /// The application's row is locked, so that there is nobody else about to open a room for it.
    func open(in transaction: Transaction) async throws {
        let (parties, rooms) = try await transaction.batch(
            Statement(
                """
                SELECT u.id, u.username, r.id, r.username
                FROM applications a
                JOIN users u ON u.id = a.applicant_id
                JOIN job_postings p ON p.id = a.posting_id
                CROSS JOIN LATERAL (
                  SELECT ru.id, ru.username FROM company_members me JOIN users ru ON ru.id = me.user_id
                  WHERE me.company_id = p.company_id
                  ORDER BY me.role = 'representative' DESC, me.created_at, me.user_id LIMIT 1) r
                WHERE a.id = \(applicationID)
                """
            ) { row in
                Parties(
                    applicantID: try row.get(0), applicant: try row.get(1), representativeID: try row.get(2),
                    representative: try row.get(3))
            },
            Statement(
                """
                INSERT INTO rooms (application_id) VALUES (\(applicationID))
                ON CONFLICT (application_id) DO UPDATE SET last_seq = rooms.last_seq
                RETURNING id
                """
            ) { try $0.get(0, as: Room.ID.self) })
        try await fill(try rooms.first.orNotFound(), try parties.first.orNotFound(), in: transaction)
    }

    private func fill(_ room: Room.ID, _ parties: Parties, in transaction: Transaction) async throws {
        let name = Room.wireName(
            representative: parties.representative, room: room, applicant: parties.applicant)
        let members = Set([parties.applicantID, parties.representativeID, actorID]).map(\.value).sorted()
        // The UPDATE holds the room's row lock, under which messages are numbered.
        _ = try await transaction.batch([
            "UPDATE rooms SET wire_name = coalesce(wire_name, \(name)), last_seq = last_seq + 1 WHERE id = \(room)",
            """
            INSERT INTO room_members (room_id, user_id)
            SELECT \(room)::bigint, m FROM unnest(\(members)::bigint[]) AS m
            ON CONFLICT (room_id, user_id) DO NOTHING
            """,
            """
            INSERT INTO messages (room_id, seq, sender_id, kind, body)
            SELECT r.id, r.last_seq, \(Message.system)::bigint, 'system', \(Message.acceptedBody)::text
            FROM rooms r WHERE r.id = \(room)
            """,
            "INSERT INTO room_changes (room_ids) VALUES (\([room.value])::bigint[])",
        ])
    }
}

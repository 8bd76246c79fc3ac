import Core
import Foundation
import Postgres

/// What lists of conversations are made of.
extension PostgresRooms {
    public func activeRooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [ActiveRoom]] {
        try await mapped {
            // The time of the last message is a sub-select: a join invites the planner to read all messages.
            let rows = try await db.long.rows(
                """
                SELECT u.id, r.id, r.wire_name, r.last_seq, r.created_at,
                       coalesce((SELECT m.created_at FROM messages m WHERE m.room_id = r.id AND m.seq = r.last_seq),
                                r.created_at) AS active_at
                FROM users u
                LEFT JOIN LATERAL (
                  SELECT o.id, o.wire_name, o.last_seq, o.created_at FROM rooms o
                  WHERE o.wire_name IS NOT NULL AND o.id = ANY (ARRAY(
                    SELECT rm.room_id FROM room_members rm
                    WHERE rm.user_id = u.id ORDER BY rm.room_id DESC LIMIT \(limitPerUser)))) r ON true
                WHERE u.id = ANY ((SELECT \(users.map(\.value))::bigint[])::bigint[]) AND NOT u.blocked
                ORDER BY u.id, active_at DESC, r.id DESC
                """
            ) { row in
                (try row.get(0, as: User.ID.self), try Self.activeRoom(row))
            }
            return Dictionary(grouping: rows, by: \.0).mapValues { $0.compactMap(\.1) }
        }
    }

    /// Nil for a user without rooms.
    private static let activeRoom: @Sendable (Row) throws -> ActiveRoom? = { row in
        guard let id = try row.get(1, as: Room.ID?.self) else { return nil }
        return ActiveRoom(
            id: id, wireName: try row.get(2), lastSeq: try row.get(3), createdAt: try row.get(4),
            activeAt: try row.get(5))
    }
}

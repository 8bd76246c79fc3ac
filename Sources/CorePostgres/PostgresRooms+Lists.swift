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
                WHERE u.id = ANY (\(users.map(\.value))::bigint[]) AND NOT u.blocked
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

    public func lastMessages(
        of rooms: [Room.ID], limitPerRoom: Int, bytesPerRoom: Int
    ) async throws -> [Room.ID: LastMessages] {
        guard !rooms.isEmpty else { return [:] }
        return try await mapped {
            // One snapshot for the seq and the messages up to it.
            let rows = try await db.long.rows(
                """
                WITH asked AS MATERIALIZED (
                  SELECT r.id, r.last_seq FROM rooms r WHERE r.id = ANY (\(rooms.map(\.value))::bigint[])
                ), texts AS MATERIALIZED (
                  SELECT m.room_id, m.seq, m.sender_id, m.client_id, m.kind, m.target_seq, m.body, m.created_at
                  FROM asked a CROSS JOIN LATERAL (
                    SELECT p.*, sum(octet_length(p.body)) OVER (ORDER BY p.seq DESC) - octet_length(p.body) AS newer
                    FROM (SELECT * FROM messages n WHERE n.room_id = a.id AND n.kind IN ('text', 'system')
                          ORDER BY n.seq DESC LIMIT \(limitPerRoom)) p) m
                  WHERE m.newer < \(bytesPerRoom)
                ), changes AS (
                  SELECT n.room_id, n.seq, n.sender_id, n.client_id, n.kind, n.target_seq, n.body, n.created_at
                  FROM (SELECT room_id, min(seq) AS first FROM texts GROUP BY room_id) t
                  CROSS JOIN LATERAL (
                    SELECT * FROM messages q
                    WHERE q.room_id = t.room_id AND q.seq > t.first AND q.kind IN ('edit', 'delete')
                    ORDER BY q.seq DESC LIMIT \(limitPerRoom)) n
                )
                SELECT m.room_id, m.seq, m.sender_id, m.client_id, m.kind, m.target_seq, m.body, m.created_at,
                       a.id, a.last_seq
                FROM asked a
                LEFT JOIN (SELECT * FROM texts UNION ALL SELECT * FROM changes) m ON m.room_id = a.id
                ORDER BY a.id, m.seq
                """
            ) { row in
                (
                    room: try row.get(8, as: Room.ID.self), lastSeq: try row.get(9, as: Int64.self),
                    message: try row.get(1, as: Int64?.self) == nil ? nil : Self.message(row)
                )
            }
            return Dictionary(grouping: rows, by: \.room).mapValues { rows in
                let messages = rows.compactMap(\.message)
                let texts = messages.filter { $0.kind == .text || $0.kind == .system }
                let bytes = texts.reduce(0) { $0 + $1.body.utf8.count }
                return LastMessages(
                    lastSeq: rows[0].lastSeq, messages: messages,
                    isWhole: texts.count < limitPerRoom && bytes < bytesPerRoom)
            }
        }
    }
}

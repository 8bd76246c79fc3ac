import Core
import Foundation
import Postgres

/// What was said, as it is now.
extension PostgresRooms {
    /// Of `FoldedMessage`, from a page `m`.
    static let folded: SQL =
        """
        m.room_id, m.seq, m.sender_id, m.client_id, m.kind, m.body, m.media_id, m.created_at, m.edited_at,
        m.is_deleted
        """

    /// Of a page `n` of texts, with the newest of what was said about each later, by its author or the service: after a
    /// deletion nothing is.
    private static let fold: SQL =
        """
        n.room_id, n.seq, n.sender_id, n.client_id, n.kind,
               CASE c.kind WHEN 'edit' THEN c.body WHEN 'delete' THEN '' ELSE n.body END AS body,
               CASE WHEN c.kind = 'delete' THEN NULL ELSE n.media_id END AS media_id, n.created_at,
               CASE WHEN c.kind = 'edit' THEN c.created_at END AS edited_at,
               coalesce(c.kind = 'delete', false) AS is_deleted
        """

    private static let newestChange: SQL =
        """
        LEFT JOIN LATERAL (
          SELECT e.kind, e.body, e.created_at FROM messages e
          WHERE e.room_id = n.room_id AND e.target_seq = n.seq AND e.sender_id IN (n.sender_id, 0)
          ORDER BY e.seq DESC LIMIT 1) c ON true
        """

    public func history(
        room: Room.ID, from start: HistoryPage.Start, limit: Int, viewer: User.ID
    ) async throws -> HistoryPage {
        let page: SQL =
            switch start {
            case .newest: Self.backwards(room, before: .max, limit: limit, viewer: viewer)
            case .before(let seq): Self.backwards(room, before: seq, limit: limit, viewer: viewer)
            case .after(let seq): Self.forwards(room, after: seq, limit: limit, viewer: viewer)
            }
        let rows = try await mapped {
            try await db.long.rows(page) { row in
                (found: try row.get(10, as: Int64?.self) ?? 0, message: try Self.foldedMessage(row))
            }
        }
        // A member of an empty room has one row with nothing in it; a stranger has none.
        guard let found = rows.first?.found else { throw AppError.notFound }
        let messages = rows.compactMap(\.message)
        return HistoryPage(messages: messages, hasMore: found > messages.count)
    }

    /// One row more than is asked for tells whether there is more.
    private static func backwards(_ room: Room.ID, before seq: Int64, limit: Int, viewer: User.ID) -> SQL {
        """
        SELECT \(Self.folded), m.found
        FROM room_members rm
        LEFT JOIN LATERAL (
          SELECT \(Self.foldedOfPage), count(*) OVER () AS found, row_number() OVER (ORDER BY p.seq DESC) AS number,
                 sum(octet_length(p.body)) OVER (ORDER BY p.seq DESC) - octet_length(p.body) AS before
          FROM (
            SELECT \(Self.fold)
            FROM (SELECT \(Self.stored) FROM messages o
                  WHERE o.room_id = rm.room_id AND o.seq < \(seq) AND o.kind IN ('text', 'system')
                  ORDER BY o.seq DESC LIMIT \(limit + 1)) n
            \(Self.newestChange)) p) m ON m.number <= \(limit) AND m.before < \(Message.pageBytesMax)
        WHERE rm.room_id = \(room) AND rm.user_id = \(viewer)
        ORDER BY m.seq
        """
    }

    private static func forwards(_ room: Room.ID, after seq: Int64, limit: Int, viewer: User.ID) -> SQL {
        """
        SELECT \(Self.folded), m.found
        FROM room_members rm
        LEFT JOIN LATERAL (
          SELECT \(Self.foldedOfPage), count(*) OVER () AS found, row_number() OVER (ORDER BY p.seq) AS number,
                 sum(octet_length(p.body)) OVER (ORDER BY p.seq) - octet_length(p.body) AS before
          FROM (
            SELECT \(Self.fold)
            FROM (SELECT \(Self.stored) FROM messages o
                  WHERE o.room_id = rm.room_id AND o.seq > \(seq) AND o.kind IN ('text', 'system')
                  ORDER BY o.seq LIMIT \(limit + 1)) n
            \(Self.newestChange)) p) m ON m.number <= \(limit) AND m.before < \(Message.pageBytesMax)
        WHERE rm.room_id = \(room) AND rm.user_id = \(viewer)
        ORDER BY m.seq
        """
    }

    private static let stored: SQL =
        "o.room_id, o.seq, o.sender_id, o.client_id, o.kind, o.body, o.media_id, o.created_at"
    private static let foldedOfPage: SQL =
        """
        p.room_id, p.seq, p.sender_id, p.client_id, p.kind, p.body, p.media_id, p.created_at, p.edited_at,
        p.is_deleted
        """

    /// Nil where there is none.
    private static let foldedMessage: @Sendable (Row) throws -> FoldedMessage? = { row in
        guard let seq = try row.get(1, as: Int64?.self) else { return nil }
        return FoldedMessage(
            message: Message(
                roomID: try row.get(0), seq: seq, senderID: try row.get(2), clientID: try row.get(3),
                kind: try row.get(4), targetSeq: nil, body: try row.get(5),
                mediaID: try row.get(6), createdAt: try row.get(7)),
            editedAt: try row.get(8), isDeleted: try row.get(9))
    }

    public func lastMessages(
        of rooms: [Room.ID], limitPerRoom: Int, bytesPerRoom: Int
    ) async throws -> [Room.ID: LastMessages] {
        guard !rooms.isEmpty else { return [:] }
        return try await mapped {
            // One snapshot for the seq and the messages up to it.
            let rows = try await db.long.rows(
                """
                SELECT \(Self.folded), m.found, a.id, a.last_seq
                FROM rooms a
                LEFT JOIN LATERAL (
                  SELECT \(Self.foldedOfPage), count(*) OVER () AS found,
                         row_number() OVER (ORDER BY p.seq DESC) AS number,
                         sum(octet_length(p.body)) OVER (ORDER BY p.seq DESC) - octet_length(p.body) AS before
                  FROM (
                    SELECT \(Self.fold)
                    FROM (SELECT \(Self.stored) FROM messages o
                          WHERE o.room_id = a.id AND o.kind IN ('text', 'system')
                          ORDER BY o.seq DESC LIMIT \(limitPerRoom + 1)) n
                    \(Self.newestChange)) p) m ON m.number <= \(limitPerRoom) AND m.before < \(bytesPerRoom)
                WHERE a.id = ANY ((SELECT \(rooms)::bigint[])::bigint[])
                ORDER BY a.id, m.seq
                """
            ) { row in
                (
                    room: try row.get(11, as: Room.ID.self), lastSeq: try row.get(12, as: Int64.self),
                    found: try row.get(10, as: Int64?.self) ?? 0, folded: try Self.foldedMessage(row)
                )
            }
            return Dictionary(grouping: rows, by: \.room).mapValues { rows in
                let folded = rows.compactMap(\.folded)
                return LastMessages(
                    lastSeq: rows[0].lastSeq, messages: folded.filter { !$0.isDeleted }.map(\.message),
                    isWhole: folded.count == rows[0].found)
            }
        }
    }

    public func unread(of user: User.ID, in rooms: [Room.ID]) async throws -> [Room.ID: Int] {
        guard !rooms.isEmpty else { return [:] }
        let counted = try await mapped {
            try await db.long.rows(
                """
                SELECT rm.room_id, (
                  SELECT count(*) FROM (
                    SELECT FROM (
                      SELECT m.sender_id, m.kind, m.body, m.media_id FROM messages m
                      WHERE m.room_id = rm.room_id AND m.seq > rm.last_read_seq
                      ORDER BY m.seq LIMIT \(Room.unreadRowsMax)) n
                    WHERE n.kind = 'text' AND n.sender_id <> \(user) AND (n.body <> '' OR n.media_id IS NOT NULL)
                    LIMIT \(Room.unreadMax)) counted)
                FROM room_members rm
                WHERE rm.user_id = \(user) AND rm.room_id = ANY ((SELECT \(rooms)::bigint[])::bigint[])
                """
            ) { row in (try row.get(0, as: Room.ID.self), Int(try row.get(1, as: Int64.self))) }
        }
        return Dictionary(counted) { first, _ in first }
    }
}

import Core
import Foundation
import Postgres

public struct PostgresRooms: RoomRepository {
    /// More drafts than this in one transaction gain nothing and hold the rooms' locks longer.
    public static let sendMax = 1_000
    /// Rooms, counted as often as they changed, that one read of changes tells: it must end within the short lane's
    /// time however much was written while nobody looked.
    static let changesMax = 10_000

    let db: Database
    let notify: Bool
    let traces: Bool

    /// - Parameters:
    ///   - notify: false: nobody is woken, whatever the calls say.
    ///   - traces: whether `messages(after:)` reads the traces that they belong to. A draft's is stored all the same.
    public init(db: Database, notify: Bool = true, traces: Bool = false) {
        self.db = db
        self.notify = notify
        self.traces = traces
    }

    // MARK: Who is where

    public func rooms(of user: User.ID, limit: Int) async throws -> [Room] {
        try await rooms(of: [user], limitPerUser: limit)[user] ?? []
    }

    public func rooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [Room]] {
        try await mapped {
            let rows = try await db.long.rows(
                """
                SELECT u.id, r.id, coalesce(r.wire_name, ''), r.last_seq, m.last_read_seq, r.created_at
                FROM unnest(\(users.map(\.value))::bigint[]) AS u (id)
                CROSS JOIN LATERAL (
                  SELECT rm.room_id, rm.last_read_seq FROM room_members rm
                  WHERE rm.user_id = u.id ORDER BY rm.room_id DESC LIMIT \(limitPerUser)) m
                JOIN rooms r ON r.id = m.room_id
                ORDER BY u.id, r.id DESC
                """
            ) { row in
                try (
                    User.ID(row.get(0)),
                    Room(
                        id: Room.ID(row.get(1)), wireName: row.get(2), lastSeq: row.get(3), lastReadSeq: row.get(4),
                        createdAt: row.get(5))
                )
            }
            return Dictionary(grouping: rows, by: \.0).mapValues { $0.map(\.1) }
        }
    }

    public func members(of rooms: [Room.ID]) async throws -> [Room.ID: [Room.Member]] {
        try await mapped {
            let rows = try await db.short.rows(
                """
                SELECT room_id, user_id, last_read_seq FROM room_members
                WHERE room_id = ANY (\(rooms.map(\.value))::bigint[]) ORDER BY room_id, user_id
                """
            ) { row in
                try (Room.ID(row.get(0)), Room.Member(user: User.ID(row.get(1)), lastReadSeq: row.get(2)))
            }
            return Dictionary(grouping: rows, by: \.0).mapValues { $0.map(\.1) }
        }
    }

    // MARK: Reading

    public func messages(
        after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int
    ) async throws -> [Message] {
        let statement =
            traces
            ? Self.traced(cursors, limitPerRoom: limitPerRoom) : Self.untraced(cursors, limitPerRoom: limitPerRoom)
        return try await mapped {
            try await db.long.rows(statement) { [traces] row in
                try Message(
                    roomID: row.get(0), seq: row.get(1), senderID: row.get(2), clientID: row.get(3),
                    kind: row.get(4), targetSeq: row.get(5), body: row.get(6),
                    mediaID: row.get(7), createdAt: row.get(8), traceparent: traces ? row.get(9) : nil)
            }
        }
    }

    // LATERAL, because the planner knows nothing of unnest's size: a plain join was a scan of the table. In sub-selects
    // it does not see how long the arrays are either, and so has no reason to plan each time anew, which with the
    // partitions of messages would cost more than the reading.

    private static func untraced(_ cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) -> SQL {
        """
        SELECT m.room_id, m.seq, m.sender_id, m.client_id, m.kind, m.target_seq, m.body, m.media_id,
               m.created_at
        FROM unnest((SELECT \(cursors.map(\.room.value))::bigint[]), (SELECT \(cursors.map(\.seq))::bigint[]))
          AS c (room_id, after)
        CROSS JOIN LATERAL (
          SELECT p.room_id, p.seq, p.sender_id, p.client_id, p.kind, p.target_seq, p.body, p.media_id,
                 p.created_at,
                 sum(octet_length(p.body)) OVER (ORDER BY p.seq) - octet_length(p.body) AS before
          FROM (SELECT n.room_id, n.seq, n.sender_id, n.client_id, n.kind, n.target_seq, n.body, n.media_id,
                       n.created_at
                FROM messages n WHERE n.room_id = c.room_id AND n.seq > c.after
                ORDER BY n.seq LIMIT \(limitPerRoom)) p) m
        WHERE m.before < \(Message.pageBytesMax)
        ORDER BY m.room_id, m.seq
        """
    }

    /// The same with one column more: it is not read where nobody asks for it.
    private static func traced(_ cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) -> SQL {
        """
        SELECT m.room_id, m.seq, m.sender_id, m.client_id, m.kind, m.target_seq, m.body, m.media_id,
               m.created_at, m.traceparent
        FROM unnest((SELECT \(cursors.map(\.room.value))::bigint[]), (SELECT \(cursors.map(\.seq))::bigint[]))
          AS c (room_id, after)
        CROSS JOIN LATERAL (
          SELECT p.room_id, p.seq, p.sender_id, p.client_id, p.kind, p.target_seq, p.body, p.media_id,
                 p.created_at, p.traceparent,
                 sum(octet_length(p.body)) OVER (ORDER BY p.seq) - octet_length(p.body) AS before
          FROM (SELECT n.room_id, n.seq, n.sender_id, n.client_id, n.kind, n.target_seq, n.body, n.media_id,
                       n.created_at, n.traceparent
                FROM messages n WHERE n.room_id = c.room_id AND n.seq > c.after
                ORDER BY n.seq LIMIT \(limitPerRoom)) p) m
        WHERE m.before < \(Message.pageBytesMax)
        ORDER BY m.room_id, m.seq
        """
    }

    // MARK: Marks, changes, wake-ups

    public func markRead(_ marks: [ReadMark], notify: String?) async throws -> [Int64?] {
        guard !marks.isEmpty else { return [] }
        let statement: SQL = """
            WITH input AS MATERIALIZED (
              SELECT t.ord, t.room_id, t.user_id, least(t.seq, r.last_seq) AS seq
              FROM unnest(\(marks.map(\.room.value))::bigint[], \(marks.map(\.user.value))::bigint[],
                          \(marks.map(\.seq))::bigint[]) WITH ORDINALITY AS t (room_id, user_id, seq, ord)
              LEFT JOIN rooms r ON r.id = t.room_id
            ), held AS MATERIALIZED (
              SELECT rm.room_id, rm.user_id, rm.last_read_seq FROM room_members rm
              WHERE (rm.room_id, rm.user_id) IN (SELECT i.room_id, i.user_id FROM input i)
              ORDER BY rm.room_id, rm.user_id FOR NO KEY UPDATE
            ), moved AS (
              UPDATE room_members rm SET last_read_seq = i.seq
              FROM (SELECT room_id, user_id, max(seq) AS seq FROM input GROUP BY room_id, user_id) i
              JOIN held h USING (room_id, user_id)
              WHERE rm.room_id = i.room_id AND rm.user_id = i.user_id AND rm.last_read_seq < i.seq
              RETURNING rm.room_id
            ), noted AS (
              INSERT INTO room_changes (room_ids)
              SELECT array_agg(DISTINCT -room_id) FROM moved HAVING count(*) > 0
            )
            SELECT (SELECT greatest(h.last_read_seq, i.seq) FROM held h
                    WHERE h.room_id = i.room_id AND h.user_id = i.user_id)
            FROM input i ORDER BY i.ord
            """
        return try await mapped {
            guard let notify = self.notify ? notify : nil else {
                return try await db.write.rows(statement) { try $0.get(0, as: Int64?.self) }
            }
            let (found, _) = try await db.write.batch(
                Statement(statement) { try $0.get(0, as: Int64?.self) }, Statement(Self.wake(notify)))
            return found
        }
    }

    public func changes(since bound: UInt64) async throws -> RoomChanges {
        // Every row that is not visible yet has a transaction at or after the snapshot's xmin, so nothing below it is
        // passed over; what is between comes again.
        try await mapped {
            let rows = try await db.short.rows(
                """
                WITH read AS MATERIALIZED (
                  SELECT unnest(room_ids) AS id FROM room_changes
                  WHERE tx >= \(PostgresXID(bound))::xid8 LIMIT \(Self.changesMax + 1)
                )
                SELECT pg_snapshot_xmin(pg_current_snapshot()), (SELECT count(*) FROM read), c.id, r.last_seq
                FROM (SELECT 1) AS one LEFT JOIN (SELECT DISTINCT id FROM read) AS c ON true
                LEFT JOIN rooms r ON r.id = c.id
                """
            ) { row in
                try (
                    bound: row.get(0, as: PostgresXID.self), count: row.get(1, as: Int64.self),
                    id: row.get(2, as: Int64?.self), lastSeq: row.get(3, as: Int64?.self)
                )
            }
            var changed: [Room.ID: Int64] = [:]
            for row in rows {
                if let id = row.id, let lastSeq = row.lastSeq { changed[Room.ID(id)] = lastSeq }
            }
            return RoomChanges(
                rooms: changed, memberships: rows.compactMap(\.id).filter { $0 < 0 }.map { Room.ID(-$0) },
                isWhole: rows.allSatisfy { $0.count <= Self.changesMax }, bound: rows.first?.bound.value ?? bound)
        }
    }

    public func announce(_ hint: String) async throws {
        guard notify else { return }
        _ = try await mapped { try await db.write.execute("SELECT pg_notify('martlet_chat', \(hint))") }
    }

    /// The last statement of a batch: wakes the other instances if there is anything to be read.
    static func wake(_ hint: String) -> SQL {
        """
        SELECT pg_notify('martlet_chat', \(hint))
        WHERE EXISTS (SELECT FROM room_changes WHERE tx = pg_current_xact_id_if_assigned())
        """
    }
}

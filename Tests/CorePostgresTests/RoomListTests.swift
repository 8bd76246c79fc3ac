import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Lists of conversations in PostgreSQL")
struct RoomListTests {
    @Test("rooms come by their last message, each user's own; who is blocked or gone has none")
    func active() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 4, rooms: [[1, 2], [1, 3], [1], [1, 4]])
            try await test.run(
                """
                UPDATE users SET blocked = true WHERE id = 3;
                DELETE FROM users WHERE id = 4;
                INSERT INTO users (username, email) VALUES ('lonely', 'lonely@example.org');
                UPDATE rooms SET wire_name = NULL WHERE id = 4;
                UPDATE rooms SET created_at = now() - id * interval '1 hour'
                """)
            let rooms = PostgresRooms(db: db)
            _ = try await rooms.send([draft(2, 1, "a")], notify: nil)
            let lists = try await rooms.activeRooms(of: (1...6).map { User.ID($0) }, limitPerUser: 10)
            #expect(lists[User.ID(1)]?.map(\.id.value) == [2, 1, 3])
            #expect(lists[User.ID(1)]?.map(\.lastSeq) == [1, 0, 0])
            #expect(lists[User.ID(1)]?.map(\.wireName) == ["rep_2_jane", "rep_1_jane", "rep_3_jane"])
            #expect(lists[User.ID(2)]?.map(\.id.value) == [1])
            #expect(lists[User.ID(3)] == nil && lists[User.ID(4)] == nil && lists[User.ID(6)] == nil)
            #expect(lists[User.ID(5)] == [])
            let few = try await rooms.activeRooms(of: [User.ID(1)], limitPerUser: 2)
            #expect(few[User.ID(1)]?.map(\.id.value) == [3])
        }
    }

    @Test("the last messages of rooms as they are now: so many, so many bytes, and whether there are older")
    func last() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1], [1], [1]])
            let rooms = PostgresRooms(db: db)
            _ = try await rooms.send(try (1...5).map { try draft(1, 1, "\($0)", "12345") }, notify: nil)
            try await test.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, kind, target_seq, body)
                VALUES (1, 6, 1, 'edit', 5, 'new'), (1, 7, 1, 'delete', 4, '');
                UPDATE rooms SET last_seq = 7 WHERE id = 1
                """)
            func read(_ limit: Int, _ bytes: Int) async throws -> [Room.ID: LastMessages] {
                try await rooms.lastMessages(
                    of: [1, 2, 99].map { Room.ID($0) }, limitPerRoom: limit, bytesPerRoom: bytes)
            }
            let all = try await read(10, 1_000)
            #expect(all[Room.ID(1)]?.messages.map(\.body) == ["12345", "12345", "12345", "new"])
            #expect(all[Room.ID(1)]?.lastSeq == 7 && all[Room.ID(1)]?.isWhole == true)
            #expect(all[Room.ID(2)] == LastMessages(lastSeq: 0, messages: [], isWhole: true))
            #expect(all[Room.ID(99)] == nil)
            let few = try await read(2, 1_000)[Room.ID(1)]
            #expect(few?.messages.map(\.seq) == [5] && few?.isWhole == false)
            // The newest is there, however long it is.
            let short = try await read(10, 1)[Room.ID(1)]
            #expect(short?.messages.map(\.seq) == [5] && short?.isWhole == false)
            // Three of five bytes before it, none of the deleted one, and three of the edited one.
            #expect(try await read(10, 14)[Room.ID(1)]?.messages.first?.seq == 1)
            #expect(try await read(10, 13)[Room.ID(1)]?.messages.first?.seq == 2)
            #expect(try await read(5, 1_000)[Room.ID(1)]?.isWhole == true)
        }
    }

    @Test("a room's name has its id in the middle, two separators, and is nobody else's")
    func names() async throws {
        try await withTestDatabase { _, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            for name in ["a_2_b", "a_1_b_c", "a_1", "room", "a__b", ""] {
                await #expect(throws: (any Error).self, "\(name)") {
                    try await test.run("UPDATE rooms SET wire_name = '\(name)' WHERE id = 1")
                }
            }
            try await test.run("UPDATE rooms SET wire_name = '\u{2010}_1_b' WHERE id = 1")
            await #expect(throws: (any Error).self) {
                try await test.run(
                    "INSERT INTO rooms (id, wire_name) OVERRIDING SYSTEM VALUE VALUES (9, '\u{2010}_1_b')")
            }
        }
    }
}

import Core
import Foundation
import Postgres
import Seeded
import Synchronization
import TestSupport
import Testing

@testable import CorePostgres

/// Users 1…, and rooms with some of them as members.
func makeRooms(_ test: TestDatabase, users: Int, rooms: [[Int]]) async throws {
    let members = rooms.enumerated().flatMap { room, users in users.map { "(\(room + 1), \($0))" } }
    try await test.run(
        """
        INSERT INTO users (username, email)
        SELECT 'user-' || n, 'user-' || n || '@example.org' FROM generate_series(1, \(users)) n;
        INSERT INTO rooms (wire_name) SELECT 'rep_' || n || '_jane' FROM generate_series(1, \(rooms.count)) n;
        INSERT INTO room_members (room_id, user_id) VALUES \(members.joined(separator: ", "))
        """)
}

func draft(_ room: Int, _ sender: Int, _ id: String, _ body: String = "hello") throws -> Message.Draft {
    try Message.Draft(roomID: Room.ID(Int64(room)), senderID: User.ID(Int64(sender)), clientID: id, body: body)
}

@Suite("Rooms in PostgreSQL")
struct RoomsTests {
    @Test("a batch is numbered per room in order; repeats get their first number, strangers nothing")
    func batch() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 3, rooms: [[1, 2], [2, 3]])
            let rooms = PostgresRooms(db: db)
            let outcomes = try await rooms.send(
                [
                    draft(1, 1, "a"), draft(2, 2, "a"), draft(1, 2, "a"), draft(1, 1, "a"), draft(1, 3, "x"),
                    draft(99, 1, "x"), draft(1, 1, "b"),
                ], notify: nil)
            #expect(outcomes.map(seq) == [1, 1, 2, 1, nil, nil, 3])
            #expect(outcomes[3] == .duplicate(seq: 1) && outcomes[4] == .forbidden && outcomes[5] == .forbidden)
            #expect(try await rooms.send([draft(1, 1, "b")], notify: "x") == [.duplicate(seq: 3)])
            #expect(try await rooms.rooms(of: User.ID(2), limit: 10).map(\.lastSeq) == [1, 3])
            #expect(try await test.run("SELECT room_ids FROM room_changes") == [["{1,2}"]])
        }
    }

    @Test("texts that are new go in at once; with one that was stored before the batch is looked at draft by draft")
    func repeated() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 2, rooms: [[1, 2], [2]])
            let rooms = PostgresRooms(db: db)
            let first = try await rooms.send(
                [draft(2, 2, "a"), draft(1, 2, "a"), draft(1, 1, "a"), draft(2, 1, "a")], notify: "x")
            #expect(first.map(seq) == [1, 1, 2, nil] && first[3] == .forbidden)
            let second = try await rooms.send([draft(1, 1, "b"), draft(1, 1, "a"), draft(2, 2, "b")], notify: "x")
            #expect(second.map(seq) == [3, 2, 2] && second[1] == .duplicate(seq: 2))
            // The batch that was refused at first has left nothing.
            #expect(try await test.run("SELECT room_ids FROM room_changes ORDER BY tx") == [["{1,2}"], ["{1,2}"]])
            #expect(
                try await test.run(
                    "SELECT r.id, r.last_seq, max(seq) FROM rooms r JOIN messages ON room_id = id GROUP BY 1 ORDER BY 1"
                )
                    == [["1", "3", "3"], ["2", "2", "2"]])
        }
    }

    @Test("a stranger's draft waits for no room and leaves no lock in it")
    func strangerLocksNothing() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 2, rooms: [[1]])
            let rooms = PostgresRooms(db: db)
            try await db.transaction { transaction in
                _ = try await transaction.execute("SELECT id FROM rooms FOR UPDATE")
                // A member's would stand behind the transaction until its time is over.
                let outcomes = try await rooms.send([draft(1, 2, "a"), draft(99, 2, "a")], notify: nil)
                #expect(outcomes == [.forbidden, .forbidden])
            }
            let row = "SELECT xmin, xmax, ctid FROM rooms"
            let before = try await test.run(row)
            #expect(try await rooms.send([draft(1, 2, "b")], notify: nil) == [.forbidden])
            #expect(try await test.run(row) == before)
            _ = try await rooms.send([draft(1, 1, "a")], notify: nil)
            #expect(try await test.run(row) != before)
        }
    }

    private func seq(_ outcome: Message.Outcome) -> Int64? {
        switch outcome {
        case .sent(let seq, _), .duplicate(let seq): seq
        case .forbidden, .refused: nil
        }
    }

    @Test("a batch that meets an error leaves nothing behind")
    func atomic() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            try await test.run("ALTER TABLE messages ADD CONSTRAINT no_bad CHECK (body <> 'bad')")
            let rooms = PostgresRooms(db: db)
            await #expect(throws: (any Error).self) {
                try await rooms.send([draft(1, 1, "a"), draft(1, 1, "b", "bad")], notify: "x")
            }
            #expect(try await rooms.rooms(of: User.ID(1), limit: 1).first?.lastSeq == 0)
            #expect(try await rooms.changes(since: 0).rooms.isEmpty)
        }
    }

    /// With 400 ids nearly every batch has a message that was stored before, with many hardly any.
    @Test(
        "writers on many connections leave no gap and no repeat, and a reader never sees one",
        arguments: [400, 1 << 20])
    func property(ids: Int) async throws {
        try await withTestDatabase(configure: { $0.writeMax = 8 }) { db, test in
            let members = Array(1...6)
            try await makeRooms(test, users: 8, rooms: Array(repeating: members, count: 5))
            let rooms = PostgresRooms(db: db)
            let acknowledged = Shared<[String: Int64]>([:])
            let done = Shared(false)
            async let watched = watch(rooms, until: done)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<8 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(writer))
                        for _ in 0..<25 { try await Self.send(rooms, &random, ids, acknowledged) }
                    }
                }
                try await group.waitForAll()
            }
            done.withLock { $0 = true }
            let seen = try await watched
            let table = try await rooms.messages(after: (1...5).map { (Room.ID($0), 0) }, limitPerRoom: 10_000)
            for room in 1...5 {
                let seqs = table.filter { $0.roomID.value == Int64(room) }.map(\.seq)
                #expect(seqs == Array(1...Int64(seqs.count)))
                #expect(seen[Room.ID(Int64(room))] ?? 0 <= Int64(seqs.count))
            }
            let keys = Dictionary(
                uniqueKeysWithValues: table.map { ("\($0.roomID)/\($0.senderID)/\($0.clientID ?? "")", $0.seq) })
            #expect(keys == acknowledged.withLock { $0 })
        }
    }

    /// Follows every room by its seq, and fails at the first gap.
    private func watch(_ rooms: PostgresRooms, until done: Shared<Bool>) async throws -> [Room.ID: Int64] {
        var last: [Room.ID: Int64] = [:]
        while !done.withLock({ $0 }) {
            let cursors = (1...5).map { (room: Room.ID($0), seq: last[Room.ID($0)] ?? 0) }
            for message in try await rooms.messages(after: cursors, limitPerRoom: 50) {
                #expect(message.seq == (last[message.roomID] ?? 0) + 1)
                last[message.roomID] = message.seq
            }
        }
        return last
    }

    private static func send(
        _ rooms: PostgresRooms, _ random: inout SeededGenerator, _ ids: Int, _ acknowledged: Shared<[String: Int64]>
    ) async throws {
        let drafts = try (0..<Int.random(in: 1...20, using: &random)).map { _ in
            // Members are 1 to 6; 7 and 8 are strangers. Ids repeat within batches and across writers.
            try draft(
                Int.random(in: 1...5, using: &random), Int.random(in: 1...8, using: &random),
                "\(Int.random(in: 0..<ids, using: &random))")
        }
        for (draft, outcome) in zip(drafts, try await rooms.send(drafts, notify: "test")) {
            let key = "\(draft.roomID)/\(draft.senderID)/\(draft.clientID)"
            switch outcome {
            case .forbidden, .refused: #expect(draft.senderID.value > 6)
            case .sent(let seq, _):
                acknowledged.withLock { known in
                    #expect(known[key] == nil || known[key] == seq)
                    known[key] = seq
                }
            case .duplicate(let seq):
                acknowledged.withLock { known in
                    #expect(known[key] == nil || known[key] == seq)
                    known[key] = seq
                }
            }
        }
    }

    @Test("a page ends at its rows or at its bytes, and never empty while there is more")
    func pages() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            let rooms = PostgresRooms(db: db)
            let body = String(repeating: "x", count: 60_000)
            for number in 1...5 { _ = try await rooms.send([draft(1, 1, "\(number)", body)], notify: nil) }
            let room = Room.ID(1)
            #expect(try await rooms.messages(after: [(room, 0)], limitPerRoom: 50).map(\.seq) == [1, 2, 3])
            #expect(try await rooms.messages(after: [(room, 3)], limitPerRoom: 50).map(\.seq) == [4, 5])
            #expect(try await rooms.messages(after: [(room, 1)], limitPerRoom: 1).map(\.seq) == [2])
            #expect(try await rooms.messages(after: [(room, 5), (Room.ID(9), 0)], limitPerRoom: 1).isEmpty)
        }
    }

    @Test("a read mark moves forward to the last message at most; strangers have none")
    func readMarks() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 2, rooms: [[1]])
            let rooms = PostgresRooms(db: db)
            for number in 1...3 { _ = try await rooms.send([draft(1, 1, "\(number)")], notify: nil) }
            let room = Room.ID(1)
            let user = User.ID(1)
            for seq in [Int64(2), 1] {
                let mark = ReadMark(room: room, user: user, seq: seq)
                #expect(try await rooms.markRead([mark], notify: nil) == [2])
            }
            #expect(try await rooms.rooms(of: user, limit: 1).first?.lastReadSeq == 2)
            let marks = [
                ReadMark(room: room, user: user, seq: 9), ReadMark(room: room, user: User.ID(2), seq: 1),
                ReadMark(room: Room.ID(9), user: user, seq: 1),
            ]
            #expect(try await rooms.markRead(marks, notify: "x") == [3, nil, nil])
            #expect(try await rooms.members(of: [room]) == [room: [Room.Member(user: user, lastReadSeq: 3)]])
        }
    }

    @Test("more changes than one read tells are said to be more", arguments: [false, true])
    func manyChanges(isMore: Bool) async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            let rooms = PostgresRooms(db: db)
            let start = try await rooms.changes(since: .max)
            let count = PostgresRooms.changesMax + (isMore ? 1 : 0)
            try await test.run(
                "INSERT INTO room_changes (room_ids) SELECT '{1}'::bigint[] FROM generate_series(1, \(count))")
            let changes = try await rooms.changes(since: start.bound)
            #expect(changes.isWhole == !isMore && changes.rooms == [Room.ID(1): 0] && changes.bound >= start.bound)
        }
    }

    @Test("changes are read from a bound on; what was under way at the bound is not passed over")
    func changes() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1], [1], [1]])
            let rooms = PostgresRooms(db: db)
            let start = try await rooms.changes(since: .max)
            #expect(start.rooms.isEmpty)
            _ = try await rooms.send([draft(1, 1, "a")], notify: nil)
            let first = try await rooms.changes(since: start.bound)
            #expect(first.rooms[Room.ID(1)] == 1 && first.memberships.isEmpty)
            // A slow writer takes its transaction id now and commits after others have been read.
            let committed = try await db.transaction { slow in
                _ = try await slow.execute("INSERT INTO room_changes (room_ids) VALUES ('{2}')")
                _ = try await rooms.send([draft(3, 1, "a")], notify: nil)
                return try await rooms.changes(since: first.bound)
            }
            // Other tests' transactions may hold the bound back, so what was read may come again.
            #expect(committed.rooms[Room.ID(3)] == 1 && committed.rooms[Room.ID(2)] == nil)
            let late = try await rooms.changes(since: committed.bound)
            #expect(late.rooms[Room.ID(2)] == 0 && late.rooms[Room.ID(3)] == 1)
            let mark = ReadMark(room: Room.ID(3), user: User.ID(1), seq: 1)
            _ = try await rooms.markRead([mark], notify: nil)
            #expect(try await rooms.changes(since: late.bound).memberships.contains(Room.ID(3)))
        }
    }

    @Test("a batch wakes listeners once with its hint; one that changed nothing does not")
    func wakes() async throws {
        try await withTestDatabase { db, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            let rooms = PostgresRooms(db: db)
            let (stream, continuation) = AsyncStream<String>.makeStream()
            let listener = try await db.listen(
                ["martlet_chat"], onWake: { continuation.yield($0.payload) }, onReconnect: {})
            _ = try await rooms.send([draft(1, 1, "a"), draft(1, 1, "b")], notify: "one")
            _ = try await rooms.send([draft(1, 1, "a")], notify: "nothing new")
            _ = try await rooms.send([draft(9, 1, "a")], notify: "forbidden")
            try await rooms.announce("two")
            var seen: [String] = []
            for await payload in stream {
                seen.append(payload)
                if payload == "two" { break }
            }
            #expect(seen == ["one", "two"])
            await listener.stop()
        }
    }
}

/// What tasks of a test share.
private final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    func withLock<T>(_ body: (inout Value) -> T) -> T {
        value.withLock { value in
            nonisolated(unsafe) let result = body(&value)
            return result
        }
    }
}

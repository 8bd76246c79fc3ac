import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// Room 1 of the users 1 and 2, room 2 of the user 2; the user 3 is a stranger.
struct ChangingRoom {
    let rooms: PostgresRooms
    let test: TestDatabase

    func send(_ sender: Int, _ id: String, _ content: Message.Draft.Content, room: Int = 1) async throws
        -> Message.Outcome
    {
        try await rooms.send([draft(sender, id, content, room: room)], notify: nil)[0]
    }

    func draft(_ sender: Int, _ id: String, _ content: Message.Draft.Content, room: Int = 1) throws -> Message.Draft {
        try Message.Draft(
            roomID: Room.ID(Int64(room)), senderID: User.ID(Int64(sender)), clientID: id, content: content)
    }

    /// Texts 1 to `count` by the user 1.
    func fill(_ count: Int) async throws {
        _ = try await rooms.send(
            (1...count).map { try draft(1, "fill-\($0)", .text("m\($0)", media: nil)) }, notify: nil)
    }

    func mark(_ user: Int64, _ seq: Int64) async throws {
        _ = try await rooms.markRead([ReadMark(room: Room.ID(1), user: User.ID(user), seq: seq)], notify: nil)
    }

    func all() async throws -> [Message] {
        try await rooms.messages(after: [(Room.ID(1), 0)], limitPerRoom: 10_000)
    }
}

func withRoom(_ body: (ChangingRoom) async throws -> Void) async throws {
    try await withTestDatabase { db, test in
        try await makeRooms(test, users: 3, rooms: [[1, 2], [2]])
        try await body(ChangingRoom(rooms: PostgresRooms(db: db), test: test))
    }
}

extension Message.Outcome {
    var seq: Int64? {
        switch self {
        case .sent(let seq, _), .duplicate(let seq): seq
        case .forbidden, .refused: nil
        }
    }
}

@Suite("Edits, deletions and attachments in PostgreSQL")
struct RoomChangesTests {
    @Test("an edit and a deletion of one's own text get numbers of their own, once by their id")
    func own() async throws {
        try await withRoom { room in
            try await room.fill(2)
            #expect(try await room.send(1, "e", .edit(1, "new")).seq == 3)
            #expect(try await room.send(1, "e", .edit(1, "new")) == .duplicate(seq: 3))
            #expect(try await room.send(1, "d", .delete(2)).seq == 4)
            // Sent again after a lost answer: the text is gone, the acknowledgement is the same.
            #expect(try await room.send(1, "d", .delete(2)) == .duplicate(seq: 4))
            let messages = try await room.all()
            #expect(messages.map(\.kind) == [.text, .text, .edit, .delete])
            #expect(messages.map(\.targetSeq) == [nil, nil, 1, 2])
            #expect(messages.map(\.body) == ["m1", "", "new", ""])
            #expect(try await room.rooms.rooms(of: User.ID(1), limit: 1)[0].lastSeq == 4)
        }
    }

    @Test("what is not there, another's, the service's, an edit, or deleted, is refused alike and writes nothing")
    func refused() async throws {
        try await withRoom { room in
            try await room.fill(3)
            _ = try await room.send(2, "x", .text("theirs", media: nil))
            _ = try await room.send(2, "y", .text("elsewhere", media: nil), room: 2)
            try await room.test.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, kind, body) VALUES (1, 5, 0, 'system', 'hello');
                UPDATE rooms SET last_seq = 5 WHERE id = 1
                """)
            _ = try await room.send(1, "e", .edit(3, "new"))
            _ = try await room.send(1, "d", .delete(2))
            let targets: [Int64] = [2, 4, 5, 6, 7, 8, 99, .max]
            for target in targets {
                #expect(try await room.send(1, "no", .edit(target, "no")) == .refused(.target), "\(target)")
                #expect(try await room.send(1, "no", .delete(target)) == .refused(.target), "\(target)")
            }
            // A room of others says nothing of what is in it.
            for target in [1, 99] as [Int64] {
                #expect(try await room.send(3, "no", .delete(target)) == .forbidden)
                #expect(try await room.send(1, "no", .edit(target, "no"), room: 2) == .forbidden)
                #expect(try await room.send(1, "no", .edit(target, "no"), room: 3) == .forbidden)
            }
            #expect(try await room.all().count == 7)
        }
    }

    @Test("a deletion leaves nothing of the text and its edits, wherever one reads")
    func erased() async throws {
        try await withRoom { room in
            try await room.fill(2)
            for number in 1...3 { _ = try await room.send(1, "e\(number)", .edit(1, "secret \(number)")) }
            _ = try await room.send(1, "o", .edit(2, "other"))
            _ = try await room.send(1, "d", .delete(1))
            let bodies = try await room.test.run("SELECT body FROM messages ORDER BY seq").map { $0[0]! }
            #expect(bodies == ["", "m2", "", "", "", "other", ""])
            let page = try await room.rooms.history(
                room: Room.ID(1), from: .newest, limit: 10, viewer: User.ID(2))
            #expect(page.messages.map(\.isDeleted) == [true, false])
            #expect(page.messages.map(\.message.body) == ["", "other"])
            let last = try await room.rooms.lastMessages(
                of: [Room.ID(1)], limitPerRoom: 10, bytesPerRoom: 1_000)[Room.ID(1)]
            #expect(last?.messages.map(\.body) == ["other"])
        }
    }

    @Test("in one batch changes are numbered as they came; nothing is done to a text behind its deletion")
    func batch() async throws {
        try await withRoom { room in
            try await room.fill(2)
            let outcomes = try await room.rooms.send(
                [
                    room.draft(1, "a", .edit(1, "one")), room.draft(1, "b", .edit(1, "two")),
                    room.draft(1, "c", .delete(1)), room.draft(1, "d", .edit(1, "three")),
                    room.draft(1, "e", .delete(1)), room.draft(1, "f", .text("more", media: nil)),
                    // The number that "f" gets: nobody knows it yet.
                    room.draft(1, "g", .edit(6, "guess")), room.draft(1, "c", .delete(1)),
                    room.draft(2, "c", .delete(2)), room.draft(1, "g", .edit(6, "guess")),
                ], notify: nil)
            #expect(
                outcomes.map(\.seq) == [3, 4, 5, nil, nil, 6, nil, 5, nil, nil])
            for index in [3, 4, 6, 8, 9] { #expect(outcomes[index] == .refused(.target)) }
            #expect(outcomes[7] == .duplicate(seq: 5))
            #expect(try await room.all().map(\.body) == ["", "m2", "", "", "", "more"])
            // The refused ids are free: nothing was stored under them.
            #expect(try await room.send(1, "g", .edit(6, "sure")).seq == 7)
        }
    }

    @Test("a text is edited so many times and no more")
    func editsMax() async throws {
        try await withRoom { room in
            try await room.fill(2)
            let edits = try (1...Message.editsMax).map { try room.draft(1, "e\($0)", .edit(1, "\($0)")) }
            #expect(try await room.rooms.send(edits, notify: nil).allSatisfy { $0.seq != nil })
            #expect(try await room.send(1, "one more", .edit(1, "x")) == .refused(.edits))
            #expect(try await room.send(1, "other", .edit(2, "x")).seq != nil)
            #expect(try await room.send(1, "end", .delete(1)).seq != nil)
            #expect(try await room.test.run("SELECT count(*) FROM messages WHERE body <> ''") == [["2"]])
        }
    }

    @Test("an attachment is the sender's own, not rejected; its addresses are worthless when the text is deleted")
    func attachments() async throws {
        try await withRoom { room in
            try await room.test.run(
                """
                INSERT INTO media (owner_id, kind, state, name, hash, bytes, sha256, storage_key) VALUES
                  (1, 'attachment', 'pending', 'a', 'h1', 1, '', 'k1'),
                  (1, 'attachment', 'rejected', 'a', 'h2', 1, '', 'k2'),
                  (1, 'cv', 'ready', 'a', 'h3', 1, '', 'k3'), (2, 'attachment', 'ready', 'a', 'h4', 1, '', 'k4')
                """)
            for id in [2, 3, 4, 99] as [Int64] {
                #expect(try await room.send(1, "x", .text("a", media: Media.ID(id))) == .refused(.media), "\(id)")
            }
            #expect(try await room.send(1, "a", .text("", media: Media.ID(1))).seq == 1)
            #expect(try await room.send(2, "b", .text("see", media: Media.ID(4))).seq == 2)
            #expect(try await room.all().map(\.mediaID) == [Media.ID(1), Media.ID(4)])
            #expect(try await room.send(1, "e", .edit(1, "named")).seq == 3)
            let page = try await room.rooms.history(
                room: Room.ID(1), from: .newest, limit: 10, viewer: User.ID(2))
            #expect(page.messages[0].message.body == "named" && page.messages[0].message.mediaID == Media.ID(1))
            #expect(try await room.send(1, "d", .delete(1)).seq == 4)
            #expect(try await room.all().map(\.mediaID) == [nil, Media.ID(4), nil, nil])
            #expect(
                try await room.test.run("SELECT url_generation FROM media ORDER BY id").map { $0[0] } == [
                    "1", "0", "0", "0",
                ])
        }
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("History and unread counts in PostgreSQL")
struct RoomHistoryTests {
    private func page(
        _ room: ChangingRoom, _ start: HistoryPage.Start, _ limit: Int, viewer: Int64 = 2
    ) async throws -> ([Int64], Bool) {
        let page = try await room.rooms.history(
            room: Room.ID(1), from: start, limit: limit, viewer: User.ID(viewer))
        return (page.messages.map(\.message.seq), page.hasMore)
    }

    @Test("pages go both ways, without the changes between, and tell exactly whether there is more")
    func bothWays() async throws {
        try await withRoom { room in
            #expect(try await page(room, .newest, 5) == ([], false))
            try await room.fill(3)
            _ = try await room.send(1, "e", .edit(1, "new"))
            _ = try await room.send(1, "d", .delete(2))
            _ = try await room.send(2, "t", .text("six", media: nil))
            _ = try await room.send(1, "z", .edit(3, "last"))
            #expect(try await page(room, .newest, 4) == ([1, 2, 3, 6], false))
            #expect(try await page(room, .newest, 3) == ([2, 3, 6], true))
            #expect(try await page(room, .before(6), 3) == ([1, 2, 3], false))
            #expect(try await page(room, .before(6), 2) == ([2, 3], true))
            #expect(try await page(room, .before(1), 2) == ([], false))
            #expect(try await page(room, .after(0), 4) == ([1, 2, 3, 6], false))
            #expect(try await page(room, .after(0), 3) == ([1, 2, 3], true))
            // Only an edit is behind it.
            #expect(try await page(room, .after(3), 1) == ([6], false))
            #expect(try await page(room, .after(6), 1) == ([], false))
            #expect(try await page(room, .after(.max), 1) == ([], false))
        }
    }

    @Test("a text is as its last edit made it, and says when that was")
    func folded() async throws {
        try await withRoom { room in
            try await room.fill(2)
            _ = try await room.send(1, "e1", .edit(1, "second"))
            _ = try await room.send(1, "e2", .edit(1, "third"))
            let folded = try await room.rooms.history(
                room: Room.ID(1), from: .newest, limit: 10, viewer: User.ID(1)
            ).messages
            #expect(folded.map(\.message.body) == ["third", "m2"])
            #expect(folded.map(\.message.kind) == [.text, .text] && folded.map(\.isDeleted) == [false, false])
            let edit = try await room.all()[3]
            #expect(folded[0].editedAt == edit.createdAt && folded[1].editedAt == nil)
        }
    }

    @Test("a page ends at its bytes, those of the newest bodies, and says that there is more")
    func bytes() async throws {
        try await withRoom { room in
            let long = String(repeating: "x", count: 60_000)
            for number in 1...5 { _ = try await room.send(1, "\(number)", .text(long, media: nil)) }
            #expect(try await page(room, .newest, 50) == ([3, 4, 5], true))
            #expect(try await page(room, .after(0), 50) == ([1, 2, 3], true))
            #expect(try await page(room, .after(2), 50) == ([3, 4, 5], false))
            _ = try await room.send(1, "short", .edit(4, "x"))
            #expect(try await page(room, .newest, 50) == ([2, 3, 4, 5], true))
        }
    }

    @Test("a stranger's page is not found, whether there is such a room or not")
    func strangers() async throws {
        try await withRoom { room in
            try await room.fill(1)
            for (id, start) in [(1, .newest), (1, .after(0)), (99, .newest)] as [(Int64, HistoryPage.Start)] {
                let error = await #expect(throws: AppError.self) {
                    try await room.rooms.history(room: Room.ID(id), from: start, limit: 1, viewer: User.ID(3))
                }
                #expect(error == .notFound)
            }
        }
    }

    @Test("unread are the texts of others after the mark that are not deleted, to a hundred, in one's own rooms")
    func unread() async throws {
        try await withRoom { room in
            try await room.fill(4)
            _ = try await room.send(1, "e", .edit(3, "new"))
            _ = try await room.send(1, "d", .delete(4))
            _ = try await room.send(2, "own", .text("own", media: nil))
            try await room.mark(2, 1)
            let asked = [1, 2, 99].map { Room.ID($0) }
            #expect(try await room.rooms.unread(of: User.ID(2), in: asked) == [Room.ID(1): 2, Room.ID(2): 0])
            #expect(try await room.rooms.unread(of: User.ID(1), in: asked) == [Room.ID(1): 1])
            #expect(try await room.rooms.unread(of: User.ID(3), in: asked) == [:])
            let many = try (0..<120).map { try room.draft(1, "many-\($0)", .text("x", media: nil)) }
            _ = try await room.rooms.send(many, notify: nil)
            #expect(try await room.rooms.unread(of: User.ID(2), in: asked)[Room.ID(1)] == Room.unreadMax)
            try await room.mark(2, .max)
            #expect(try await room.rooms.unread(of: User.ID(2), in: asked)[Room.ID(1)] == 0)
        }
    }
}

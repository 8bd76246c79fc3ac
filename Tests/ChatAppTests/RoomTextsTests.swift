import Core
import Foundation
import Testing

@testable import ChatApp

@Suite("The texts of rooms, encoded")
struct RoomTextsTests {
    private func message(
        _ seq: Int64, _ body: String, kind: Message.Kind = .text, target: Int64? = nil, sender: Int64 = 7,
        media: Int64? = nil
    ) -> Message {
        Message(
            roomID: Room.ID(1), seq: seq, senderID: User.ID(sender), clientID: nil, kind: kind, targetSeq: target,
            body: body, mediaID: media.map { Media.ID($0) }, createdAt: Date(timeIntervalSince1970: 1_800_000_000.25))
    }

    private func room(_ texts: RoomTexts?) -> SocketIORoom {
        let room = SocketIORoom(
            ActiveRoom(
                id: Room.ID(1), wireName: #"re"p\_1_jané"#, lastSeq: 0, createdAt: Date(timeIntervalSince1970: 0),
                activeAt: Date(timeIntervalSince1970: 1_800_000_000)))
        room.texts = texts
        return room
    }

    private func argument(_ packet: [UInt8], of name: String) throws -> Data {
        let values = try #require(try JSONSerialization.jsonObject(with: Data(packet)) as? [String])
        #expect(values.count == 2 && values[0] == name)
        return Data(values[1].utf8)
    }

    private func state(_ texts: RoomTexts) throws -> AppRoom {
        let data = try argument(RoomPackets.room(room(texts), texts), of: "room_messages")
        return try JSONDecoder().decode(AppRoom.self, from: data)
    }

    private func rows(_ texts: RoomTexts) throws -> [AppRow] {
        let row = RoomPackets.row(room(texts), texts)
        let data = try argument(RoomPackets.messages([row, row]), of: "messages")
        return try JSONDecoder().decode(AppMessages.self, from: data).payload
    }

    private func texts(_ messages: [Message], depth: RoomTexts.Depth = .room, isWhole: Bool = true) -> RoomTexts {
        RoomTexts(
            LastMessages(lastSeq: messages.last?.seq ?? 0, messages: messages, isWhole: isWhole), depth: depth)
    }

    @Test(
        "any text comes out as it was, twice within quotes",
        arguments: [
            "hello", #"" \ / \" \\ \n"#, "\u{0}\u{1}\u{1f}\u{7f}\t\r\n", "🦆 é ‐ \u{2028} \u{FEFF}", "</script>",
            "[]{},:",
        ])
    func encoding(body: String) throws {
        let texts = texts([message(1, body)])
        let state = try state(texts)
        #expect(state.texts == [AppText(id: 1, source: 7, text: body, created: 1_800_000_000_250)])
        #expect(state.id == 1 && state.room == #"re"p\_1_jané"# && state.message.texts == state.texts)
        #expect(state.message.createdAt == "1970-01-01T00:00:00.000Z")
        #expect(state.message.updatedAt == "2027-01-15T08:00:00.000Z")
        #expect(try rows(texts).map(\.texts) == [state.texts, state.texts])
    }

    @Test("an open room has the last 200 texts, a row of the list the last 20")
    func counts() throws {
        var texts = texts([])
        for seq in 1...250 { texts.apply(message(Int64(seq), "m\(seq)")) }
        #expect(try state(texts).texts.map(\.id) == Array(51...250))
        #expect(try rows(texts)[0].texts.map(\.id) == Array(231...250))
        // Nobody has it open any more; then somebody has again.
        let forgets = texts.reach(.list)
        #expect(forgets)
        #expect(try rows(texts)[0].texts.map(\.id) == Array(231...250))
        let knows = texts.reach(.room)
        #expect(!knows, "what was forgotten has to be read")
    }

    @Test("a room that is known from its beginning need not be read to be opened")
    func whole() throws {
        var short = texts([message(1, "a"), message(2, "b")], depth: .list)
        let isEnough = short.reach(.room)
        #expect(isEnough)
        var cut = texts((5...6).map { message($0, "x") }, depth: .list, isWhole: false)
        let isCut = !cut.reach(.room)
        #expect(isCut)
    }

    @Test("what does not follow, or was there, changes nothing")
    func order() throws {
        var texts = texts([message(3, "c")], isWhole: false)
        for other in [message(3, "again"), message(2, "old"), message(5, "gap")] { texts.apply(other) }
        #expect(try state(texts).texts.map(\.text) == ["c"] && texts.seq == 3)
        texts.apply(message(4, "d"))
        #expect(try state(texts).texts.map(\.text) == ["c", "d"])
    }

    @Test("edits and deletions by the author or the service are folded in, those of others are not")
    func folding() throws {
        var texts = texts((1...4).map { message($0, "m\($0)") })
        texts.apply(message(5, "new", kind: .edit, target: 4))
        texts.apply(message(6, "", kind: .delete, target: 1))
        texts.apply(message(7, "theirs", kind: .edit, target: 2, sender: 8))
        texts.apply(message(8, "", kind: .delete, target: 3, sender: 0))
        texts.apply(message(9, "of nothing", kind: .edit, target: 1))
        texts.apply(message(10, "newer", kind: .edit, target: 4))
        #expect(try state(texts).texts.map(\.text) == ["m2", "newer"] && texts.seq == 10)
    }

    @Test("a file without words is shown as one; what was emptied is not shown, nor does it empty what is")
    func emptied() throws {
        var texts = texts([message(1, "", media: 12), message(2, "see", media: 12), message(3, "")])
        texts.apply(message(4, "", kind: .edit, target: 2))
        #expect(try state(texts).texts.map(\.text) == ["[file]", "see"])
        texts.apply(message(5, "", kind: .delete, target: 2))
        texts.apply(message(6, "", kind: .delete, target: 3))
        texts.apply(message(7, "named", kind: .edit, target: 1))
        #expect(try state(texts).texts.map(\.text) == ["named"] && texts.seq == 7)
    }

    @Test(
        "the worst texts stay below what clients take, and the newest is always there",
        arguments: ["\u{1}", "\"", "a", "🦆"])
    func bytes(worst: String) throws {
        let long = String(repeating: worst, count: Message.bodyBytesMax / worst.utf8.count)
        var texts = texts([])
        for seq in 1...20 { texts.apply(message(Int64(seq), long)) }
        let packet = RoomPackets.room(room(texts), texts)
        #expect(packet.count < 1_000_000)
        #expect(try state(texts).texts.last?.text == long)
        let row = RoomPackets.row(room(texts), texts)
        #expect(row.count <= RoomTexts.Depth.list.bytesMax + 600)
        let shown = try rows(texts)[0].texts
        #expect(shown.map(\.id) == [20])
        #expect(shown[0].text.hasSuffix("…") && long.hasPrefix(shown[0].text.dropLast()))
        #expect(shown[0].text.utf8.count > 1_000)
        // A hundred of them, with the longest names there are.
        let name = String(repeating: "\"", count: 50)
        let named = SocketIORoom(
            ActiveRoom(
                id: Room.ID(.max), wireName: "\(name)_\(Int64.max)_\(name)", lastSeq: 0, createdAt: .now, activeAt: .now
            ))
        let rows = Array(repeating: RoomPackets.row(named, texts), count: RoomPackets.rowsMax)
        #expect(RoomPackets.messages(rows).count < 1_000_000)
    }

    @Test("small texts behind a long one are shown with as many as fit")
    func mixed() throws {
        var texts = texts([message(1, String(repeating: "a", count: 60_000))])
        for seq in 2...5 { texts.apply(message(Int64(seq), "m\(seq)")) }
        #expect(try rows(texts)[0].texts.map(\.id) == [2, 3, 4, 5])
        #expect(try state(texts).texts.map(\.id) == [1, 2, 3, 4, 5])
    }

    @Test("a list is due at once when something changes, and then once in its time")
    func pace() {
        var pace = PushPace()
        #expect(!pace.isDue(now: 0, interval: 1_000))
        let isNew = pace.change()
        let isOld = !pace.change()
        #expect(isNew && isOld && pace.isDue(now: 5, interval: 1_000))
        pace.pushed(now: 5)
        #expect(!pace.isDue(now: 5_000, interval: 1_000), "nothing changed")
        let isChanged = pace.change()
        #expect(isChanged && !pace.isDue(now: 1_004, interval: 1_000) && pace.isDue(now: 1_005, interval: 1_000))
    }
}

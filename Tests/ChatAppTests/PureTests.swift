import Core
import Foundation
import Seeded
import Testing

@testable import ChatApp

@Suite("Client frames")
struct ClientFrameTests {
    private func parse(_ text: String) throws -> ClientFrame {
        try ClientFrame.parse(Array(text.utf8), resumeMax: 3)
    }

    @Test("each type is read, in any order, with white space, escapes and unknown members")
    func accepted() throws {
        #expect(
            try parse(#"{"type":"hello","token":"t","resume":{"1":0,"22":9}}"#)
                == .hello(token: "t", resume: [Room.ID(1): 0, Room.ID(22): 9]))
        let send =
            #" { "body" : "a\n\u00e4\ud83e\udd86\/" , "new":[{"x":[1,-2.5e3,null,true]}], "#
            + #""id":"i", "room" : 7 ,"type":"send"} "#
        #expect(
            try parse(send)
                == .send(room: Room.ID(7), clientID: "i", content: .text("a\nä🦆/", media: nil)))
        #expect(
            try parse(#"{"type":"history","room":1,"before":5,"limit":2}"#)
                == .history(room: Room.ID(1), from: .before(5), limit: 2))
        #expect(
            try parse(#"{"type":"history","room":1,"after":0}"#)
                == .history(room: Room.ID(1), from: .after(0), limit: nil))
        #expect(try parse(#"{"type":"read","room":1,"seq":3}"#) == .read(room: Room.ID(1), seq: 3))
        #expect(try parse(#"{"type":"typing","room":1}"#) == .typing(room: Room.ID(1)))
        #expect(try parse(#"{"type":"unread","rooms":[]}"#) == .unread(rooms: []))
        let hundred = (1...100).map(String.init).joined(separator: ",")
        #expect(
            try parse(#"{"type":"unread","rooms":[\#(hundred)]}"#) == .unread(rooms: (1...100).map { Room.ID($0) }))
    }

    @Test("a text, an edit and a deletion are sends; beside a file there need not be words")
    func acts() throws {
        func content(_ members: String) throws -> Message.Draft.Content {
            let frame = try parse("{\(members),\"room\":7,\"id\":\"i\"}")
            guard case .send(Room.ID(7), "i", let content) = frame else { throw CancellationError() }
            return content
        }
        #expect(try content(#""type":"send","media":12"#) == .text("", media: Media.ID(12)))
        #expect(try content(#""type":"send","media":12,"body":"see""#) == .text("see", media: Media.ID(12)))
        #expect(try content(#""type":"edit","target":3,"body":"new""#) == .edit(3, "new"))
        #expect(try content(#""type":"delete","target":3,"body":"unknown here""#) == .delete(3))
    }

    @Test(
        "what is no JSON or not the type's members is refused",
        arguments: [
            "", "null", "[]", "{", "{}", #"{"type":"send"}"#, #"{"type":"typing","room":1}x"#,
            #"{"type":"typing","room":1,}"#, #"{"type":"typing","room":01}"#, #"{"type":"typing","room":1e3}"#,
            #"{"type":"typing","room":9223372036854775808}"#,
            #"{"type":"typing","room":"1"}"#, "{\"type\":\"typing\u{1}\"}", #"{"type":"a\q"}"#, #"{"type":"\ud83e"}"#,
            #"{"type":"hello","token":"t","resume":{"x":1}}"#, #"{"type":"hello","token":"t","resume":{"1":-1}}"#,
            #"{"type":"hello","token":"t","resume":{"1":1,"2":1,"3":1,"4":1}}"#, #"{'type':'typing'}"#,
            #"{"type":"edit","room":1,"id":"i","target":3}"#, #"{"type":"edit","room":1,"id":"i","body":"x"}"#,
            #"{"type":"delete","room":1,"id":"i"}"#, #"{"type":"delete","room":1,"target":3}"#,
            #"{"type":"send","room":1,"id":"i","media":"12"}"#, #"{"type":"send","room":1,"id":"i","media":null}"#,
            #"{"type":"history","room":1,"before":5,"after":2}"#, #"{"type":"unread"}"#,
            #"{"type":"unread","rooms":[1,"2"]}"#,
            #"{"type":"unread","rooms":[0"# + String(repeating: ",1", count: 100) + "]}",
            #"{"type":"typing","room":1,"x":tru}"#, #"{"x":"# + String(repeating: "[", count: 100),
        ])
    func refused(text: String) {
        #expect(throws: ClientFrame.Fault.self) { try parse(text) }
    }

    @Test("a fault says which room and message it is about, as far as that was read")
    func faultNames() {
        let fault = #expect(throws: ClientFrame.Fault.self) { try parse(#"{"type":"send","room":4,"id":"i"}"#) }
        #expect(fault?.room == Room.ID(4) && fault?.clientID == "i")
    }

    @Test("what is read is what Foundation reads, and nothing is taken that Foundation refuses", arguments: 0..<20)
    func againstFoundation(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = ["a", "ä", "🦆", "\"", "\\", "\n", "\t", "/", "\u{7F}", "{", "}", ",", ":", "é", "\u{2028}"]
        for _ in 0..<200 {
            let count = Int.random(in: 0...12, using: &random)
            let body = (0..<count).map { _ in pieces.randomElement(using: &random)! }.joined()
            let object: [String: Any] = ["type": "send", "room": Int.random(in: 1...99), "id": "i", "body": body]
            var bytes = Array(try JSONSerialization.data(withJSONObject: object))
            guard case .send(_, _, .text(let read, nil)) = try ClientFrame.parse(bytes, resumeMax: 1) else {
                throw CancellationError()
            }
            #expect(read == body)
            bytes[bytes.indices.randomElement(using: &random)!] = UInt8.random(in: 0x20...0x7E, using: &random)
            // What is not UTF-8 does not come this far.
            guard String(validating: bytes, as: UTF8.self) != nil else { continue }
            if (try? ClientFrame.parse(bytes, resumeMax: 1)) != nil {
                #expect((try? JSONSerialization.jsonObject(with: Data(bytes))) != nil)
            }
        }
    }
}

@Suite("Wake-up hints")
struct WakeHintTests {
    @Test("what was written is read; more than fits says that anything may have changed")
    func roundTrip() {
        let few = WakeHint.text(sender: "chat-1.x", messages: [Room.ID(1), Room.ID(22)], memberships: [Room.ID(3)])
        #expect(few == "chat-1.x:1,22,-3")
        #expect(
            WakeHint(few)
                == .rooms(
                    sender: "chat-1.x", messages: [Room.ID(1), Room.ID(22)], memberships: [Room.ID(3)]))
        let many = WakeHint.text(sender: "chat-1", messages: (1...21).map { Room.ID($0) })
        #expect(WakeHint(many) == .anything(sender: "chat-1"))
        let long = WakeHint.text(sender: "c", messages: (0..<20).map { Room.ID(.max - $0) })
        #expect(long == "c:*")
        let typing = (1...100).map { WakeHint.Typing(room: Room.ID(.max - $0), user: User.ID($0)) }
        let text = WakeHint.text(sender: "c", typing: typing)
        #expect(text.utf8.count <= WakeHint.bytesMax)
        guard case .typing("c", let read) = WakeHint(text) else { return #expect(Bool(false)) }
        #expect(read == Array(typing.prefix(read.count)) && !read.isEmpty)
    }

    @Test(
        "anything else says that anything may have changed", arguments: ["", "x", ":", "a:", "a:1,x", "a:0", "a:1,,"])
    func others(payload: String) {
        if case .rooms(_, let messages, let memberships) = WakeHint(payload) {
            // Empty items are passed over, which loses nothing.
            #expect(payload == "a:1,," && messages == [Room.ID(1)] && memberships.isEmpty)
        }
    }
}

@Suite("Positions of rooms")
struct RoomPositionsTests {
    private static func message(_ room: Int64, _ seq: Int64) -> Message {
        Message(
            roomID: Room.ID(room), seq: seq, senderID: User.ID(1), clientID: nil, kind: .text, targetSeq: nil,
            body: "\(seq)", createdAt: Date(timeIntervalSince1970: 0))
    }

    /// Rooms that others write to as well, wake-ups that are lost, reads that are late or fail, hubs that come and go.
    private struct World {
        var random: SeededGenerator
        var positions = RoomPositions()
        var committed: [Int64: Int64] = [1: 0, 2: 0, 3: 0]
        /// What each hub of each room was given, from its hold on.
        var given: [Int64: [Int: Int64]] = [:]
        var reads: [[(room: Room.ID, seq: Int64)]] = []
        var batches: [(Int64, [Message])] = []
        var isRight = true

        mutating func step() {
            let room = Int64.random(in: 1...3, using: &random)
            let hub = Int.random(in: 0...2, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1: commitHere(room)
            case 2: committed[room, default: 0] += Int64.random(in: 1...3, using: &random)
            case 3: report()
            case 4: hold(room, hub)
            case 5: release(room, hub)
            case 6: _ = positions.changed(Room.ID(room), lastSeq: Bool.random(using: &random) ? committed[room] : nil)
            case 7: if positions.hasDue { reads.append(positions.takeDue(max: 2)) }
            default: read()
            }
        }

        mutating func commitHere(_ room: Int64) {
            let start = committed[room]!
            let count = Int64.random(in: 1...3, using: &random)
            committed[room] = start + count
            batches.append((room, (start + 1...start + count).map { message(room, $0) }))
        }

        /// Batches are reported in the order in which they were committed.
        mutating func report() {
            guard !batches.isEmpty else { return }
            let (room, messages) = batches.removeFirst()
            deliver(positions.published(Room.ID(room), messages))
        }

        mutating func hold(_ room: Int64, _ hub: Int) {
            guard given[room]?[hub] == nil else { return }
            // The room's last seq was read a while ago.
            let seen = max(0, committed[room]! - Int64.random(in: 0...2, using: &random))
            given[room, default: [:]][hub] = positions.hold(Room.ID(room), lastSeq: seen, hub: hub)
        }

        mutating func release(_ room: Int64, _ hub: Int) {
            guard given[room]?.removeValue(forKey: hub) != nil else { return }
            positions.release(Room.ID(room), hub: hub)
        }

        mutating func read() {
            guard let index = reads.indices.randomElement(using: &random) else { return }
            let cursors = reads.remove(at: index)
            guard Int.random(in: 0..<4, using: &random) > 0 else { return positions.giveBack(cursors) }
            finish(cursors)
        }

        mutating func finish(_ cursors: [(room: Room.ID, seq: Int64)]) {
            for (room, seq) in cursors {
                let last = committed[room.value]!
                guard last > seq else { continue }
                let end = min(last, seq + 4)
                let page = (seq + 1...end).map { message(room.value, $0) }
                deliver(positions.fetched(room, page, isWhole: page.count < 4))
            }
        }

        mutating func deliver(_ delivery: RoomPositions.Delivery?) {
            guard let delivery else { return }
            let room = delivery.room.value
            for hub in 0...2 where delivery.hubs.contains(hub) {
                guard var last = given[room]?[hub] else {
                    isRight = false
                    return
                }
                for message in delivery.messages {
                    if message.seq != last + 1 { isRight = false }
                    last = message.seq
                }
                given[room]?[hub] = last
            }
            for hub in 0...2 where given[room]?[hub] != nil && !delivery.hubs.contains(hub) { isRight = false }
        }

        /// Everything outstanding happens, and one look around: then all have all.
        mutating func settle() {
            while !batches.isEmpty { report() }
            for cursors in reads { finish(cursors) }
            reads = []
            for (room, last) in committed { _ = positions.changed(Room.ID(room), lastSeq: last) }
            while positions.hasDue { finish(positions.takeDue(max: 2)) }
            for (room, hubs) in given {
                for last in hubs.values where last != committed[room] { isRight = false }
            }
        }
    }

    @Test("whatever the order of commits, wake-ups and reads, each hub is given each message once, in order")
    func simulated() {
        for seed in 0..<10_000 {
            var world = World(random: SeededGenerator(seed: UInt64(seed)))
            for _ in 0..<60 { world.step() }
            world.settle()
            guard world.isRight else {
                Issue.record("seed \(seed)")
                return
            }
        }
    }

    @Test("a room that nobody follows costs nothing")
    func released() {
        var positions = RoomPositions()
        _ = positions.hold(Room.ID(1), lastSeq: 5, hub: 0)
        positions.release(Room.ID(1), hub: 0)
        #expect(positions.count == 0 && !positions.hasDue)
        let isHeld = positions.changed(Room.ID(1), lastSeq: 9)
        let due = positions.takeDue(max: 9)
        #expect(!isHeld && due.isEmpty)
    }
}

@Suite("Token buckets")
struct TokenBucketTests {
    @Test("a burst, then so many a second, and a pause fills it to the burst and no further")
    func flow() {
        var bucket = TokenBucket(burst: 3, now: 0)
        func take(_ times: UInt64...) -> [Bool] {
            var taken: [Bool] = []
            for now in times { taken.append(bucket.take(perSecond: 2, burst: 3, now: now)) }
            return taken
        }
        let first = take(0, 0, 0, 0)
        #expect(first == [true, true, true, false])
        let second = take(499, 500, 501)
        #expect(second == [false, true, false])
        let later = take(1_000_000, 1_000_000, 1_000_000, 1_000_000)
        #expect(later == [true, true, true, false])
    }
}

import Core
import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("Socket.IO with many sockets, many rooms and slow readers")
struct SocketIOLoadTests {
    @Test("hundreds who come at once are served by few reads, and messages by none")
    func reads() async throws {
        let watched = WatchedRooms()
        let users = Array(1...100)
        try await withInstances(["chat-1"], users: 100, rooms: [users, [1, 2], [3]], repository: watched.watch) {
            instances, _ in
            let clients = try await withThrowingTaskGroup(of: SocketIOClient.self) { group in
                for user in users { group.addTask { try await instances[0].socketIO(user: user) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for client in clients {
                client.join("rep_1_jane")
                _ = try await client.room()
            }
            let before = (watched.asked(.lists), watched.asked(.texts))
            // Two loops, whose reads may each have been under way while the rest arrived one after the other.
            #expect(before.0 <= 100)
            #expect(before.1 <= 6)
            for number in 1...50 { clients[0].send("rep_1_jane", "m\(number)") }
            for client in clients {
                let state = try await client.room(endingWith: "m50")
                #expect(state.texts.map(\.id) == Array(1...50))
            }
            #expect(watched.asked(.lists) == before.0 && watched.asked(.texts) == before.1)
        }
    }

    @Test("of many rooms the list has the hundred that were active last; an old one comes back by a message")
    func manyRooms() async throws {
        try await withInstances(
            ["chat-1"], users: 2, rooms: Array(repeating: [1, 2], count: 130),
            limits: { $0.pushMilliseconds = 50 }
        ) { instances, test in
            try await test.run(
                """
                UPDATE rooms SET created_at = now() - interval '1 day' + id * interval '1 minute';
                INSERT INTO messages (room_id, seq, sender_id, body) SELECT id, 1, 2, 'hello ' || id FROM rooms;
                UPDATE messages SET created_at = now() - interval '1 hour' + room_id * interval '1 second';
                UPDATE rooms SET last_seq = 1
                """)
            let one = try await instances[0].socketIO(user: 1)
            let list = try await one.messages().payload
            #expect(list.map(\.id) == (31...130).reversed())
            #expect(list.allSatisfy { $0.texts.map(\.text) == ["hello \($0.id)"] })
            let two = try await instances[0].socketIO(user: 2)
            two.send("rep_5_jane", "back again", ack: 1)
            #expect(try await two.acknowledgement(1) == #"[{"ok":true,"seq":2}]"#)
            let after = try await one.messages(with: "back again").payload
            #expect(after.map(\.id) == [5] + (32...130).reversed())
            #expect(after[0].texts.map(\.text) == ["hello 5", "back again"])
            // And a room that is in no list can be opened.
            one.join("rep_3_jane")
            try await one.room(endingWith: "hello 3")
        }
    }

    @Test("a slow reader is not closed by large rooms, holds little, and ends with the newest state")
    func slowReader() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            let slow = try await instances[0].socketIO(user: 2)
            for client in [one, slow] { client.join("rep_1_jane") }
            _ = try await slow.room()
            slow.socket.pauseReading()
            let long = String(repeating: "x", count: 60_000)
            for number in 1...40 {
                one.send("rep_1_jane", "\(number) \(long)", ack: number)
                _ = try await one.acknowledgement(number)
            }
            slow.socket.resumeReading()
            var states = 0
            while try await slow.room().texts.last?.text.hasPrefix("40 ") != true { states += 1 }
            #expect(states < 40, "those on the way are passed over")
            try await slow.settle()
        }
    }

    @Test("who opens more rooms than one may leaves the one opened first")
    func openRooms() async throws {
        try await withInstances(
            ["chat-1"], users: 1, rooms: Array(repeating: [1], count: 4), limits: { $0.focusMax = 3 }
        ) { instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            for room in 1...4 {
                one.join("rep_\(room)_jane")
                #expect(try await one.room().id == room)
            }
            one.send("rep_1_jane", "unseen", ack: 1)
            one.send("rep_2_jane", "seen", ack: 2)
            for ack in 1...2 { _ = try await one.acknowledgement(ack) }
            try await one.room(endingWith: "seen")
            #expect(!one.events.contains { $0.name == "room_messages" && $0.text.contains("unseen") })
        }
    }

    @Test("too many events or messages are refused, and who goes on is closed")
    func rates() async throws {
        try await withInstances(
            ["chat-1"], users: 1, rooms: [[1]],
            limits: {
                $0.sendsPerSecond = 1
                $0.sendsBurstMax = 2
                $0.framesPerSecond = 1
                $0.framesBurstMax = 8
                $0.refusalsMax = 20
            }
        ) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            for number in 1...3 { one.send("rep_1_jane", "m\(number)", ack: number) }
            #expect(try await one.acknowledgement(3) == #"[{"error":"Too many messages; slow down."}]"#)
            for _ in 1...60 { one.exit("rep_1_jane") }
            _ = try await one.event("room_error")
            while true {
                if case .end = try await one.next() { break }
            }
            try await eventually { try await test.run("SELECT count(*) FROM messages") == [["2"]] }
        }
    }
}

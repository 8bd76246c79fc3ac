import Core
import CorePostgres
import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("Socket.IO on the same rooms")
struct SocketIOTests {
    @Test("a client is told its rooms at once, and the texts of a room that it opens")
    func first() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2], [1, 3]]) { instances, test in
            try await test.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, kind, body) VALUES
                  (1, 1, 0, 'system', 'Application accepted'), (1, 2, 2, 'text', E'"quoted" \\\\ and\\n🦆 ‐ \\u0001');
                UPDATE rooms SET last_seq = 2 WHERE id = 1
                """)
            let one = try await instances[0].socketIO(user: 1)
            let list = try await one.messages()
            #expect(list.payload.map(\.id) == [1, 2] && list.payload.map(\.room) == ["rep_1_jane", "rep_2_jane"])
            #expect(list.payload[0].texts.map(\.id) == [1, 2] && list.payload[0].texts.map(\.source) == [0, 2])
            #expect(list.payload[0].texts[1].text == "\"quoted\" \\ and\n🦆 ‐ \u{1}")
            #expect(list.payload[1].texts.isEmpty)
            let created = Double(list.payload[0].texts[0].created) / 1000
            #expect(abs(created - Date().timeIntervalSince1970) < 3_600)
            one.join("rep_1_jane", ack: 7)
            #expect(try await one.acknowledgement(7) == #"[{"ok":true}]"#)
            let room = try await one.room()
            #expect(room.id == 1 && room.room == "rep_1_jane" && room.texts == list.payload[0].texts)
            #expect(room.message == list.payload[0])
            one.send("rep_1_jane", "hello", ack: 8)
            #expect(try await one.acknowledgement(8) == #"[{"ok":true,"seq":3}]"#)
            #expect(try await one.room(endingWith: "hello").texts.last?.source == 1)
        }
    }

    @Test("what martlet.v1 says on one instance is heard by Socket.IO on the other, and the other way round")
    func bothFronts() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let native = try await instances[0].client(user: 1)
            let other = try await instances[1].socketIO(user: 2)
            other.join("rep_1_jane")
            _ = try await other.room()
            for number in 1...20 { native.send(1, "\(number)", "m\(number)") }
            let state = try await other.room(endingWith: "m20")
            #expect(state.texts.map(\.text) == (1...20).map { "m\($0)" } && state.texts.map(\.id) == Array(1...20))
            other.send("rep_1_jane", "answer")
            try await native.until(room: 1, seq: 21)
            #expect(native.messages.last?.body == "answer" && native.seqs(1) == Array(1...21))
            try await other.messages(with: "answer")
        }
    }

    @Test("without NOTIFY everything arrives by polling: messages, new rooms, lost memberships")
    func polling() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]], notify: false) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            let two = try await instances[1].socketIO(user: 2)
            #expect(try await two.messages().payload.count == 1)
            one.send("rep_1_jane", "hello")
            try await two.messages(with: "hello")
            try await roomAppears(test, notify: false)
            let list = try await two.messages(with: "welcome")
            // The room that was active last comes first.
            #expect(list.payload.map(\.room) == ["new_2_jane", "rep_1_jane"])
            two.join("new_2_jane")
            try await two.room(endingWith: "welcome")
            try await membershipEnds(test, room: 2, user: 2, notify: false)
            #expect(try await two.messages().payload.map(\.room) == ["rep_1_jane"])
            one.send("new_2_jane", "among us")
            try await one.messages(with: "among us")
            try await two.settle()
            #expect(!two.events.contains { $0.text.contains("among us") })
        }
    }

    private func roomAppears(_ test: TestDatabase, notify: Bool) async throws {
        try await test.run(
            """
            BEGIN;
            INSERT INTO rooms (wire_name, last_seq) VALUES ('new_2_jane', 1);
            INSERT INTO room_members (room_id, user_id) VALUES (2, 1), (2, 2);
            INSERT INTO messages (room_id, seq, sender_id, kind, body) VALUES (2, 1, 0, 'system', 'welcome');
            INSERT INTO room_changes (room_ids) VALUES ('{2}');
            \(notify ? "NOTIFY martlet_chat;" : "")
            COMMIT
            """)
    }

    private func membershipEnds(_ test: TestDatabase, room: Int, user: Int, notify: Bool) async throws {
        try await test.run(
            """
            BEGIN; DELETE FROM room_members WHERE room_id = \(room) AND user_id = \(user);
            INSERT INTO room_changes (room_ids) VALUES ('{-\(room)}');
            \(notify ? "NOTIFY martlet_chat;" : "") COMMIT
            """)
    }

    @Test("a room that was accepted a moment ago can be opened before anybody has told of it")
    func newRoomAtOnce() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]], limits: { $0.pollMilliseconds = 600_000 }) {
            instances, test in
            let one = try await instances[0].socketIO(user: 1)
            _ = try await one.messages()
            try await roomAppears(test, notify: false)
            one.join("new_2_jane", ack: 1)
            #expect(try await one.acknowledgement(1) == #"[{"ok":true}]"#)
            try await one.room(endingWith: "welcome")
        }
    }

    @Test("what is found while a room is read is told to all who look at it, whether anybody has told us or not")
    func foundByReading() async throws {
        let quiet: (inout ChatLimits) -> Void = {
            $0.pollMilliseconds = 600_000
            $0.pushMilliseconds = 50
        }
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]], limits: quiet) { instances, test in
            try await test.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, body)
                  SELECT 1, n, 1, 'm' || n FROM generate_series(1, 30) n;
                UPDATE rooms SET last_seq = 30
                """)
            let one = try await instances[0].socketIO(user: 1)
            #expect(try await one.messages().payload[0].texts.map(\.id) == Array(11...30))
            try await test.run(
                """
                INSERT INTO messages (room_id, seq, sender_id, body) VALUES (1, 31, 2, 'untold');
                UPDATE rooms SET last_seq = 31
                """)
            one.join("rep_1_jane")
            #expect(try await one.room().texts.map(\.id) == Array(1...31))
            let list = try await one.messages().payload
            #expect(list[0].texts.map(\.id) == Array(12...31))
            // And goes on from there.
            one.send("rep_1_jane", "next")
            try await one.room(endingWith: "next")
        }
    }

    @Test("who leaves a room hears no more of its texts, but for the list")
    func leaving() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            let two = try await instances[0].socketIO(user: 2)
            two.join("rep_1_jane")
            _ = try await two.room()
            two.exit("rep_1_jane", ack: 1)
            _ = try await two.acknowledgement(1)
            one.send("rep_1_jane", "later", ack: 1)
            _ = try await one.acknowledgement(1)
            try await two.messages(with: "later")
            #expect(!two.events.contains { $0.name == "room_messages" })
        }
    }

    @Test("edits and deletions are shown as what they came to")
    func folded() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            one.join("rep_1_jane")
            for text in ["a", "b", "c"] { one.send("rep_1_jane", text) }
            try await one.room(endingWith: "c")
            try await test.run(
                """
                BEGIN;
                INSERT INTO messages (room_id, seq, sender_id, kind, target_seq, body) VALUES
                  (1, 4, 1, 'edit', 3, 'C'), (1, 5, 1, 'delete', 1, '');
                UPDATE rooms SET last_seq = 5 WHERE id = 1;
                INSERT INTO room_changes (room_ids) VALUES ('{1}'); NOTIFY martlet_chat; COMMIT
                """)
            let live = try await one.room(endingWith: "C")
            #expect(live.texts.map(\.text) == ["b", "C"] && live.texts.map(\.id) == [2, 3])
            // On either loop: by one the texts are known, by the other they are read.
            for user in [2, 2, 2, 1, 1] {
                let again = try await instances[0].socketIO(user: user)
                #expect(try await again.messages().payload.first?.texts.map(\.text) == ["b", "C"])
            }
        }
    }

    @Test("the list comes at most once in its time, and then has everything")
    func paced() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]], limits: { $0.pushMilliseconds = 600_000 }) {
            instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            _ = try await one.messages()
            one.join("rep_1_jane")
            for number in 1...5 { one.send("rep_1_jane", "m\(number)") }
            try await one.room(endingWith: "m5")
            try await one.settle()
            #expect(!one.events.contains { $0.name == "messages" })
            // A second device has its own time.
            let two = try await instances[0].socketIO(user: 1)
            #expect(try await two.messages().payload[0].texts.count == 5)
        }
    }

    @Test("the end of a session or of a token ends its sockets on every instance, and nobody else's")
    func sessionEnd() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].socketIO(user: 1, session: 1)
            let two = try await instances[1].socketIO(user: 1, session: 1)
            let other = try await instances[1].socketIO(user: 1, session: 99)
            try await PostgresSessions(db: instances[0].db).end(Session.ID(1), user: User.ID(1))
            for client in [one, two] {
                var isTold = false
                reading: while true {
                    switch try await client.next() {
                    case .disconnected: isTold = true
                    case .end: break reading
                    default: continue
                    }
                }
                #expect(isTold)
            }
            try await other.settle()
            let brief = try await connectBriefly(instances[0])
            while true {
                if case .disconnected = try await brief.next() { break }
            }
        }
    }

    /// With a token that ends soon: as soon as the machine can connect within it.
    private func connectBriefly(_ instance: Instance) async throws -> SocketIOClient {
        for seconds: Int64 in [2, 4, 8, 16, 32] {
            let client = try await SocketIOClient(port: instance.port)
            client.connect(Instance.token(user: 1, session: 99, kind: .long, seconds: seconds))
            if case .connected = try await client.next() { return client }
        }
        throw SocketIOClient.Failure(description: "not connected")
    }

    @Test("a user's sockets are counted with those of martlet.v1")
    func counted() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1]], limits: { $0.socketsPerUserMax = 2 }) {
            instances, _ in
            let native = try await instances[0].client(user: 1)
            let one = try await instances[0].socketIO(user: 1)
            let third = try await SocketIOClient(port: instances[0].port)
            third.connect(Instance.token(user: 1))
            #expect(try await third.refusal() == "A user has at most 2 connections.")
            _ = try await instances[0].socketIO(user: 2)
            one.socket.send("41/,")
            try await eventually { (try? await instances[0].socketIO(user: 1)) != nil }
            try await native.ping()
        }
    }

    @Test("other namespaces do not exist")
    func namespaces() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            one.socket.send(#"40/admin,{"token":"\#(Instance.token(user: 1))"}"#)
            while true {
                let text = try await one.socket.nextText()
                if text.hasPrefix("44") {
                    #expect(text == #"44/admin,{"message":"Invalid namespace"}"#)
                    break
                }
            }
            try await one.settle()
        }
    }
}

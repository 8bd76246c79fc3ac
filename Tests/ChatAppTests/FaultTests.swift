import Core
import CorePostgres
import Foundation
import Seeded
import Synchronization
import TestSupport
import Testing

@testable import ChatApp

/// Follows a room over any number of connections, as a client does that keeps the last seq it has seen.
private final class Follower {
    private(set) var log: [ChatClient.Seen] = []
    var last: Int64 { log.last?.seq ?? 0 }
    private var client: ChatClient?

    func connect(_ instance: Instance, user: Int) async throws {
        client = try await instance.client(user: user, resume: [1: last])
    }

    /// Reads up to `count` messages, or to the end.
    func read(_ count: Int, end: Int64) async throws {
        guard let client else { return }
        var left = count
        while left > 0, last < end {
            let frame = try await client.next("message")
            log.append(
                ChatClient.Seen(
                    room: frame.int("room")!, seq: frame.int("seq")!, body: frame.string("body")!))
            left -= 1
        }
    }

    /// In the middle of a frame of our own, with what is on its way to us unread.
    func cut(after bytes: Int) {
        let half = WebSocketClient.frame(1, Array(#"{"type":"read","room":1,"seq":1}"#.utf8)).prefix(bytes)
        client?.socket.send(raw: Array(half))
        client?.socket.cut()
        client = nil
    }
}

@Suite("The chat when things break")
struct FaultTests {
    /// Sends messages one after the other, each when the one before is acknowledged.
    private func write(_ client: ChatClient, _ count: Int, room: Int = 1) async throws {
        for number in 1...count {
            client.send(room, "\(number)", "m\(number)")
            _ = try await client.next("ack")
        }
    }

    private func table(_ test: TestDatabase) async throws -> [ChatClient.Seen] {
        try await test.run("SELECT room_id, seq, body FROM messages WHERE room_id = 1 ORDER BY seq").map {
            ChatClient.Seen(room: Int64($0[0]!)!, seq: Int64($0[1]!)!, body: $0[2]!)
        }
    }

    @Test("who is cut off anywhere, again and again, on any instance, ends with what the table has")
    func cut() async throws {
        let count = 300
        try await withInstances(users: 9, rooms: [Array(1...9)]) { instances, test in
            let writer = try await instances[0].client(user: 1)
            async let written: Void = write(writer, count)
            let logs = try await withThrowingTaskGroup(of: [ChatClient.Seen].self) { group in
                for user in 2...9 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(user))
                        let follower = Follower()
                        while follower.last < Int64(count) {
                            let instance = instances[Int.random(in: 0...1, using: &random)]
                            try await follower.connect(instance, user: user)
                            try await follower.read(Int.random(in: 0...40, using: &random), end: Int64(count))
                            follower.cut(after: Int.random(in: 0...20, using: &random))
                        }
                        return follower.log
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await written
            let expected = try await table(test)
            #expect(expected.map(\.seq) == Array(1...Int64(count)))
            for log in logs { #expect(log == expected) }
        }
    }

    @Test("a listener that is killed again and again loses nothing")
    func listenerKilled() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, test in
            let writer = try await instances[0].client(user: 1)
            let reader = try await instances[1].client(user: 2)
            let listener = try #require(instances[1].listener)
            var killed = 0
            for number in 1...60 {
                writer.send(1, "\(number)", "m\(number)")
                _ = try await writer.next("ack")
                if number.isMultiple(of: 4), let process = await listener.processID {
                    try await test.run("SELECT pg_terminate_backend(\(process))")
                    killed += 1
                }
            }
            try await reader.until(room: 1, seq: 60)
            #expect(reader.seqs(1) == Array(1...60))
            #expect(killed > 0)
        }
    }

    @Test("who cannot read what changed delivers what it is woken for all the same")
    func changesUnreadable() async throws {
        let watched = WatchedRooms()
        try await withInstances(users: 2, rooms: [[1, 2]], repository: watched.watch) { instances, _ in
            let writer = try await instances[0].client(user: 1)
            let reader = try await instances[1].client(user: 2)
            watched.refused = .changes
            // Until it has failed once, and said so.
            try await eventually { instances[1].chat.problem != nil }
            for number in 1...5 {
                writer.send(1, "\(number)", "m\(number)")
                _ = try await writer.next("ack")
            }
            try await reader.until(room: 1, seq: 5)
            watched.refused = nil
            try await eventually { instances[1].chat.problem == nil }
        }
    }

    @Test("without NOTIFY everything arrives by polling")
    func noNotify() async throws {
        try await withInstances(users: 3, rooms: [[1, 2]], notify: false) { instances, test in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            try await write(one, 30)
            try await two.until(room: 1, seq: 30)
            #expect(two.seqs(1) == Array(1...30))
            two.socket.send(#"{"type":"read","room":1,"seq":30}"#)
            #expect(try await one.next("read").int("seq") == 30)
            // A room made meanwhile reaches those who are connected.
            try await makeRoom(test, members: [1, 2], notify: false)
            for client in [one, two] { try await client.until(room: 2, seq: 1) }
        }
    }

    /// As another service makes one: room, members, first message, change row, wake-up.
    private func makeRoom(_ test: TestDatabase, members: [Int], notify: Bool = true) async throws {
        try await test.run(
            """
            BEGIN;
            WITH room AS (INSERT INTO rooms (wire_name, last_seq) VALUES ('new_2_jane', 1) RETURNING id),
            members AS (INSERT INTO room_members (room_id, user_id)
              SELECT id, unnest('{\(members.map(String.init).joined(separator: ","))}'::bigint[]) FROM room),
            first AS (INSERT INTO messages (room_id, seq, sender_id, kind, body)
              SELECT id, 1, 0, 'system', 'welcome' FROM room)
            INSERT INTO room_changes (room_ids) SELECT ARRAY[id] FROM room;
            \(notify ? "NOTIFY martlet_chat;" : "")
            COMMIT
            """)
    }

    @Test("a room made by another service reaches its members' sockets at once, and nobody else's")
    func newRoom() async throws {
        try await withInstances(users: 3, rooms: [[3]], limits: { $0.pollMilliseconds = 600_000 }) { instances, test in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            let three = try await instances[1].client(user: 3)
            try await makeRoom(test, members: [1, 2])
            for client in [one, two] {
                let room = try await client.next("room").object("room")
                #expect(room["id"] as? Int == 2 && room["name"] as? String == "new_2_jane")
                try await client.until(room: 2, seq: 1)
                #expect(client.messages.map(\.body) == ["welcome"])
            }
            one.send(2, "x", "hi")
            try await two.until(room: 2, seq: 2)
            try await three.ping()
            #expect(three.messages.isEmpty && three.passed.isEmpty)
        }
    }

    @Test("who is removed from a room is told, and given nothing more of it")
    func removed() async throws {
        try await withInstances(users: 2, rooms: [[1, 2], [1, 2]]) { instances, test in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            try await test.run(
                """
                BEGIN; DELETE FROM room_members WHERE room_id = 1 AND user_id = 2;
                INSERT INTO room_changes (room_ids) VALUES ('{-1}'); NOTIFY martlet_chat; COMMIT
                """)
            #expect(try await two.next("left").int("room") == 1)
            one.send(1, "x", "among us")
            one.send(2, "y", "with you")
            try await two.until(room: 2, seq: 1)
            #expect(two.seqs(1).isEmpty)
            two.send(1, "z", "let me in")
            #expect(try await two.next("error").string("code") == "forbidden")
        }
    }

    @Test("a session's end closes its sockets on every instance; the user's others stay")
    func sessionEnd() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1, session: 1)
            let two = try await instances[1].client(user: 1, session: 1)
            let other = try await instances[1].client(user: 1, session: 99)
            try await PostgresSessions(db: instances[0].db).end(Session.ID(1), user: User.ID(1))
            for client in [one, two] { #expect(try await client.closeCode() == 4401) }
            try await other.ping()
            let again = try await ChatClient(port: instances[1].port)
            again.hello(Instance.token(user: 1, session: 1))
            #expect(try await again.closeCode() == 4401)
        }
    }

    @Test("sends whose connection to the database is killed are stored once, and what was acknowledged is there")
    func writersKilled() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, test in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[0].client(user: 2)
            var acknowledged: [String: Int64] = [:]
            for number in 1...80 {
                one.send(1, "\(number)", "m\(number)")
                if number.isMultiple(of: 5) {
                    try await test.run(
                        """
                        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name LIKE 'chat-1/write%'
                        """)
                }
                // An answer of whatever kind; what is not acknowledged is sent again under its id.
                while acknowledged["\(number)"] == nil {
                    let frame = try Frame(try await one.socket.nextText())
                    if frame.type == "ack" { acknowledged[frame.string("id")!] = frame.int("seq") }
                    if frame.type == "error" { one.send(1, "\(number)", "m\(number)") }
                }
            }
            let rows = try await test.run("SELECT client_id, seq FROM messages ORDER BY seq")
            #expect(rows.map { Int64($0[1]!)! } == Array(1...80))
            #expect(Dictionary(uniqueKeysWithValues: rows.map { ($0[0]!, Int64($0[1]!)!) }) == acknowledged)
            try await two.until(room: 1, seq: 80)
            #expect(two.seqs(1) == Array(1...80))
        }
    }

    @Test("who is too far behind is told to start over, and goes on from there; who claims the future too")
    func reset() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]], limits: { $0.resumeMessagesMax = 10 }) {
            instances, _ in
            let one = try await instances[0].client(user: 1)
            try await write(one, 12)
            for claim in [1, 99] {
                let two = try await instances[0].client(user: 2, resume: [1: Int64(claim)])
                #expect(try await two.next("reset").int("last_seq") == 12)
                #expect(two.messages.isEmpty)
            }
            let near = try await instances[0].client(user: 2, resume: [1: 2])
            try await near.until(room: 1, seq: 12)
            one.send(1, "more", "more")
            try await near.until(room: 1, seq: 13)
            #expect(near.seqs(1) == Array(3...13))
        }
    }

    @Test("who takes what it missed slowly gets all of it, in order, with what comes meanwhile")
    func slowResume() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2], [1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let body = String(repeating: "x", count: 60_000)
            for number in 1...200 {
                one.send(1, "\(number)", body)
                _ = try await one.next("ack")
            }
            let two = try await ChatClient(port: instances[0].port)
            two.socket.pauseReading()
            // What is said meanwhile may be committed before these rooms are read: it resumes both.
            two.hello(Instance.token(user: 2), resume: [1: 0, 2: 0])
            one.send(2, "live", "live")
            try await one.until(room: 2, seq: 1)
            two.socket.resumeReading()
            try await two.until(room: 1, seq: 200)
            // The rooms are two: either may be the last.
            try await two.until(room: 2, seq: 1)
            #expect(two.seqs(1) == Array(1...200))
            #expect(two.seqs(2) == [1])
        }
    }
}

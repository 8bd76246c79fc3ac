import Core
import CorePostgres
import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("The chat over real sockets and rows")
struct ChatTests {
    @Test("a message is acknowledged and reaches every member on every instance, in order, once")
    func crossInstance() async throws {
        try await withInstances(users: 3, rooms: [[1, 2], [1, 3]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let other = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            let three = try await instances[1].client(user: 3)
            #expect(one.ready?.int("user") == 1 && one.ready?.string("instance") == "chat-1")
            #expect(one.ready?.list("rooms").count == 2)
            for number in 1...20 { one.send(1, "a\(number)", "m\(number)") }
            for number in 1...20 {
                let ack = try await one.next("ack")
                #expect(ack.string("id") == "a\(number)" && ack.int("seq") == Int64(number))
            }
            for client in [one, other, two] {
                try await client.until(room: 1, seq: 20)
                #expect(client.messages.map(\.body) == (1...20).map { "m\($0)" })
            }
            two.send(1, "b", "answer")
            try await one.until(room: 1, seq: 21)
            try await three.ping()
            #expect(three.messages.isEmpty)
        }
    }

    @Test("a send repeated by its id gets its first number, on another instance and after a reconnect too")
    func duplicate() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, test in
            let one = try await instances[0].client(user: 1)
            one.send(1, "same", "hello")
            let first = try await one.next("ack")
            #expect(first.int("seq") == 1 && first.string("at") != nil)
            let again = try await instances[1].client(user: 1)
            again.send(1, "same", "hello")
            let second = try await again.next("ack")
            #expect(second.int("seq") == 1 && second.bool("duplicate"))
            #expect(try await test.run("SELECT count(*) FROM messages") == [["1"]])
        }
    }

    @Test("a stranger's room and one that does not exist are refused alike, and nothing is stored")
    func strangers() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2]]) { instances, test in
            let three = try await instances[0].client(user: 3)
            #expect(three.ready?.list("rooms").isEmpty == true)
            var answers: [Int: [String]] = [:]
            for room in [1, 999] {
                three.send(room, "x", "let me in")
                let send = try await three.next("error")
                three.socket.send(#"{"type":"history","room":\#(room)}"#)
                let history = try await three.next("error")
                three.socket.send(#"{"type":"join","room":\#(room)}"#)
                let join = try await three.next("error")
                three.socket.send(#"{"type":"typing","room":\#(room)}"#)
                let typing = try await three.next("error")
                three.socket.send(#"{"type":"read","room":\#(room),"seq":1}"#)
                let read = try await three.next("error")
                for frame in [send, history, join, typing, read] { #expect(frame.string("code") == "forbidden") }
                answers[room] = [send, history, join, typing, read].map { $0.string("message") ?? "" }
            }
            #expect(answers[1] == answers[999])
            #expect(try await test.run("SELECT count(*) FROM messages") == [["0"]])
            #expect(try await test.run("SELECT last_read_seq FROM room_members ORDER BY 1") == [["0"], ["0"]])
        }
    }

    @Test("fifty who send at once on two instances make fifty rows, which all see in one order")
    func concurrent() async throws {
        let users = Array(1...50)
        try await withInstances(users: 50, rooms: [users]) { instances, test in
            var clients: [ChatClient] = []
            for user in users { clients.append(try await instances[user % 2].client(user: user)) }
            for (index, client) in clients.enumerated() { client.send(1, "id", "from \(index + 1)") }
            for client in clients { try await client.until(room: 1, seq: 50) }
            let table = try await test.run("SELECT body FROM messages ORDER BY seq").map { $0[0]! }
            #expect(Set(table).count == 50)
            for client in clients {
                #expect(client.seqs(1) == Array(1...50))
                #expect(client.messages.map(\.body) == table)
            }
        }
    }

    @Test("bodies around the limits of NOTIFY and of the chat arrive whole; one byte more is refused whole")
    func sizes() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            let bodies =
                [7_999, 8_000, 8_001, 65_536].map { String(repeating: "x", count: $0) }
                + [String(repeating: "🦆", count: 16_384), "\u{1F469}\u{200D}\u{1F680} ä ｶ"]
            for (index, body) in bodies.enumerated() {
                one.send(1, "\(index)", body)
                #expect(try await one.next("ack").int("seq") == Int64(index + 1))
            }
            try await two.until(room: 1, seq: Int64(bodies.count))
            #expect(two.messages.map(\.body) == bodies)
            one.send(1, "long", String(repeating: "🦆", count: 16_384) + "x")
            #expect(try await one.next("error").string("code") == "invalid")
            one.send(1, "", "no id")
            #expect(try await one.next("error").string("code") == "invalid")
            // Escaped to the last character it is the same body.
            one.send(1, "escaped", String(repeating: #"\u0041"#, count: 65_536))
            #expect(try await one.next("ack").int("seq") == Int64(bodies.count + 1))
            try await two.until(room: 1, seq: Int64(bodies.count + 1))
            #expect(two.messages.last?.body == String(repeating: "A", count: 65_536))
        }
    }

    @Test("what the database refuses is refused alone; the rest of its batch is acknowledged")
    func bisected() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, test in
            try await test.run("ALTER TABLE messages ADD CONSTRAINT no_bad CHECK (body <> 'bad')")
            let one = try await instances[0].client(user: 1)
            for number in 1...30 { one.send(1, "\(number)", number == 17 ? "bad" : "good") }
            for number in 1...29 { #expect(try await one.next("ack").int("seq") == Int64(number)) }
            let refused = one.passed.filter { $0.type == "error" }
            #expect(refused.map { $0.string("id") } == ["17"])
            try await one.until(room: 1, seq: 29)
            #expect(one.seqs(1) == Array(1...29))
        }
    }

    @Test("history goes back page by page; read marks reach all members on all instances")
    func historyAndMarks() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            for number in 1...25 { one.send(1, "\(number)", "m\(number)") }
            try await one.until(room: 1, seq: 25)
            let two = try await instances[1].client(user: 2)
            #expect(two.ready?.firstRoom("last_seq") == 25)
            two.socket.send(#"{"type":"history","room":1,"limit":10}"#)
            let newest = try await two.next("history")
            #expect(newest.seqs("messages") == Array(16...25) && newest.bool("more"))
            two.socket.send(#"{"type":"history","room":1,"before":3,"limit":10}"#)
            let oldest = try await two.next("history")
            #expect(oldest.seqs("messages") == [1, 2] && !oldest.bool("more"))
            two.socket.send(#"{"type":"read","room":1,"seq":20}"#)
            for client in [one, two] {
                let read = try await client.next("read")
                #expect(read.int("user") == 2 && read.int("seq") == 20 && read.int("room") == 1)
            }
            let again = try await instances[0].client(user: 2)
            #expect(again.ready?.firstRoom("last_read_seq") == 20)
        }
    }

    @Test("typing and presence go to those who watch the room")
    func typing() async throws {
        try await withInstances(users: 3, rooms: [[1, 2, 3]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            one.socket.send(#"{"type":"join","room":1}"#)
            #expect(try await one.next("joined").ints("online") == [1])
            let two = try await instances[0].client(user: 2)
            let online = try await one.next("presence")
            #expect(online.int("user") == 2 && online.bool("online"))
            let three = try await instances[1].client(user: 3)
            for (client, user) in [(two, 2), (three, 3)] {
                client.socket.send(#"{"type":"typing","room":1}"#)
                #expect(try await one.next("typing").int("user") == Int64(user))
            }
            two.socket.cut()
            let offline = try await one.next("presence")
            #expect(offline.int("user") == 2 && !offline.bool("online"))
        }
    }

    @Test("a user with many rooms greets in a constant number of statements")
    func helloStatements() async throws {
        let rooms = Array(repeating: [1, 2], count: 200)
        try await withInstances(["chat-1"], users: 2, rooms: rooms, limits: { $0.pollMilliseconds = 600_000 }) {
            instances, _ in
            let before = instances[0].db.statementsExecuted
            let one = try await instances[0].client(user: 1)
            #expect(one.ready?.list("rooms").count == 200)
            one.send(200, "x", "last")
            try await one.until(room: 200, seq: 1)
            // The rooms, what came meanwhile, the three of the send; the guard of sessions polls besides.
            #expect(instances[0].db.statementsExecuted - before <= 10)
        }
    }
}

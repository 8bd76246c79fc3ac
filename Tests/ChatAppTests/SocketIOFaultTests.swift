import Core
import CorePostgres
import Foundation
import TestSupport
import Testing

@testable import ChatApp

/// The faults of the tutorial's server, contracts/01 §6, of which none may be here.
@Suite("Faults 1 to 5 of the job board's Socket.IO server")
struct SocketIOFaultTests {
    @Test("1: two pairs of people: nobody is shown what others say, and nobody's end ends it for the rest")
    func strangers() async throws {
        try await withInstances(users: 5, rooms: [[1, 2], [3, 4]]) { instances, _ in
            var clients: [SocketIOClient] = []
            for user in 1...5 { clients.append(try await instances[user % 2].socketIO(user: user)) }
            for (index, client) in clients.enumerated() {
                let rooms = try await client.messages().payload.map(\.room)
                #expect(rooms == (index == 4 ? [] : [index < 2 ? "rep_1_jane" : "rep_2_jane"]))
            }
            for client in clients[..<2] { client.join("rep_1_jane") }
            for client in clients[2..<4] { client.join("rep_2_jane") }
            // The one who connected last leaves: in the tutorial nobody was told anything any more.
            clients[4].socket.cut()
            for number in 1...10 {
                clients[0].send("rep_1_jane", "first \(number)")
                clients[2].send("rep_2_jane", "second \(number)")
            }
            for client in clients[..<2] {
                try await client.room(endingWith: "first 10")
                try await client.messages(with: "first 10")
            }
            for client in clients[2..<4] {
                try await client.room(endingWith: "second 10")
                try await client.messages(with: "second 10")
            }
            for (index, client) in clients[..<4].enumerated() {
                try await client.settle()
                let foreign = index < 2 ? ["second", "rep_2_jane"] : ["first", "rep_1_jane"]
                #expect(!client.events.contains { event in foreign.contains { event.text.contains($0) } })
            }
        }
    }

    @Test("2: a wrong, expired, foreign or missing token, a blocked or deleted user: refused at once, with a reason")
    func tokens() async throws {
        try await withInstances(["chat-1"], users: 4, rooms: [[1, 2]]) { instances, test in
            try await test.run("UPDATE users SET blocked = true WHERE id = 3; DELETE FROM users WHERE id = 4")
            try await PostgresSessions(db: instances[0].db).end(Session.ID(2), user: User.ID(2))
            try await instances[0].guardian.refresh()
            let good = Instance.token(user: 1)
            let tokens = [
                nil, "", "x.y.z", String(good.dropLast(4)), "Bearer " + good, Instance.token(user: 1, seconds: -1),
                Instance.token(user: 2), Instance.token(user: 3), Instance.token(user: 4), Instance.token(user: 99),
                String(repeating: "a", count: 5_000),
            ]
            for token in tokens {
                let client = try await SocketIOClient(port: instances[0].port)
                let start = ContinuousClock.now
                client.connect(token)
                #expect(try await client.refusal() == "Not authorized", "\(token ?? "none")")
                #expect(ContinuousClock.now - start < .seconds(30), "at once, and not when the time is over")
                // The session is there, and a right token is taken.
                client.connect(good)
                _ = try await client.messages()
            }
            for auth in ["{}", #"{"token":7}"#, #"{"token":null}"#] {
                let client = try await SocketIOClient(port: instances[0].port)
                client.socket.send("40" + auth)
                #expect(try await client.refusal() == "Not authorized")
            }
        }
    }

    @Test("2: when sessions or rooms cannot be read, that is said and not left hanging")
    func away() async throws {
        let watched = WatchedRooms()
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]], repository: watched.watch) { instances, _ in
            let one = try await instances[0].socketIO(user: 1)
            watched.isAway = true
            let two = try await SocketIOClient(port: instances[0].port)
            two.connect(Instance.token(user: 2))
            #expect(try await two.refusal() == "The service is not available for the moment.")
            watched.isAway = false
            try await eventually { (try? await instances[0].socketIO(user: 2)) != nil }
            two.connect(Instance.token(user: 2))
            _ = try await two.messages()
            try await one.settle()
        }
    }

    @Test("3: a room of others can be neither read nor written, and is refused as one that does not exist")
    func membership() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2], [3]]) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            one.send("rep_1_jane", "between us", ack: 1)
            _ = try await one.acknowledgement(1)
            let three = try await instances[0].socketIO(user: 3)
            _ = try await three.messages()
            for (number, room) in ["rep_1_jane", "rep_99_jane", "", "nonsense", "rep_2_jim", "rep_2"].enumerated() {
                three.join(room, ack: 10 + number)
                #expect(try await three.acknowledgement(10 + number) == #"[{"error":"Not your room."}]"#)
                three.send(room, "let me in", ack: 20 + number)
                #expect(try await three.acknowledgement(20 + number) == #"[{"error":"Not your room."}]"#)
                // Without a wish for an answer there is an event, which the app does not know.
                three.join(room)
                let event = try await three.event("room_error")
                #expect(event.text == #"{"room":"\#(room)","message":"Not your room."}"#)
            }
            one.send("rep_1_jane", "still between us", ack: 2)
            _ = try await one.acknowledgement(2)
            try await three.settle()
            #expect(!three.events.contains { $0.text.contains("between us") })
            #expect(try await test.run("SELECT DISTINCT sender_id FROM messages") == [["1"]])
        }
    }

    @Test("4: nonsense ends nobody, fifty who send at once make fifty rows, and a text has its limits")
    func sending() async throws {
        try await withInstances(users: 50, rooms: [Array(1...50), [1]]) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            for argument in ["null", "[]", "7", #""rep_1_jane""#, "{}", #"{"room":1}"#, #"{"room":"rep_1_jane"}"#] {
                one.emit("send_message", argument, ack: 1)
                #expect(try await one.acknowledgement(1).hasPrefix(#"[{"error":""#), "\(argument)")
            }
            one.socket.send(#"42["send_message"]"#)
            one.socket.send(#"42["unknown",{"a":1}]"#)
            let long = String(repeating: "🦆", count: 16_384)
            for (text, isTaken) in [("", false), ("\0", false), (long + "x", false), (long, true)] {
                one.send("rep_2_jane", text, ack: 2)
                #expect(try await one.acknowledgement(2).contains(#""ok":true"#) == isTaken)
            }
            let clients = try await withThrowingTaskGroup(of: SocketIOClient.self) { group in
                for user in 1...50 { group.addTask { try await instances[user % 2].socketIO(user: user) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            for client in clients { client.join("rep_1_jane") }
            for (number, client) in clients.enumerated() { client.send("rep_1_jane", "from \(number)", ack: 5) }
            for client in clients { #expect(try await client.acknowledgement(5).contains(#""ok":true"#)) }
            #expect(
                try await test.run("SELECT room_id, count(*), max(seq) FROM messages GROUP BY 1 ORDER BY 1")
                    == [["1", "50", "50"], ["2", "1", "1"]])
            let last = try #require(try await test.run("SELECT body FROM messages WHERE seq = 50")[0][0])
            for client in clients {
                let joined = client.events.last { $0.name == "room_messages" }
                var state = try joined?.decode(AppRoom.self)
                if state?.texts.count != 50 { state = try await client.room(endingWith: last) }
                #expect(state?.texts.map(\.id) == Array(1...50))
            }
        }
    }

    @Test("4: the same id is stored once, whoever asks again")
    func duplicate() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, test in
            let one = try await instances[0].socketIO(user: 1)
            let two = try await instances[1].socketIO(user: 1)
            one.send("rep_1_jane", "once", id: "same", ack: 1)
            #expect(try await one.acknowledgement(1) == #"[{"ok":true,"seq":1}]"#)
            two.send("rep_1_jane", "once", id: "same", ack: 1)
            #expect(try await two.acknowledgement(1) == #"[{"ok":true,"seq":1,"duplicate":true}]"#)
            #expect(try await test.run("SELECT count(*) FROM messages") == [["1"]])
        }
    }

    @Test("5: a room is found by its id and is its whole name, whatever its people are called now")
    func names() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2], [2, 3]]) { instances, test in
            try await test.run(
                """
                UPDATE rooms SET wire_name = 'x‐1‐jim_1_a‐b' WHERE id = 1;
                UPDATE rooms SET wire_name = 'jim_2_b' WHERE id = 2;
                UPDATE users SET username = 'renamed' WHERE id = 2
                """)
            let two = try await instances[0].socketIO(user: 2)
            #expect(Set(try await two.messages().payload.map(\.room)) == ["x‐1‐jim_1_a‐b", "jim_2_b"])
            let wrong = [
                "jim_1_b", "x_1_jim", "jim_1_a‐b", "x‐1‐jim_1_b", "jim_2_", "_2_b", "jim_02_b", "jim_2_b_",
            ]
            for room in wrong {
                two.send(room, "astray", ack: 1)
                #expect(try await two.acknowledgement(1) == #"[{"error":"Not your room."}]"#)
            }
            two.send("jim_2_b", "right", ack: 2)
            #expect(try await two.acknowledgement(2) == #"[{"ok":true,"seq":1}]"#)
            #expect(try await test.run("SELECT room_id, body FROM messages") == [["2", "right"]])
        }
    }
}

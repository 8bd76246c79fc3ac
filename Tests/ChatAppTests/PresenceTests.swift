import Core
import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("Presence over instances")
struct PresenceTests {
    /// Quick looks, so that a test sees many; nobody's lease is short.
    private static func quick(_ limits: inout ChatLimits) {
        limits.presence.lookMilliseconds = 100
        limits.presence.idleLookMilliseconds = 100
    }

    /// Watches room 1, and knows who is there.
    private func watcher(_ instance: Instance, user: Int, sees: [Int64]) async throws -> ChatClient {
        let client = try await instance.client(user: user)
        client.socket.send(#"{"type":"join","room":1}"#)
        #expect(try await client.next("joined").ints("online") == sees)
        return client
    }

    private func expect(_ client: ChatClient, _ user: Int64, online: Bool) async throws {
        let frame = try await client.next("presence")
        #expect(frame.int("user") == user && frame.bool("online") == online)
    }

    /// Rows of a user, as SQL has them.
    private func rows(_ test: TestDatabase, user: Int) async throws -> Int {
        try await test.run("SELECT run FROM chat_presence WHERE user_id = \(user)").count
    }

    @Test(
        "users of another instance come and go, and are online while any instance has them", arguments: [true, false])
    func instances(notify: Bool) async throws {
        try await withInstances(users: 3, rooms: [[1, 2, 3]], notify: notify) { instances, test in
            let here = try await instances[0].client(user: 2)
            try await eventually { try await rows(test, user: 2) == 1 }
            let one = try await watcher(instances[1], user: 1, sees: [1, 2])
            let there = try await instances[1].client(user: 2)
            try await eventually { try await rows(test, user: 2) == 2 }
            // Leaving one of two: nobody is told, as what comes next shows.
            here.socket.cut()
            try await eventually { try await rows(test, user: 2) == 1 }
            let three = try await instances[0].client(user: 3)
            try await expect(one, 3, online: true)
            there.socket.cut()
            try await expect(one, 2, online: false)
            three.socket.cut()
            try await expect(one, 3, online: false)
            #expect(one.passed.isEmpty)
            // And one who begins to watch now sees the same.
            _ = try await watcher(instances[0], user: 3, sees: [1, 3])
        }
    }

    @Test("closing one of two tabs keeps a user online, and so does coming back at once")
    func tabs() async throws {
        try await withInstances(users: 3, rooms: [[1, 2, 3]]) { instances, test in
            let one = try await watcher(instances[1], user: 1, sees: [1])
            let tab = try await instances[0].client(user: 2)
            try await expect(one, 2, online: true)
            let other = try await instances[0].client(user: 2)
            tab.socket.cut()
            try await other.ping()
            #expect(try await rows(test, user: 2) == 1)
            let three = try await instances[0].client(user: 3)
            try await expect(one, 3, online: true)
            other.socket.cut()
            try await expect(one, 2, online: false)
            try await three.ping()
            #expect(one.passed.isEmpty)
        }
    }

    @Test("a user by Socket.IO is online too")
    func socketIO() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let two = try await instances[1].socketIO(user: 2)
            try await expect(one, 2, online: true)
            two.socket.cut()
            try await expect(one, 2, online: false)
        }
    }

    @Test("who becomes a member of a watched room is told of, and who leaves it is not told of any more")
    func members() async throws {
        try await withInstances(users: 3, rooms: [[1, 3], [2]]) { instances, test in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let two = try await instances[0].client(user: 2)
            let elsewhere = try await instances[1].client(user: 2)
            let change = "INSERT INTO room_changes (room_ids) VALUES ('{-1}'); NOTIFY martlet_chat; COMMIT"
            try await test.run("BEGIN; INSERT INTO room_members (room_id, user_id) VALUES (1, 2); \(change)")
            try await expect(one, 2, online: true)
            try await test.run("BEGIN; DELETE FROM room_members WHERE room_id = 1 AND user_id = 2; \(change)")
            #expect(try await two.next("left").int("room") == 1)
            for client in [two, elsewhere] { client.socket.cut() }
            try await eventually { try await rows(test, user: 2) == 0 }
            let three = try await instances[1].client(user: 3)
            try await expect(one, 3, online: true)
            try await three.ping()
            #expect(one.passed.filter { $0.type == "presence" }.isEmpty)
        }
    }

    @Test("an instance that was wrongly taken for dead writes itself again, with its users")
    func wronglyBuried() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]], limits: Self.quick) { instances, test in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let two = try await instances[1].client(user: 2)
            try await expect(one, 2, online: true)
            let run = instances[1].chat.process.run
            try await test.run(
                """
                BEGIN; DELETE FROM chat_instances WHERE run = \(run); DELETE FROM chat_presence WHERE run = \(run);
                INSERT INTO presence_changes (user_ids) VALUES ('{2}'); NOTIFY martlet_chat; COMMIT
                """)
            // It may be back before anybody looked: then nobody was told, which is as well.
            try await eventually { try await rows(test, user: 2) == 1 }
            let row = try await test.run("SELECT name FROM chat_instances WHERE run = \(run)")
            #expect(row == [["chat-2"]])
            two.socket.cut()
            var last = true
            while last { last = try await one.next("presence").bool("online") }
        }
    }

    @Test("an instance that has gone without a word is deleted by another, with its users")
    func dead() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]], limits: Self.quick) { instances, test in
            try await test.run(
                """
                INSERT INTO chat_instances (name, run) VALUES ('dead', 5);
                INSERT INTO chat_presence (user_id, run) VALUES (2, 5)
                """)
            let one = try await instances[0].client(user: 1)
            one.socket.send(#"{"type":"join","room":1}"#)
            // Two looks have passed, or have not.
            if try await one.next("joined").ints("online") == [1, 2] { try await expect(one, 2, online: false) }
            let names = try await test.run("SELECT name FROM chat_instances ORDER BY name")
            #expect(names == [["chat-1"], ["chat-2"]])
        }
    }

    @Test("who has another's name shows nobody as online until the name is free")
    func replaced() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]], limits: Self.quick) { instances, test in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let two = try await instances[1].client(user: 2)
            try await expect(one, 2, online: true)
            let second = try await Instance("chat-2", test, limits: Self.quick)
            try await expect(one, 2, online: false)
            await second.stop()
            try await expect(one, 2, online: true)
            try await two.ping()
        }
    }

    @Test("while the database is away nobody is told anything, and afterwards what has changed")
    func databaseAway() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2, 3]], limits: Self.quick) { instances, test in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let database = WatchedPresence()
            let other = try await Instance("chat-2", test, limits: Self.quick, presence: database.watch)
            let two = try await other.client(user: 2)
            try await expect(one, 2, online: true)
            database.isAway = true
            let three = try await other.client(user: 3)
            two.socket.cut()
            // It has tried to write, and the looks try again.
            try await eventually { database.refused > 5 }
            three.socket.send(#"{"type":"join","room":1}"#)
            #expect(try await three.next("error").string("code") == "unavailable")
            #expect(try await rows(test, user: 2) == 1)
            #expect(try await rows(test, user: 3) == 0)
            database.isAway = false
            var told: Set<Int64> = []
            while told.count < 2 {
                let frame = try await one.next("presence")
                let user = try #require(frame.int("user"))
                #expect(frame.bool("online") == (user == 3) && told.insert(user).inserted)
            }
            three.socket.send(#"{"type":"join","room":1}"#)
            #expect(try await three.next("joined").ints("online") == [1, 3])
            await other.stop()
        }
    }

    /// Waits for some more looks: most of what a quick instance asks is one.
    private func looks(_ instance: Instance) async throws {
        let statements = instance.db.statementsExecuted
        try await eventually { instance.db.statementsExecuted > statements + 40 }
    }

    @Test("instances that live are looked at and not written to")
    func quiet() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]], limits: Self.quick) { instances, test in
            let one = try await watcher(instances[0], user: 1, sees: [1])
            let locks = """
                SELECT FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
                WHERE locktype = 'advisory' AND classid = \(0x6368_6174) AND granted
                """
            try await eventually { try await test.run(locks).count == 2 }
            // A look that came before the lock has lengthened the lease; one that comes after it does not.
            for instance in instances { try await looks(instance) }
            try await test.run("UPDATE chat_instances SET lease_until = now() - interval '1 second'")
            // The leases have run out, and the locks are what counts.
            let state = "SELECT name, run, xmin, ctid, lease_until <= now() FROM chat_instances ORDER BY name"
            let before = try await test.run(state)
            for instance in instances { try await looks(instance) }
            #expect(before.count == 2 && before.allSatisfy { $0[4] == "t" })
            #expect(try await test.run(state) == before)
            #expect(try await test.run("SELECT user_ids FROM presence_changes") == [["{1}"]])
            try await one.ping()
            #expect(one.passed.isEmpty)
        }
    }

    @Test("many who come and go together are written together")
    func crowd() async throws {
        let everybody = Array(1...60)
        try await withInstances(users: 60, rooms: [everybody]) { instances, test in
            let began = ContinuousClock.now
            let clients = try await withThrowingTaskGroup(of: ChatClient.self) { group in
                for user in everybody.dropFirst() {
                    group.addTask { try await instances[0].client(user: user) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let count = "SELECT count(*) FROM chat_presence"
            try await eventually { try await test.run(count) == [["59"]] }
            let one = try await watcher(instances[1], user: 1, sees: everybody.map(Int64.init))
            for client in clients { client.socket.cut() }
            var gone: Set<Int64> = []
            while gone.count < 59 {
                let frame = try await one.next("presence")
                #expect(!frame.bool("online") && gone.insert(frame.int("user") ?? 0).inserted)
            }
            // One for the first who came and for the first who left, the rest in the quarters of a second that it took,
            // and the one who watches.
            let writes = try await test.run("SELECT user_ids FROM presence_changes").count
            #expect(Double(writes) <= 4 + (ContinuousClock.now - began) / .milliseconds(250))
        }
    }
}

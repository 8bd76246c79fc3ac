import Core
import CorePostgres
import Postgres
import TestSupport
import Testing

@Suite("Presence in PostgreSQL")
struct PresenceTests {
    private let one = ChatProcess(name: "chat-1", run: 11, internalAddress: "127.0.0.1:1")
    private let two = ChatProcess(name: "chat-2", run: 22)

    private func users(_ ids: Int64...) -> [User.ID] { ids.map { User.ID($0) } }

    @Test("processes are listed while they run; a new one of a name takes it, one that comes back does not")
    func processes() async throws {
        try await withTestDatabase { db in
            let presence = PostgresPresence(db: db)
            let directory = PostgresChatInstances(db: db)
            #expect(try await presence.start(one, lease: 60, takesName: true, notify: nil))
            #expect(try await presence.start(two, lease: 60, takesName: true, notify: nil))
            #expect(try await presence.write(one, online: users(7), offline: [], lease: 60, notify: nil))
            let next = ChatProcess(name: "chat-1", run: 12, internalAddress: "127.0.0.1:2")
            #expect(try await !presence.start(next, lease: 60, takesName: false, notify: nil))
            #expect(try await presence.online(among: users(7)) == [User.ID(7)])
            #expect(try await presence.start(next, lease: 60, takesName: true, notify: nil))
            #expect(try await directory.all().map(\.internalAddress) == ["127.0.0.1:2", ""])
            // Its users went with the former one, and it finds that it has no row.
            #expect(try await presence.online(among: users(7)).isEmpty)
            #expect(try await !presence.write(one, online: users(7), offline: [], lease: 60, notify: nil))
            #expect(try await presence.online(among: users(7)).isEmpty)
            // The former one's end is not the other's.
            try await presence.stop(one, notify: nil)
            #expect(try await presence.look().map(\.run) == [12, 22])
            try await presence.stop(next, notify: nil)
            #expect(try await directory.all().map(\.name) == ["chat-2"])
        }
    }

    @Test("a user is online while one process has them, and what changed is noted when it did")
    func writes() async throws {
        try await withTestDatabase { db, test in
            let presence = PostgresPresence(db: db)
            for process in [one, two] {
                #expect(try await presence.start(process, lease: 60, takesName: true, notify: nil))
            }
            let bound = try await presence.changes(since: .max).bound
            #expect(try await presence.write(one, online: users(7, 8), offline: [], lease: 60, notify: nil))
            #expect(try await presence.write(two, online: users(7), offline: users(9), lease: 60, notify: nil))
            #expect(try await presence.online(among: users(7, 8, 9)) == Set(users(7, 8)))
            #expect(try await presence.write(one, online: users(8), offline: users(7), lease: 60, notify: nil))
            #expect(try await presence.online(among: users(7)) == Set(users(7)))
            #expect(try await presence.write(two, online: [], offline: users(7), lease: 60, notify: nil))
            #expect(try await presence.online(among: users(7, 8)) == Set(users(8)))
            // Written again, nothing changes, and nothing is noted.
            #expect(try await presence.write(two, online: [], offline: users(7), lease: 60, notify: nil))
            #expect(
                try await test.run("SELECT user_ids FROM presence_changes ORDER BY tx").map { $0[0] }
                    == ["{7,8}", "{7}", "{7}", "{7}"])
            let changes = try await presence.changes(since: bound)
            #expect(Set(changes.users) == Set(users(7, 8)) && changes.isWhole && changes.bound >= bound)
            // Others' transactions on this server may hold the bound back for a moment.
            try await eventually {
                try await presence.changes(since: presence.changes(since: .max).bound).users.isEmpty
            }
        }
    }

    @Test("a process lives by its lock, or by its lease; who is dead is buried with its users, once")
    func lives() async throws {
        try await withTestDatabase { db, _ in
            let presence = PostgresPresence(db: db)
            for process in [one, two] {
                #expect(try await presence.start(process, lease: 60, takesName: true, notify: nil))
                #expect(try await presence.write(process, online: users(7), offline: [], lease: 0, notify: nil))
            }
            let listener = try await db.listen(
                ["martlet_chat"], advisoryLock: PostgresPresence.lockKey(of: one), onWake: { _ in }, onReconnect: {})
            var states = try await presence.look()
            #expect(states.map(\.name) == ["chat-2", "chat-1"] && states.map(\.isLocked) == [false, true])
            #expect(states.map(\.isAlive) == [false, true])
            #expect(try await presence.bury([11, 22, 33], notify: nil) == 1)
            #expect(try await presence.bury([22], notify: nil) == 0)
            #expect(try await presence.online(among: users(7)) == Set(users(7)))
            await listener.stop()
            try await eventually { try await !presence.look()[0].isAlive }
            try await presence.renew(one, lease: 60)
            states = try await presence.look()
            #expect(states.count == 1 && states[0].isAlive && states[0].leaseSeconds > 50)
            #expect(try await presence.bury([11], notify: nil) == 0)
            try await presence.renew(one, lease: 0)
            #expect(try await presence.bury([11], notify: nil) == 1)
            #expect(try await presence.online(among: users(7)).isEmpty)
        }
    }

    @Test("a batch wakes the others once when somebody came or went, and nobody when not, or when told so")
    func wakes() async throws {
        try await withTestDatabase { db in
            let presence = PostgresPresence(db: db)
            let (stream, continuation) = AsyncStream<String>.makeStream()
            let listener = try await db.listen(
                ["martlet_chat"], onWake: { continuation.yield($0.payload) }, onReconnect: {})
            #expect(try await presence.start(one, lease: 0, takesName: true, notify: "start"))
            let many = (1...2_000).map { User.ID(Int64($0)) }
            for hint in ["came", "again"] {
                #expect(try await presence.write(one, online: many, offline: [], lease: 0, notify: hint))
            }
            let silent = PostgresPresence(db: db, notify: false)
            #expect(try await silent.write(one, online: [], offline: users(1), lease: 0, notify: "silent"))
            #expect(try await presence.bury([11], notify: "buried") == 1)
            try await presence.stop(one, notify: "stopped")
            try await PostgresRooms(db: db).announce("end")
            var seen: [String] = []
            for await payload in stream {
                seen.append(payload)
                if payload == "end" { break }
            }
            #expect(seen == ["came", "buried", "end"])
            await listener.stop()
            // Rows of a bounded size, and everybody in them.
            let changes = try await presence.changes(since: 0)
            #expect(Set(changes.users) == Set(many))
        }
    }

    @Test("users that a process writes while others bury it are gone with it")
    func race() async throws {
        try await withTestDatabase { db, test in
            let presence = PostgresPresence(db: db)
            for round in Int32(1)...30 {
                let process = ChatProcess(name: "chat-\(round)", run: round)
                #expect(try await presence.start(process, lease: 0, takesName: true, notify: nil))
                async let written = presence.write(process, online: users(7), offline: [], lease: 0, notify: nil)
                async let buried = presence.bury([round], notify: nil)
                _ = try await (written, buried)
                if try await presence.bury([round], notify: nil) == 0 {
                    #expect(try await test.run("SELECT user_id FROM chat_presence") == [])
                }
                #expect(try await presence.online(among: users(7)).isEmpty)
            }
        }
    }
}

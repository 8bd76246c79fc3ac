import EventLoop
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite("LISTEN")
struct ListenerTests {
    @Test("notifications arrive with channel, payload and sender, and none after stop")
    func delivers() async throws {
        try await withTestDatabase { db in
            let wakes = Signal<PostgresNotification>()
            let listener = try await db.listen(
                ["martlet_chat", "odd \"name\""], onWake: { wakes.send($0) }, onReconnect: {})
            let sender = try await db.write.first("SELECT pg_backend_pid(), pg_notify('martlet_chat', \("é 1"))") {
                try $0.get(0, as: Int32.self)
            }
            try await db.write.execute("SELECT pg_notify('odd \"name\"', '')")
            try await db.write.execute("SELECT pg_notify('other', 'x')")
            let seen = try await wakes.wait(count: 2)
            #expect(Set(seen.map(\.channel)) == ["martlet_chat", "odd \"name\""])
            let first = seen.first { $0.channel == "martlet_chat" }
            #expect(first?.payload == "é 1" && first?.processID == sender)
            await listener.stop()
            try await db.write.execute("SELECT pg_notify('martlet_chat', 'late')")
            #expect(await listener.processID == nil)
            #expect(wakes.values.count == 2)
        }
    }

    @Test("a listener that is killed twenty times loses nothing that a catch-up does not find")
    func survives() async throws {
        try await withTestDatabase(configure: { $0.reconnectFirstMilliseconds = 1 }) { db, test in
            try await db.write.execute("CREATE TABLE t (id int8 PRIMARY KEY)")
            let found = Mutex<Set<Int>>([])
            let progress = Signal<Int>()
            let reconnects = Signal<Void>()
            let wakes = Signal<Void>()
            // A wake-up or a reconnection makes the reader look at the rows: what any user of LISTEN has to do.
            let (looks, look) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let reader = Task {
                for await _ in looks {
                    let ids = try await db.short.rows("SELECT id FROM t") { try $0.get(0, as: Int.self) }
                    let count = found.withLock { found in
                        found.formUnion(ids)
                        return found.count
                    }
                    progress.send(count)
                }
            }
            let listener = try await db.listen(
                ["martlet_work"],
                onWake: { _ in
                    wakes.send(())
                    look.yield()
                },
                onReconnect: {
                    reconnects.send(())
                    look.yield()
                })
            for round in 0..<20 {
                try await db.write.batch([
                    "INSERT INTO t VALUES (\(round * 2))", "SELECT pg_notify('martlet_work', '')",
                ])
                // The server lists one that has been ended until its process is gone, so it is ended by its number.
                try await test.terminate(process: String(try #require(await listener.processID)))
                try await db.write.batch([
                    "INSERT INTO t VALUES (\(round * 2 + 1))", "SELECT pg_notify('martlet_work', '')",
                ])
                try await reconnects.wait(count: round + 1)
            }
            try await progress.wait { $0.last == 40 }
            #expect(found.withLock { $0 } == Set(0..<40))
            #expect(wakes.values.count <= 40)
            await listener.stop()
            look.finish()
            try await reader.value
        }
    }

    @Test("an advisory lock lives and dies with the connection")
    func lock() async throws {
        try await withTestDatabase { db, test in
            let holders: SQL = """
                SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
                WHERE datname = current_database() AND locktype = 'advisory' AND objid = 4242 AND granted
                """
            func held() async throws -> Int? { try await db.short.first(holders) { try $0.get(0, as: Int.self) } }
            let listener = try await db.listen(["a"], advisoryLock: 4242, onWake: { _ in }, onReconnect: {})
            #expect(try await held() == 1)
            // Its own next connection would not wait for it.
            let next = try await db.listen(["a"], advisoryLock: 4242, onWake: { _ in }, onReconnect: {})
            #expect(try await held() == 2)
            await next.stop()
            try await db.session { session in
                try await session.execute("SELECT pg_advisory_lock(\(4343))")
                await #expect(throws: PostgresUnavailable.notReachable) {
                    var impatient = try test.configuration()
                    impatient.acquireMilliseconds = 300
                    let other = Database(impatient, loops: test.loops)
                    defer { Task { await other.close() } }
                    return try await other.listen(["a"], advisoryLock: 4343, onWake: { _ in }, onReconnect: {})
                }
            }
            await listener.stop()
            try await eventually { try await held() == 0 }
        }
    }

    @Test(
        "names that are no channels, and too many of them, are refused",
        arguments: [
            [], [""], [String(repeating: "x", count: 64)], ["a\0"], (0...8).map { "c\($0)" },
        ])
    func names(channels: [String]) async throws {
        try await withTestDatabase { db in
            await #expect(throws: PostgresMisuse.channelName) {
                try await db.listen(channels, onWake: { _ in }, onReconnect: {})
            }
        }
    }

    @Test("an idle listener writes no WAL and runs no query")
    func idle() async throws {
        try await withTestDatabase { db, test in
            let listener = try await db.listen(["a"], onWake: { _ in }, onReconnect: {})
            let query = """
                SELECT state || ' ' || query FROM pg_stat_activity
                WHERE application_name = 'martlet-test/listen' AND datname = current_database()
                """
            #expect(try await test.run(query) == [["idle LISTEN \"a\";"]])
            await listener.stop()
        }
    }
}

import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Postgres

@Suite("Lost connections")
struct LossTests {
    @Test("a read under way when the connection dies is asked again, and its caller notices nothing")
    func readAgain() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            let roadblock = try await Roadblock.put(db)
            let reading = Task {
                try await db.short.first("SELECT pg_advisory_xact_lock_shared(1), 7") { try $0.get(1, as: Int.self) }
            }
            let first = try await test.waitForBlocked()
            try await test.terminate(process: first)
            try await test.waitForBlocked(besides: first)
            try await roadblock.lift()
            #expect(try await reading.value == 7)
        }
    }

    @Test("a read whose connection dies a second time is given up")
    func readTwice() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            let roadblock = try await Roadblock.put(db)
            let reading = Task { try await db.long.execute("SELECT pg_advisory_xact_lock_shared(1)") }
            let first = try await test.waitForBlocked()
            try await test.terminate(process: first)
            let second = try await test.waitForBlocked(besides: first)
            try await test.terminate(process: second)
            await #expect(throws: PostgresUnavailable.connectionLost) { try await reading.value }
            try await roadblock.lift()
        }
    }

    @Test("a write under way when the connection dies is of unknown outcome, and is not repeated")
    func writeUnknown() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            try await db.write.execute("CREATE TABLE t (id int)")
            let roadblock = try await Roadblock.put(db)
            let writing = Task {
                try await db.write.execute("INSERT INTO t SELECT 1 FROM pg_advisory_xact_lock_shared(1)")
            }
            try await test.terminate(process: try await test.waitForBlocked())
            await #expect(throws: PostgresUnavailable.outcomeUnknown) { try await writing.value }
            try await roadblock.lift()
            #expect(try await db.write.execute("INSERT INTO t VALUES (2)") == 1)
            #expect(try await db.short.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) } == 1)
        }
    }

    @Test("reads go on through twenty terminations, none of them lost")
    func manyTerminations() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            let over = Signal<Void>()
            let answered = Signal<Int>()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<4 {
                    group.addTask {
                        while over.values.isEmpty {
                            do {
                                let back = try await db.short.first("SELECT \(worker)::int") {
                                    try $0.get(0, as: Int.self)
                                }
                                #expect(back == worker)
                                answered.send(worker)
                            } catch PostgresUnavailable.connectionLost {
                                // Killed twice in a row: told, not hidden.
                            }
                        }
                    }
                }
                for _ in 0..<20 {
                    let before = answered.values.count
                    try await test.terminate("short")
                    // Each of them goes on.
                    try await answered.wait { Set($0[before...]).count == 4 }
                }
                over.send(())
                try await group.waitForAll()
            }
        }
    }

    @Test("without a server statements give up in time, and the log says why, without the password")
    func notReachable() async throws {
        let loops = LoopGroup(count: 1)
        let events = Signal<PostgresEvent>()
        // Port 1 is taken by nobody.
        var configuration = try PostgresConfiguration(url: "postgres://someone:secret@127.0.0.1:1/nothing")
        configuration.acquireMilliseconds = 300
        configuration.reconnectFirstMilliseconds = 20
        configuration.reconnectMilliseconds = 40
        let db = Database(configuration, loops: loops) { events.send($0) }
        // Tried as often as the time allows; a busy machine may need more of it.
        try await eventually {
            await #expect(throws: PostgresUnavailable.notReachable) { try await db.short.execute("SELECT 1") }
            return events.values.filter { $0.lane == "short" }.count >= 3
        }
        await #expect(throws: PostgresUnavailable.notReachable) { try await db.write.execute("SELECT 1") }
        await #expect(throws: PostgresUnavailable.notReachable) {
            try await db.transaction { try await $0.execute("X") }
        }
        await #expect(throws: PostgresUnavailable.notReachable) {
            try await db.listen(["a"], onWake: { _ in }, onReconnect: {})
        }
        let seen = events.values
        #expect(seen.contains { $0.kind == .connectFailed && $0.lane == "short" })
        // With pauses: half of the first at least.
        #expect(seen.allSatisfy { !$0.reason.contains("secret") && (10...40).contains($0.retryMilliseconds ?? 0) })
        await db.close()
        await loops.stop()
    }

    @Test("a unix socket does as well as an address")
    func unixSocket() async throws {
        try await withTestDatabase { _, test in
            let folders = try await test.run("SHOW unix_socket_directories")[0][0] ?? ""
            let port = try await test.run("SHOW port")[0][0] ?? ""
            let folder = String(folders.prefix { $0 != "," })
            // A server without a socket, or with one in a folder of another user, cannot be asked this way.
            guard access("\(folder)/.s.PGSQL.\(port)", W_OK) == 0 else { return }
            let configuration = try PostgresConfiguration(
                url: "host=\(folder) port=\(port) user=postgres dbname=\(test.name)")
            #expect(!ConnectionPlan(configuration).needsResolving)
            let db = Database(configuration, loops: test.loops)
            let address = try await db.long.first("SELECT inet_client_addr()::text") { try $0.get(0, as: String?.self) }
            #expect(address == .some(nil))
            await db.close()
        }
    }

    @Test("a host's name is looked up off the loop; one that is not known is not reachable")
    func names() async throws {
        try await withTestDatabase { _, test in
            let named = test.url.replacing("127.0.0.1", with: "localhost")
            var configuration = try PostgresConfiguration(url: named)
            #expect(ConnectionPlan(configuration).needsResolving)
            let db = Database(configuration, loops: test.loops)
            #expect(try await db.long.execute("SELECT 1") == 1)
            await db.close()
            configuration = try PostgresConfiguration(url: "postgres://nobody@no-such-host.invalid/x")
            configuration.acquireMilliseconds = 300
            let nowhere = Database(configuration, loops: test.loops)
            await #expect(throws: PostgresUnavailable.notReachable) { try await nowhere.long.execute("SELECT 1") }
            await nowhere.close()
        }
    }

    @Test("a server that takes connections and says nothing is passed by for the next one, and then not asked first")
    func silentServer() async throws {
        try await withTestDatabase { _, test in
            let silence = try SilentServer()
            let own = try #require(URL(string: test.url))
            let other = "\(own.host ?? ""):\(own.port ?? 5432)"
            let url = test.url.replacing(other, with: "127.0.0.1:\(silence.port),\(other)")
            var configuration = try PostgresConfiguration(url: url + "?target_session_attrs=read-write")
            // Half of it is the silent one's. The other one needs a moment, and on a busy machine more than that.
            configuration.connectMilliseconds = 20_000
            configuration.acquireMilliseconds = 90_000
            let events = Signal<PostgresEvent>()
            let db = Database(configuration, loops: test.loops) { events.send($0) }
            #expect(try await db.write.execute("SELECT 1") == 1)
            #expect(try await db.short.execute("SELECT 1") == 1)
            let failures = events.values.filter { $0.kind == .connectFailed }
            #expect(failures.count == 1 && failures.first?.lane == "write", "the short lane begins with the other one")
            await db.close()
        }
    }
}

/// The system takes connections for it, and nobody ever reads from them.
private final class SilentServer: Sendable {
    private let handle: Int32
    let port: Int

    init() throws {
        handle = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let handle = handle
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(handle, pointer, size) == 0 && listen(handle, 8) == 0 && getsockname(handle, pointer, &size) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        try #require(isListening)
    }

    deinit { close(handle) }
}

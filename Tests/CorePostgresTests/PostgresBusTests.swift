import CorePostgres
import TestSupport
import Testing

@Suite("The bus")
struct PostgresBusTests {
    @Test("a channel is woken when listening begins, by each notification, and after the connection was lost")
    func wakes() async throws {
        try await withTestDatabase { db, test in
            let (payloads, continuation) = AsyncStream<String>.makeStream()
            let bus = PostgresBus(
                database: db, channels: ["martlet_test": { continuation.yield($0) }], pause: { _ in })
            bus.start()
            var iterator = payloads.makeAsyncIterator()
            #expect(await iterator.next() == "")
            for number in 1...3 {
                try await test.run("SELECT pg_notify('martlet_test', '\(number)')")
                #expect(await iterator.next() == "\(number)")
            }
            try await test.run(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'
                """)
            #expect(await iterator.next() == "")
            try await test.run("SELECT pg_notify('martlet_test', 'again')")
            #expect(await iterator.next() == "again")
            bus.stop()
        }
    }
}

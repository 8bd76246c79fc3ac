import EventLoop
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite("Statements")
struct DatabaseTests {
    @Test("a read gives its rows, the first of them, and how many there were")
    func read() async throws {
        try await withTestDatabase { db in
            let numbers = try await db.short.rows("SELECT n FROM generate_series(1, \(3)::int) AS n") {
                try $0.get(0, as: Int.self)
            }
            #expect(numbers == [1, 2, 3])
            #expect(try await db.long.first("SELECT 'x'::text AS t") { try $0.get("t", as: String.self) } == "x")
            #expect(try await db.short.first("SELECT 1 WHERE false") { try $0.get(0, as: Int.self) } == nil)
            #expect(try await db.short.execute("SELECT generate_series(1, 4)") == 4)
        }
    }

    @Test("a write changes what reads see, and says how many rows")
    func write() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL)")
            #expect(try await db.write.execute("INSERT INTO t VALUES (1, \("a")), (2, \("b"))") == 2)
            #expect(try await db.write.execute("UPDATE t SET name = \("c") WHERE id = \(2)") == 1)
            let names = try await db.short.rows("SELECT name FROM t ORDER BY id") { try $0.get(0, as: String.self) }
            #expect(names == ["a", "c"])
        }
    }
}

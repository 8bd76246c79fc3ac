import Foundation
import Postgres
import TestSupport
import Testing

private struct Boom: Error {}

@Suite("COPY")
struct CopyTests {
    @Test("rows with every awkward character arrive as they were")
    func escapes() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int8, body text, tags text[], raw bytea, at timestamptz)")
            let bodies: [String?] = [nil, "", "\\N", "\\.", "a\tb", "a\nb\r", "\\", "\"'", "é👩‍💻", "\u{8}\u{c}\u{b}"]
            let date = Date(timeIntervalSince1970: 1_796_119_200.5)
            let count = try await db.transaction { tx in
                try await tx.copyIn("COPY t (id, body, tags, raw, at) FROM STDIN") { copy in
                    for (number, body) in bodies.enumerated() {
                        try await copy.row(number, body, ["x,y", body, "\\"], [0, 9, 10, 92, 255] as [UInt8], date)
                    }
                }
            }
            #expect(count == bodies.count)
            let back = try await db.short.rows("SELECT body, tags, raw, at FROM t ORDER BY id") {
                (
                    try $0.get(0, as: String?.self), try $0.get(1, as: [String?].self), try $0.get(2, as: [UInt8].self),
                    try $0.get(3, as: Date.self)
                )
            }
            #expect(back.map(\.0) == bodies)
            #expect(back.map(\.1) == bodies.map { ["x,y", $0, "\\"] })
            #expect(back.allSatisfy { $0.2 == [0, 9, 10, 92, 255] && $0.3 == date })
        }
    }

    @Test("a large COPY goes through in pieces, as part of its transaction")
    func large() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int8, body text)")
            let body = String(repeating: "x", count: 1_000)
            let counts = try await db.transaction { tx in
                try await tx.execute("INSERT INTO t VALUES (-1, 'before')")
                let count = try await tx.copyIn("COPY t (id, body) FROM STDIN") { copy in
                    for number in 0..<5_000 { try await copy.row(number, body) }
                }
                let seen = try await tx.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) }
                return (count, seen)
            }
            #expect(counts.0 == 5_000 && counts.1 == 5_001)
        }
    }

    @Test("an error in the middle is the server's, and the whole transaction is undone")
    func serverError() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int8 CONSTRAINT t_id_check CHECK (id <> 5000), body text)")
            let error = await #expect(throws: PostgresError.self) {
                try await db.transaction { tx in
                    try await tx.execute("INSERT INTO t VALUES (1, 'first')")
                    return try await tx.copyIn("COPY t (id, body) FROM STDIN") { copy in
                        for number in 4_000..<8_000 { try await copy.row(number, String(repeating: "y", count: 999)) }
                    }
                }
            }
            #expect(error?.isCheckViolation == true && error?.constraint == "t_id_check")
            #expect(try await db.short.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) } == 0)
            // The connection is as good as new.
            try await db.transaction { tx in
                _ = try await tx.copyIn("COPY t FROM STDIN") { try await $0.write(Array("7\tx\n8\t\\N\n".utf8)) }
            }
            #expect(try await db.short.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) } == 2)
        }
    }

    @Test("a closure that throws, and a value with a NUL, undo it; the error is the closure's own")
    func ownError() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (body text)")
            await #expect(throws: Boom.self) {
                try await db.transaction { tx in
                    try await tx.copyIn("COPY t FROM STDIN") { copy in
                        try await copy.row("x")
                        throw Boom()
                    }
                }
            }
            await #expect(throws: PostgresEncodingError.nul) {
                try await db.transaction { tx in try await tx.copyIn("COPY t FROM STDIN") { try await $0.row("\0") } }
            }
            #expect(try await db.short.execute("SELECT 1 FROM t") == 0)
        }
    }

    @Test("what is no COPY, a wrong table and binds are refused")
    func refused() async throws {
        try await withTestDatabase { db in
            await #expect(throws: PostgresMisuse.copy) {
                try await db.transaction { try await $0.copyIn("SELECT 1") { _ in } }
            }
            await #expect(throws: PostgresMisuse.bindsNotAllowed) {
                try await db.transaction { try await $0.copyIn("COPY t FROM STDIN WHERE id = \(1)") { _ in } }
            }
            let error = await #expect(throws: PostgresError.self) {
                try await db.transaction { try await $0.copyIn("COPY nowhere FROM STDIN") { _ in } }
            }
            #expect(error?.sqlState == "42P01")
            await #expect(throws: (any Error).self) { try await db.write.execute("COPY pg_class TO STDOUT") }
            try await db.write.execute("SELECT 1")
        }
    }

    @Test("while COPY is under way its transaction takes no other statement")
    func concurrent() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (body text)")
            try await db.transaction { tx in
                _ = try await tx.copyIn("COPY t FROM STDIN") { copy in
                    try await copy.row("x")
                    await #expect(throws: PostgresMisuse.concurrentUse) { try await tx.execute("SELECT 1") }
                    await #expect(throws: PostgresMisuse.concurrentUse) {
                        try await tx.copyIn("COPY t FROM STDIN") { _ in }
                    }
                }
            }
            #expect(try await db.short.execute("SELECT 1 FROM t") == 1)
        }
    }
}

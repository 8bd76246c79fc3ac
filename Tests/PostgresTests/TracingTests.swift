import EventLoop
import TestSupport
import Testing
import Tracing

@testable import Postgres

@Suite("Traced statements")
struct StatementTracingTests {
    private static let context = TraceContext(trace: TraceID(high: 1, low: 2), span: 3, isSampled: true)

    private func withTraced(_ body: (Database) async throws -> Void) async throws -> [FinishedSpan] {
        let tracer = Tracer(sampler: Sampler(.never, share: 0), queueMax: 100, batchMax: 100)
        try await withTestDatabase { _, test in
            let loops = LoopGroup(count: 1, name: "traced")
            let database = Database(try test.configuration(), loops: loops, tracer: tracer)
            try await body(database)
            await database.close()
            await loops.stop()
        }
        return tracer.takeBatch()
    }

    @Test("a statement within a recorded span is one below it, by name and without values; another is none")
    func lanes() async throws {
        let spans = try await withTraced { db in
            _ = try await db.short.execute("SELECT id FROM users WHERE email = \("ada@example.org")")
            let off = TraceContext(trace: TraceID(high: 1, low: 2), span: 3, isSampled: false)
            try await TraceContext.$current.withValue(off) { _ = try await db.short.execute("SELECT 1") }
            try await TraceContext.$current.withValue(Self.context) {
                _ = try await db.short.execute("SELECT id FROM users WHERE email = \("ada@example.org")")
                _ = try await db.write.batch(["SELECT 1", "SELECT 2"])
                await #expect(throws: PostgresError.self) { try await db.long.execute("SELECT 1 / \(0)::int") }
            }
        }
        #expect(spans.map(\.name) == ["SELECT users", "SELECT", "SELECT"])
        #expect(spans.allSatisfy { $0.parent == 3 && $0.context.trace == Self.context.trace && $0.kind == .client })
        #expect(spans[0].attributes.contains(SpanAttribute("db.collection.name", "users")))
        #expect(spans[1].attributes.contains(SpanAttribute("db.operation.batch.size", 2)))
        #expect(spans.map(\.isError) == [false, false, true])
        #expect(spans[2].attributes.contains(SpanAttribute("db.response.status_code", "22012")))
        #expect(!"\(spans)".contains("@"))
    }

    @Test("of a transaction the statements and its end are told, and not its BEGIN")
    func transactions() async throws {
        let spans = try await withTraced { db in
            try await TraceContext.$current.withValue(Self.context) {
                try await db.transaction(lockMilliseconds: 100) { transaction in
                    try await transaction.execute("UPDATE users SET blocked = false WHERE id = \(1)")
                    try await transaction.execute("DELETE FROM users WHERE id = \(1)")
                }
                try await db.transaction { _ in }
            }
        }
        #expect(spans.map(\.name) == ["UPDATE users", "DELETE users", "COMMIT"])
    }

    @Test("a statement that could not be asked is an error in a word")
    func unavailable() async throws {
        let spans = try await withTraced { db in
            await db.close()
            await TraceContext.$current.withValue(Self.context) {
                await #expect(throws: PostgresUnavailable.closed) { try await db.write.execute("SELECT 1") }
            }
        }
        #expect(spans.map(\.attributes.last) == [SpanAttribute("error.type", "closed")])
    }

    @Test("statements are called by what they write, or else by what they read")
    func names() {
        for (statement, name) in [
            ("SELECT id, title FROM job_postings WHERE id = $1", "SELECT job_postings"), ("SELECT 1", "SELECT"),
            ("insert into t (a) values (1) ON CONFLICT DO UPDATE SET a = 1", "INSERT t"),
            ("WITH moved AS (SELECT id FROM a FOR NO KEY UPDATE) SELECT * FROM moved", "SELECT a"),
            ("WITH moved AS (UPDATE b SET c = 1 RETURNING id) SELECT * FROM moved", "UPDATE b"),
            ("WITH gone AS (\n  DELETE FROM t WHERE id = $1)\nINSERT INTO u SELECT 1", "DELETE t"),
            ("SELECT t.a FROM unnest($1::bigint[]) AS t (a) JOIN rooms r ON r.id = t.a", "SELECT"),
            ("SELECT a FROM t WHERE a IS DISTINCT FROM b", "SELECT t"), ("BEGIN", "BEGIN"), ("", ""),
            ("UPDATE", "UPDATE"),
        ] { #expect(StatementName(statement).text == name) }
    }
}

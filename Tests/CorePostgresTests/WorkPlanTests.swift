import Core
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite("The plan of a claim")
struct WorkPlanTests {
    @Test("a claim reads the beginning of a backlog by its index, also of one that nobody has analyzed")
    func unanalyzed() async throws {
        try await withTestDatabase { db, test in
            let settings: SQL = """
                SELECT string_agg(format('SET %I = %L', name, setting), '; ') FROM pg_settings
                WHERE source = 'client' AND name ~ '^(enable_|plan_|jit$)'
                """
            let lane = try #require(try await db.write.first(settings) { try $0.get(0, as: String.self) })
            let scan = try StatementScan(folder: StatementTests.folder)
            let claim = try #require(scan.statements.first { $0.text.contains("nextval('work_fence')") })
            // As after one great import: many items, and the statistics of none.
            let plan = try await test.run(
                """
                ALTER TABLE work_items SET (autovacuum_enabled = off);
                INSERT INTO work_items (kind, payload) SELECT 'prune', '{}' FROM generate_series(1, 20000);
                \(lane);
                PREPARE s AS \(claim.text);
                EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE s('worker', 60, '0', 0, '{prune}', 100)
                """
            ).compactMap { $0[0] }
            let text = plan.joined(separator: "\n")
            let read = try #require(plan.first { $0.contains("Index Scan using work_items_ready") }, "\(text)")
            #expect(read.contains("actual rows=100 "), "\(text)")
            #expect(!text.contains("Sort"), "\(text)")
        }
    }
}

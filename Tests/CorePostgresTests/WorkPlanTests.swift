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

    @Test("under a snapshot that somebody holds, a look for lost leases reads nothing of what is done before its floor")
    func heldSnapshot() async throws {
        try await withTestDatabase { db, test in
            let queue = PostgresWorkQueue(db: db, notify: false)
            let holder = try test.open()
            try await holder.transaction(isolation: .repeatableRead) { held in
                _ = try await held.first("SELECT count(*) FROM work_items") { try $0.get(0, as: Int.self) }
                try await db.write.execute(
                    "INSERT INTO work_items (kind, payload) SELECT 'prune', '{}' FROM generate_series(1, 20000)")
                let own: SQL = "WITH d AS (DELETE FROM work_items) SELECT pg_current_xact_id()"
                let last = try #require(try await db.write.first(own) { try $0.get(0, as: PostgresXID.self).value })
                let whole = try await pagesRead(test, after: WorkPosition())
                // The floor is held down by whoever writes anywhere in the cluster, as other tests do.
                var floor = WorkPosition()
                try await eventually {
                    floor = try await queue.rescue(after: WorkPosition(), upTo: .end).floor
                    return floor.tx > last
                }
                let rest = try await pagesRead(test, after: floor)
                #expect(whole > 200 && rest < 20, "\(whole) pages from the beginning, \(rest) from the floor")
            }
            await holder.close()
        }
    }

    private func pagesRead(_ test: TestDatabase, after: WorkPosition) async throws -> Int {
        let scan = try StatementScan(folder: StatementTests.folder)
        let look = try #require(scan.statements.first { $0.text.contains("pg_postmaster_start_time") })
        let plan = try await test.run(
            """
            PREPARE s AS \(look.text);
            EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
            EXECUTE s('\(after.tx)', \(after.id), '\(UInt64.max)', 0, 500, '\(after.tx)', \(after.id))
            """
        ).compactMap { $0[0] }
        let line = try #require(plan.first { $0.contains("Buffers: shared") }, "\(plan)")
        return try line.matches(of: /(?:hit|read)=(\d+)/).reduce(0) { $0 + (try #require(Int($1.1))) }
    }
}

import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

@Suite("The backlog, as metrics tell it")
struct WorkBacklogTests {
    @Test("items count by kind and state, and the oldest ready one gives its age")
    func counts() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            #expect(try await queue.backlog().isEmpty)
            for _ in 0..<3 { try await queue.enqueue(.sendMail, payload: "{}", uniqueKey: nil, runAt: nil) }
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: Date() + 3600)
            let claim = try await queue.claim(worker: "w", kinds: [.sendMail], limit: 2, after: WorkPosition())
            try await queue.fail(claim.items[0], error: "never", retryAfterSeconds: 0, final: true)
            try await db.write.execute(
                """
                UPDATE work_items SET run_at = now() - interval '90 seconds'
                WHERE leased_until IS NULL AND NOT waiting
                """
            )
            let backlog = try await queue.backlog()
            #expect(
                backlog.map { "\($0.kind) \($0.state) \($0.count)" } == [
                    "prune waiting 1", "send_mail dead 1", "send_mail leased 1", "send_mail ready 1",
                ])
            let ready = try #require(backlog.last)
            #expect(ready.oldestSeconds >= 90 && ready.oldestSeconds < 3600)
            #expect(backlog[0].oldestSeconds == 0)
        }
    }

    @Test("a flooded queue is counted to the bound, by its indexes")
    func bounded() async throws {
        try await withTestDatabase { db, test in
            try await test.run(
                """
                INSERT INTO work_items (kind, payload, waiting, run_at)
                SELECT 'prune', '{}', i > 60000, now() + (i - 60000) * interval '1 second'
                FROM generate_series(1, 120000) i;
                INSERT INTO work_dead (id, kind, payload, attempts, created_at)
                OVERRIDING SYSTEM VALUE SELECT i, 'prune', '{}', 1, now() FROM generate_series(1, 60000) i;
                ANALYZE work_items, work_dead
                """)
            let backlog = try await PostgresWorkQueue(db: db, notify: false).backlog()
            #expect(backlog.map(\.count) == [Int](repeating: WorkBacklog.countedMax, count: 3))
            #expect(backlog.map(\.state) == [.dead, .ready, .waiting])

            let scan = try StatementScan(folder: StatementTests.folder)
            let statement = try #require(scan.statements.first { $0.file == "PostgresWorkBacklog.swift" })
            let plan = try await test.run("EXPLAIN (COSTS OFF) \(statement.text)").compactMap { $0[0] }
            for index in ["work_items_ready", "work_items_waiting", "work_dead_died_at"] {
                #expect(plan.contains { $0.contains(index) }, "\(plan.joined(separator: "\n"))")
            }
            #expect(!plan.contains { $0.contains("Seq Scan") })
        }
    }
}

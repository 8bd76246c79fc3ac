import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("The alerts' ledger is pruned")
struct LedgerTests {
    private static let day: TimeInterval = 86400
    private static let kept: TimeInterval = 180 * day

    /// A time that a row can have: in whole milliseconds.
    private let now = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded())

    /// One hour's walk. Returns the rows that went; nil when there was nothing to walk.
    private func walk(_ db: Database, at time: Date) async throws -> Int? {
        let upkeep = PostgresUpkeep(db: db)
        guard let walk = try await upkeep.ledgerWalk(now: time) else { return nil }
        var rows = 0
        for _ in 0..<walk.steps {
            let gone = try #require(try await upkeep.stepLedger(walk))
            #expect(gone <= LedgerWalk.rowsMax)
            rows += gone
        }
        return rows
    }

    private func forget(_ db: Database, at time: Date) async throws {
        try await PostgresUpkeep(db: db).forgetLedger(before: time - Self.kept, now: time)
    }

    /// Moves a posting, and what was told of it, back in time.
    private func age(_ db: Database, _ posting: JobPosting.ID, to time: Date) async throws {
        try await db.write.execute(
            "UPDATE job_postings SET published_at = \(time), created_at = \(time) WHERE id = \(posting)")
        try await db.write.execute("UPDATE alert_deliveries SET created_at = \(time) WHERE posting_id = \(posting)")
    }

    /// Its company closes the posting and opens it again, and the work that this makes is done.
    private func reopen(_ world: World, _ posting: JobPosting.ID, by editor: User.ID) async throws -> Int {
        for state in [JobPosting.State.closed, .published] {
            try await world.db.write.execute("DELETE FROM work_items")
            _ = try await world.postings.update(posting, editor: editor) { present throws(AppError) in
                try JobPosting.Draft(
                    title: present.title, safeDescription: present.description, terms: present.terms, state: state)
            }
        }
        #expect(try await world.items() == [#"match_alerts {"posting_id": \#(posting)}"#])
        return try await PostgresAlerts(db: world.db).match([posting], now: .now)
    }

    @Test("what is old goes, and nobody is told of it again; the row one second younger and those that wait stay")
    func prune() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (ann, author) = (try await world.user("ann").id, try await world.user("company").id)
            _ = try await world.company("ACME", of: author)
            let alerts = PostgresAlerts(db: db)
            let search = try PostingSearch(q: "swift")
            _ = try await alerts.create(JobAlert.Draft(name: "A", search: search, cadence: .instant), owner: ann)
            let weekly = try JobAlert.Draft(name: "B", search: PostingSearch(q: "lead"), cadence: .weekly)
            _ = try await alerts.create(weekly, owner: ann)
            let old = try await world.posting("Swift Engineer", by: author).id
            let young = try await world.posting("Swift Tester", by: author).id
            let waiting = try await world.posting("Lead Baker", by: author).id
            #expect(try await alerts.match([old, young, waiting], now: .now) == 3)
            let limit = now - Self.kept
            try await age(db, old, to: limit - 1)
            try await age(db, young, to: limit)
            try await age(db, waiting, to: limit - Self.day)

            #expect(try await walk(db, at: now) == nil)
            try await forget(db, at: now)
            #expect(try await walk(db, at: now + 3600) == 1)
            let left = try await world.strings("SELECT posting_id::text FROM alert_deliveries ORDER BY posting_id")
            #expect(left == ["\(young)", "\(waiting)"])
            #expect(try await world.count("SELECT count(*) FROM alert_deliveries WHERE pending") == 1)

            // Neither by the ledger nor without it.
            for posting in [old, young, waiting] { #expect(try await reopen(world, posting, by: author) == 0) }
            #expect(try await world.count("SELECT count(*) FROM mails") == 1)
            let new = try await world.posting("Swift Lead", by: author).id
            #expect(try await alerts.match([new], now: .now) == 2)
            // What was told goes when it is old enough, and once it does not wait any more.
            try await db.write.execute("UPDATE alert_deliveries SET pending = false")
            #expect(try await walk(db, at: now + 3600) == 1)
            try await forget(db, at: now + 2)
            #expect(try await walk(db, at: now + 3602) == 1)
        }
    }

    @Test("a new alert is told of an old posting that opens again until rows of its time may be gone")
    func reopened() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (ann, author) = (try await world.user("ann").id, try await world.user("company").id)
            _ = try await world.company("ACME", of: author)
            let older = try await world.posting("Swift Engineer", by: author).id
            let edge = try await world.posting("Swift Tester", by: author).id
            let alerts = PostgresAlerts(db: db)
            let search = try PostingSearch(q: "swift")
            _ = try await alerts.create(JobAlert.Draft(name: "A", search: search, cadence: .instant), owner: ann)
            try await age(db, older, to: now - Self.kept - 1)
            try await age(db, edge, to: now - Self.kept)
            try await forget(db, at: now)
            #expect(try await reopen(world, older, by: author) == 0)
            #expect(try await reopen(world, edge, by: author) == 1)
            // A date that an import moves is the source's and says nothing of what was told.
            try await db.write.execute(
                """
                UPDATE job_postings SET source = 's', external_id = 'x', published_at = now() WHERE id = \(older)
                """)
            #expect(try await alerts.match([older], now: .now) == 0)
            try await db.write.execute("UPDATE job_postings SET created_at = now() WHERE id = \(older)")
            #expect(try await alerts.match([older], now: .now) == 1)
        }
    }

    @Test("rows go only when every match that did not know it has ended; a limit never goes back")
    func settled() async throws {
        try await withTestDatabase { db, database in
            try await database.run(
                """
                INSERT INTO alert_deliveries (alert_id, posting_id, pending, created_at)
                VALUES (1, 1, false, '2020-1-1')
                """)
            try await forget(db, at: now)
            #expect(try await walk(db, at: now + 1799) == nil)
            let upkeep = PostgresUpkeep(db: db)
            #expect(try await upkeep.ledgerWalk(now: now + 1800)?.before == now - Self.kept)
            // An hour later nothing but the time has changed; who wants to keep them for longer has that from now on.
            try await upkeep.forgetLedger(before: now - 2 * Self.kept, now: now + 1700)
            #expect(try await upkeep.ledgerWalk(now: now + 1800)?.before == now - Self.kept)
            #expect(try await walk(db, at: now + 1800) == 1)
        }
    }

    /// 200,000 rows, half of them old, in the order of their time.
    private static let fill = """
        INSERT INTO alert_deliveries (alert_id, posting_id, pending, created_at)
          SELECT i % 5000, i, false, now() - interval '360 days' + i * interval '155.52 seconds'
          FROM generate_series(1, 200000) i;
        ANALYZE
        """

    @Test("a ledger is walked by blocks, however full it is, and two that walk share it")
    func steps() async throws {
        try await withTestDatabase { db, database in
            try await database.run(Self.fill)
            try await forget(db, at: now)
            let upkeep = PostgresUpkeep(db: db)
            let walk = try #require(try await upkeep.ledgerWalk(now: now + 3600))
            // Sixteen blocks of each partition, with 136 rows in each.
            #expect(walk.blocksOfStep == 16 && (20...30).contains(walk.steps))
            let counts = try await withThrowingTaskGroup(of: (steps: Int, rows: Int).self) { group in
                for part in [walk.steps / 2, walk.steps - walk.steps / 2] {
                    group.addTask {
                        var (steps, rows) = (0, 0)
                        while steps < part {
                            guard let gone = try await upkeep.stepLedger(walk) else { continue }
                            #expect(gone <= 64 * 136)
                            (steps, rows) = (steps + 1, rows + gone)
                        }
                        return (steps, rows)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let gone = counts.map(\.rows).reduce(0, +)
            let left = Int(try await database.run("SELECT count(*) FROM alert_deliveries")[0][0]!)!
            #expect(gone + left == 200_000 && (99_900...100_100).contains(gone))
            #expect(try await database.run("SELECT next_block FROM alert_ledger") == [["0"]])
            let limit = "\((now - Self.kept).timeIntervalSince1970)"
            let old = try await database.run(
                "SELECT count(*) FROM alert_deliveries WHERE created_at < to_timestamp(\(limit))")
            #expect(old == [["0"]])
        }
    }

    @Test("a step reads its own blocks of each partition and nothing else")
    func plan() async throws {
        let scan = try StatementScan(folder: StatementTests.folder)
        let statement = try #require(
            scan.statements.first {
                $0.file == "PostgresUpkeep+Ledger.swift" && $0.text.contains("DELETE FROM alert_deliveries")
            })
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            for binds in ["'(32,0)', '(48,0)', '2020-1-1'", "'(32,0)', '(48,0)', now()"] {
                let plan = try await database.run(
                    """
                    SET plan_cache_mode = force_generic_plan;
                    DEALLOCATE ALL;
                    PREPARE s(tid, tid, timestamptz) AS \(statement.text);
                    EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE s(\(binds))
                    """
                ).compactMap { $0[0] }
                let scans = plan.filter { $0.contains("Scan") }
                #expect(scans.count == 4 && scans.allSatisfy { $0.contains("Tid Range Scan on alert_deliveries_") })
                let rows = try plan.compactMap { try Regex("Rows Removed by Filter: ([0-9]+)").firstMatch(in: $0) }
                #expect(rows.count == (binds.contains("now") ? 0 : 4), "\(plan.joined(separator: "\n"))")
            }
        }
    }

    @Test("a walk gives way to who holds a row, and takes it the next time")
    func locked() async throws {
        try await withTestDatabase { db, database in
            try await database.run(
                """
                INSERT INTO alert_deliveries (alert_id, posting_id, pending, created_at)
                SELECT i, 1, false, '2020-1-1' FROM generate_series(1, 9) i
                """)
            try await forget(db, at: now)
            let upkeep = PostgresUpkeep(db: db)
            let walk = try #require(try await upkeep.ledgerWalk(now: now + 3600))
            try await db.transaction { transaction in
                // As whoever deletes the alert does.
                try await transaction.execute("DELETE FROM alert_deliveries WHERE alert_id = 5")
                #expect(try await upkeep.stepLedger(walk) == nil)
            }
            #expect(try await upkeep.stepLedger(walk) == 8)
        }
    }

    @Test("an empty ledger, and one that nothing was forgotten of, is not walked")
    func nothing() async throws {
        try await withTestDatabase { db, database in
            try await forget(db, at: now)
            #expect(try await PostgresUpkeep(db: db).ledgerWalk(now: now + 3600) == nil)
            try await database.run(Self.fill + "; UPDATE alert_ledger SET forgotten_before = NULL")
            #expect(try await PostgresUpkeep(db: db).ledgerWalk(now: now + 3600) == nil)
        }
    }
}

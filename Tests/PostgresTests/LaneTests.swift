import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Postgres

private actor Pinned {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    init(_ loop: EventLoop) { self.loop = loop }

    /// Whether a statement of this actor was handed to its lane from another thread.
    func queuesOffLoop(_ db: Database) async throws -> Bool {
        let off = try await waitsOffLoop(db.placement.homes[loop.index])
        _ = try await db.short.first("SELECT 1") { try $0.get(0, as: Int.self) }
        return off || !loop.isCurrent
    }
}

/// What `LaneExecutor.run` does when it has to wait, watched: like it, isolated only to its caller.
private func waitsOffLoop(_ home: PostgresLoop) async throws -> Bool {
    try await withCancellation(Ticket(), home, .short) { continuation in
        continuation.resume(returning: EventLoop.current !== home.loop)
    }
}

@Suite("Lanes")
struct LaneTests {
    @Test("of 10,000 reads at once only those that are wrong fail, each with its own error")
    func manyReads() async throws {
        try await withTestDatabase { db in
            let outcomes = try await withThrowingTaskGroup(of: (Int, Result<Int?, any Error>).self) { group in
                for number in 0..<10_000 {
                    group.addTask {
                        let divisor = number % 100 == 7 ? 0 : 1
                        let result: Result<Int?, any Error>
                        do {
                            result = .success(
                                try await db.short.first("SELECT \(number)::int8 / \(divisor)::int8") {
                                    try $0.get(0, as: Int.self)
                                })
                        } catch {
                            result = .failure(error)
                        }
                        return (number, result)
                    }
                }
                return try await group.reduce(into: [Int: Result<Int?, any Error>]()) { $0[$1.0] = $1.1 }
            }
            for (number, outcome) in outcomes {
                if number % 100 == 7 {
                    #expect(throws: PostgresError.self) { try outcome.get() }
                } else {
                    #expect(try outcome.get() == number)
                }
            }
            #expect(outcomes.count == 10_000)
        }
    }

    @Test("a statement is prepared once for a connection, and no more of them than the limit are kept")
    func cache() async throws {
        try await withTestDatabase { db in
            let loop = db.loops.loops[0]
            let prepared = Task(executorPreference: loop) {
                for _ in 0..<50 { _ = try await db.short.first("SELECT \(1)::int + 1") { try $0.get(0, as: Int.self) } }
                return try await db.short.rows("SELECT statement FROM pg_prepared_statements ORDER BY 1") {
                    try $0.get(0, as: String.self)
                }
            }
            let statements = try await prepared.value
            #expect(statements.filter { $0 == "SELECT $1::int + 1" }.count == 1)
            #expect(statements.count == 2)
        }
    }

    @Test("a statement whose result has changed its shape is prepared anew, and nobody notices")
    func changedShape() async throws {
        try await withTestDatabase { db, test in
            try await test.run("CREATE TABLE shape (id int); INSERT INTO shape VALUES (1)")
            let sql: SQL = "SELECT id FROM shape"
            for home in db.placement.homes {
                let before = Task(executorPreference: home.loop) {
                    try await db.short.first(sql) { try $0.get(0, as: Int.self) }
                }
                #expect(try await before.value == 1)
            }
            try await test.run("ALTER TABLE shape ALTER id TYPE text")
            for home in db.placement.homes {
                let after = Task(executorPreference: home.loop) {
                    try await db.short.first(sql) { try $0.get(0, as: String.self) }
                }
                #expect(try await after.value == "1")
            }
        }
    }

    @Test("read lanes refuse writes; the write lane takes them", arguments: [true, false])
    func readOnly(isShort: Bool) async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int)")
            let lane = isShort ? db.short : db.long
            let error = await #expect(throws: PostgresError.self) { try await lane.execute("INSERT INTO t VALUES (1)") }
            #expect(error?.isReadOnly == true)
            #expect(try await db.short.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) } == 0)
        }
    }

    @Test("a read that takes too long is ended, and those beside it are not")
    func timeout() async throws {
        try await withTestDatabase(configure: { $0.shortMilliseconds = 10_000 }) { db, _ in
            let slow = Task { try await db.short.execute("SELECT pg_sleep(60)") }
            let quick = try await db.short.first("SELECT 5") { try $0.get(0, as: Int.self) }
            #expect(quick == 5)
            let error = await #expect(throws: PostgresError.self) { try await slow.value }
            #expect(error?.isTimeout == true)
        }
    }

    @Test("sessions are as configured: UTC, read-only where it is said, each lane under its own name")
    func settings() async throws {
        try await withTestDatabase { db in
            let settings: SQL = """
                SELECT current_setting('TimeZone') || ' ' || current_setting('client_min_messages') || ' '
                    || current_setting('default_transaction_read_only') || ' ' || current_setting('statement_timeout')
                    || ' ' || current_setting('application_name')
                """
            func read(_ lane: some SQLExecutor) async throws -> String? {
                try await lane.first(settings) { try $0.get(0, as: String.self) }
            }
            #expect(try await read(db.short) == "UTC warning on 30s martlet-test/short")
            #expect(try await read(db.long) == "UTC warning on 1min martlet-test/long")
            #expect(try await read(db.write) == "UTC warning off 1min martlet-test/write")
            let leased = try await db.session { try await read($0) }
            #expect(leased == "UTC warning off 1min martlet-test/leased")
            let plans: SQL = """
                SELECT current_setting('plan_cache_mode') || ' ' || current_setting('enable_seqscan') || ' '
                    || current_setting('enable_hashjoin') || ' ' || current_setting('enable_bitmapscan')
                """
            func planned(_ lane: some SQLExecutor) async throws -> String? {
                try await lane.first(plans) { try $0.get(0, as: String.self) }
            }
            #expect(try await planned(db.write) == "force_generic_plan off off off")
            #expect(try await planned(db.short) == "force_generic_plan off off off")
            #expect(try await planned(db.long) == "auto on on on")
        }
    }

    @Test("searches that take their time do not delay reads by key")
    func starvation() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            let roadblock = try await Roadblock.put(db)
            let done = Signal<Int>()
            let searches = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<4 {
                        group.addTask {
                            try await db.long.execute("SELECT pg_advisory_xact_lock_shared(1)")
                            done.send(number)
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await test.waitForBlocked()
            for number in 0..<200 {
                #expect(try await db.short.first("SELECT \(number)::int") { try $0.get(0, as: Int.self) } == number)
            }
            // All the reads were answered while the searches stood still.
            #expect(done.values.isEmpty)
            try await roadblock.lift()
            try await searches.value
        }
    }

    @Test("a statement on a loop of the group is answered on that loop, by that loop's connection")
    func staysOnLoop() async throws {
        try await withTestDatabase { db in
            for loop in db.loops.loops {
                let task = Task(executorPreference: loop) {
                    let here = try await db.short.first("SELECT 1") { _ in EventLoop.current === loop }
                    return here == true && loop.isCurrent
                }
                let stayed = try await task.value
                #expect(stayed)
            }
        }
    }

    @Test("an actor pinned on a loop is not left, whether its statement is sent at once or waits in the queue")
    func staysInActor() async throws {
        try await withTestDatabase { db in
            for loop in db.loops.loops {
                let pinned = Pinned(loop)
                // The first finds no connection yet, so it waits with a cancellation handler; the others do not.
                for _ in 0..<3 {
                    let left = try await pinned.queuesOffLoop(db)
                    #expect(!left)
                }
            }
        }
    }

    @Test("a full queue refuses, and a statement that waits too long gives up")
    func bounds() async throws {
        let configure: (inout PostgresConfiguration) -> Void = {
            $0.queueMax = 3
            // Connecting has to fit in, too.
            $0.acquireMilliseconds = 10_000
        }
        try await withTestDatabase(configure: configure) { db, test in
            try await db.long.execute("SELECT 1")
            let other = try test.open(configure: patient)
            let roadblock = try await Roadblock.put(other)
            let answers = Signal<String>()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask(executorPreference: db.loops.loops[0]) {
                        do {
                            try await db.long.execute("SELECT pg_advisory_xact_lock_shared(1)")
                            answers.send("done")
                        } catch {
                            answers.send("\(error)")
                        }
                    }
                }
                group.addTask {
                    _ = try? await answers.wait(count: 7)
                    _ = try? await roadblock.lift()
                }
            }
            // Three found room, of which one was sent and two waited in vain.
            #expect(answers.values == [String](repeating: "busy", count: 7) + ["done"])
            await other.close()
        }
    }

    @Test("a cancelled caller leaves the queue; a sent statement goes on")
    func cancel() async throws {
        try await withTestDatabase(configure: patient) { db, test in
            let roadblock = try await Roadblock.put(db)
            let sent = Task { try await db.long.execute("SELECT pg_advisory_xact_lock_shared(1)") }
            try await test.waitForBlocked()
            let before = db.statementsExecuted
            let waiting = Task { try await db.long.execute("SELECT 2") }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            #expect(db.statementsExecuted == before)
            try await roadblock.lift()
            #expect(try await sent.value == 1)
        }
    }

    @Test("a batch is one transaction: all of it or nothing")
    func batch() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
            let (inserted, names, count) = try await db.batch(
                Statement("INSERT INTO t VALUES (1, \("a")), (2, \("b"))"),
                Statement("SELECT name FROM t ORDER BY id") { try $0.get(0, as: String.self) },
                Statement("SELECT count(*), pg_current_xact_id() FROM t") {
                    (try $0.get(0, as: Int.self), try $0.get(1, as: PostgresXID.self))
                })
            #expect(inserted == [2] && names == ["a", "b"] && count.first?.0 == 2)
            let error = await #expect(throws: PostgresError.self) {
                try await db.write.batch(["INSERT INTO t VALUES (3, 'c')", "INSERT INTO t VALUES (1, 'again')"])
            }
            #expect(error?.isUniqueViolation == true && error?.constraint == "t_pkey")
            #expect(try await db.write.batch(["SELECT id FROM t", "DELETE FROM t WHERE id = 1"]) == [2, 1])
            #expect(try await db.write.batch([]) == [])
        }
    }

    @Test("an error says the constraint, and no value of anybody's")
    func errorsLeakNothing() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE people (email text CONSTRAINT people_email_key UNIQUE)")
            try await db.write.execute("INSERT INTO people VALUES (\("canary@example.com"))")
            let error = await #expect(throws: PostgresError.self) {
                try await db.write.execute("INSERT INTO people VALUES (\("canary@example.com"))")
            }
            #expect(error?.constraint == "people_email_key" && error?.table == "people")
            #expect(error?.detail?.contains("canary") == true)
            var dumped = "\(error!) \(String(reflecting: error!))"
            dump(error!, to: &dumped)
            #expect(!dumped.contains("canary"))
            #expect(dumped.contains("people_email_key"))
        }
    }

    @Test("without prepared statements, as behind a pooler, all works the same")
    func unprepared() async throws {
        try await withTestDatabase(configure: { $0.isPooled = true }) { db, _ in
            for number in 0..<3 {
                #expect(try await db.short.first("SELECT \(number)::int") { try $0.get(0, as: Int.self) } == number)
            }
            let prepared = try await db.short.execute("SELECT 1 FROM pg_prepared_statements")
            #expect(prepared == 0)
            // No connection is a session there; and a transaction brings the limits that sessions do not have.
            await #expect(throws: PostgresMisuse.noSession) { try await db.session { _ in } }
            await #expect(throws: PostgresMisuse.noSession) {
                try await db.listen(["a"], onWake: { _ in }, onReconnect: {})
            }
            let limit = try await db.transaction {
                try await $0.first("SELECT current_setting('statement_timeout')") { try $0.get(0, as: String.self) }
            }
            #expect(limit == "1min")
        }
    }

    @Test("a closed database refuses, after it has answered what was sent")
    func close() async throws {
        try await withTestDatabase(configure: patient) { other, test in
            let db = try test.open(configure: patient)
            let roadblock = try await Roadblock.put(other)
            let slow = Task { try await db.write.execute("SELECT pg_advisory_xact_lock_shared(1)") }
            try await test.waitForBlocked()
            async let closed: Void = db.close()
            try await roadblock.lift()
            await closed
            #expect(try await slow.value == 1)
            await #expect(throws: PostgresUnavailable.closed) { try await db.short.execute("SELECT 1") }
            await #expect(throws: PostgresUnavailable.closed) { try await db.transaction { _ in } }
        }
    }
}

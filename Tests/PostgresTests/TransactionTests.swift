import EventLoop
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

private struct Boom: Error {}

@Suite("Transactions")
struct TransactionTests {
    private func count(_ db: Database) async throws -> Int? {
        try await db.short.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) }
    }

    @Test("what it did is there when its closure returns, and gone when it throws")
    func commitAndRollBack() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            let value = try await db.transaction { tx in
                try await tx.execute("INSERT INTO t VALUES (1)")
                return try await tx.first("SELECT count(*) FROM t") { try $0.get(0, as: Int.self) }
            }
            #expect(value == 1)
            #expect(try await count(db) == 1)
            await #expect(throws: Boom.self) {
                try await db.transaction { tx in
                    try await tx.execute("INSERT INTO t VALUES (2)")
                    throw Boom()
                }
            }
            await #expect(throws: PostgresError.self) {
                try await db.transaction { tx in
                    try await tx.execute("INSERT INTO t VALUES (3)")
                    try await tx.execute("INSERT INTO t VALUES (1)")
                }
            }
            #expect(try await count(db) == 1)
            try await db.transaction { try await $0.execute("INSERT INTO t VALUES (4)") }
            #expect(try await count(db) == 2)
        }
    }

    @Test("a transaction whose statement failed is not committed, though the closure hid it")
    func hiddenFailure() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            let error = await #expect(throws: PostgresError.self) {
                try await db.transaction { tx in
                    try await tx.execute("INSERT INTO t VALUES (1)")
                    _ = try? await tx.execute("INSERT INTO t VALUES (1)")
                }
            }
            #expect(error?.sqlState == "25P02")
            #expect(try await count(db) == 0)
        }
    }

    @Test("BEGIN travels with the first statement, and a transaction without one sends nothing")
    func roundTrips() async throws {
        try await withTestDatabase { db in
            let before = db.statementsExecuted
            try await db.transaction { _ in }
            #expect(db.statementsExecuted == before)
            try await db.transaction { _ = try await $0.execute("SELECT 1") }
            #expect(db.statementsExecuted == before + 3)
        }
    }

    @Test("batches and isolation levels work in a transaction, with its own timeouts")
    func options() async throws {
        try await withTestDatabase { db in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            let level: SQL = "SELECT current_setting('transaction_isolation'), current_setting('lock_timeout')"
            let seen = try await db.transaction(isolation: .serializable, lockMilliseconds: 1234) { tx in
                let (_, levels) = try await tx.batch(
                    Statement("INSERT INTO t VALUES (1)"),
                    Statement(level) { (try $0.get(0, as: String.self), try $0.get(1, as: String.self)) })
                return levels[0]
            }
            #expect(seen.0 == "serializable" && seen.1 == "1234ms")
            let late = await #expect(throws: PostgresError.self) {
                try await db.transaction(statementMilliseconds: 50) { try await $0.execute("SELECT pg_sleep(60)") }
            }
            #expect(late?.isTimeout == true)
            let error = await #expect(throws: PostgresError.self) {
                try await db.transaction(isolation: .readOnlySnapshot) { try await $0.execute("DELETE FROM t") }
            }
            #expect(error?.isReadOnly == true)
            #expect(try await count(db) == 1)
        }
    }

    @Test("a lock that is held too long is an error, and the transaction is over")
    func lockTimeout() async throws {
        try await withTestDatabase { db in
            try await db.write.batch(["CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)"])
            let held = Signal<Void>()
            let release = Signal<Void>()
            let holder = Task {
                try await db.transaction { tx in
                    try await tx.execute("SELECT id FROM t WHERE id = 1 FOR UPDATE")
                    held.send(())
                    try await release.wait(count: 1)
                }
            }
            try await held.wait(count: 1)
            let error = await #expect(throws: PostgresError.self) {
                try await db.transaction(lockMilliseconds: 50) { try await $0.execute("DELETE FROM t WHERE id = 1") }
            }
            #expect(error?.isLockTimeout == true)
            release.send(())
            try await holder.value
        }
    }

    @Test("used after its end it throws, and touches nobody's connection")
    func afterEnd() async throws {
        try await withTestDatabase { db in
            let escaped = Mutex<Transaction?>(nil)
            try await db.transaction { tx in
                escaped.withLock { $0 = tx }
                try await tx.execute("SELECT 1")
            }
            let transaction = escaped.withLock { $0 }!
            await #expect(throws: PostgresMisuse.leaseEnded) { try await transaction.execute("SELECT 1") }
            await #expect(throws: PostgresMisuse.leaseEnded) {
                try await transaction.copyIn("COPY t FROM STDIN") { _ in }
            }
        }
    }

    @Test("more transactions than connections wait their turn; those who wait too long are told busy")
    func bounded() async throws {
        try await withTestDatabase { db, test in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        _ = try await db.transaction { try await $0.execute("INSERT INTO t VALUES (\(number))") }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await count(db) == 50)
            let used = try await test.run(
                """
                SELECT 1 FROM pg_stat_activity
                WHERE application_name = 'martlet-test/leased' AND datname = current_database()
                """)
            #expect(used.count <= 2)
        }
        try await withTestDatabase(configure: {
            // Connecting has to fit in, too.
            $0.acquireMilliseconds = 10_000
            $0.leasedMax = 1
        }) { db, _ in
            let release = Signal<Void>()
            let held = Signal<Void>()
            let holder = Task {
                try await db.transaction { tx in
                    try await tx.execute("SELECT 1")
                    held.send(())
                    try await release.wait(count: 1)
                }
            }
            try await held.wait(count: 1)
            await #expect(throws: PostgresUnavailable.busy) { try await db.transaction { _ in } }
            let waiting = Task { try await db.transaction { _ in } }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            release.send(())
            try await holder.value
            try await db.transaction { _ = try await $0.execute("SELECT 1") }
        }
    }

    @Test("a cancelled owner's transaction is rolled back, and its connection serves others")
    func cancelled() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 1 }) { db, _ in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            let inserted = Signal<Void>()
            let go = Signal<Void>()
            let task = Task {
                try await db.transaction { tx in
                    try await tx.execute("INSERT INTO t VALUES (1)")
                    inserted.send(())
                    try await go.wait(count: 1)
                    try await tx.execute("INSERT INTO t VALUES (2)")
                }
            }
            try await inserted.wait(count: 1)
            task.cancel()
            go.send(())
            await #expect(throws: CancellationError.self) { try await task.value }
            try await db.transaction { _ = try await $0.execute("INSERT INTO t VALUES (3)") }
            #expect(try await count(db) == 1)
        }
    }

    @Test("a connection lost within says so, and one lost during COMMIT leaves the outcome unknown")
    func lost() async throws {
        try await withTestDatabase { db, test in
            try await db.write.execute("CREATE TABLE t (id int PRIMARY KEY)")
            await #expect(throws: PostgresUnavailable.connectionLost) {
                try await db.transaction { tx in
                    let pid = try await tx.first("SELECT pg_backend_pid()") { try $0.get(0, as: Int.self) }
                    try await tx.execute("INSERT INTO t VALUES (1)")
                    try await test.run("SELECT pg_terminate_backend(\(pid!))")
                    // The first statement after the loss may still be written into the dead socket.
                    for _ in 0..<1000 { try await tx.execute("SELECT 1") }
                }
            }
            // A deferred trigger makes the COMMIT itself take long enough to be killed.
            try await test.run(
                """
                CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
                CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION slow();
                """)
            let committing = Task { try await db.transaction { try await $0.execute("INSERT INTO t VALUES (2)") } }
            let kill = """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE query = 'COMMIT' AND state = 'active' AND datname = current_database()
                """
            try await eventually { try await test.run(kill).count == 1 }
            await #expect(throws: PostgresUnavailable.outcomeUnknown) { try await committing.value }
            #expect(try await count(db) == 0)
        }
    }

    @Test("a deferred constraint fails the commit of a write and of a transaction")
    func deferred() async throws {
        try await withTestDatabase { db in
            try await db.write.batch([
                "CREATE TABLE t (id int PRIMARY KEY)",
                "CREATE TABLE u (t int CONSTRAINT u_t_fkey REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
            ])
            let single = await #expect(throws: PostgresError.self) {
                try await db.write.execute("INSERT INTO u VALUES (9)")
            }
            #expect(single?.isForeignKeyViolation == true && single?.constraint == "u_t_fkey")
            let whole = await #expect(throws: PostgresError.self) {
                try await db.transaction { try await $0.execute("INSERT INTO u VALUES (9)") }
            }
            #expect(whole?.constraint == "u_t_fkey")
            #expect(try await db.short.execute("SELECT 1 FROM u") == 0)
            #expect(try await db.transaction { try await $0.execute("INSERT INTO t VALUES (1)") } == 1)
        }
    }

    @Test("a session runs scripts and what no transaction may, and leaves nothing behind")
    func session() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 1 }) { db, _ in
            try await db.session { session in
                try await session.script(
                    "CREATE TABLE t (id int); INSERT INTO t VALUES (1); SET statement_timeout = '77 s'")
                try await session.script("CREATE INDEX CONCURRENTLY t_id ON t (id)")
                try await session.execute("SELECT pg_advisory_lock(\(5))")
                let setting = try await session.first("SHOW statement_timeout") { try $0.get(0, as: String.self) }
                #expect(setting == "77s")
                let error = await #expect(throws: PostgresError.self) {
                    try await session.script("INSERT INTO t VALUES (2); SELECT 1/0; INSERT INTO t VALUES (3)")
                }
                #expect(error?.sqlState == "22012")
                await #expect(throws: PostgresError.self) { try await session.script("COPY t FROM STDIN") }
                #expect(try await session.execute("SELECT id FROM t") == 1)
            }
            try await eventually {
                try await db.short.execute(
                    """
                    SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database
                    WHERE datname = current_database() AND locktype = 'advisory'
                    """) == 0
            }
            try await db.session { session in
                let setting = try await session.first("SHOW statement_timeout") { try $0.get(0, as: String.self) }
                #expect(setting == "1min")
            }
        }
    }
}

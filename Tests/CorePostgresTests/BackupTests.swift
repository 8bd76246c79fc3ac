import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("What a backup asks of PostgreSQL")
struct BackupTests {
    /// What other statements may take: more than any of them does on a machine that is busy with all other tests.
    static let leasedSeconds = 20

    @Test("big tables are counted and analysed for as long as that takes, whatever other statements may take")
    func bigTables() async throws {
        try await withTestDatabase(configure: { $0.leasedMilliseconds = Self.leasedSeconds * 1000 }) { db, test in
            try await test.run("CREATE TABLE big AS SELECT FROM generate_series(1, 2000)")
            let backup = PostgresBackup(db: db)
            let counts = try await slowly(test) { try await backup.snapshot { try await $0.tableCounts() } }
            #expect(counts.contains(TableCount(table: "public.big", rows: 2_000)))
            try await slowly(test) { try await backup.analyze() }
            #expect(try await test.run("SELECT reltuples::bigint FROM pg_class WHERE relname = 'big'") == [["2000"]])
        }
    }

    /// Does it while somebody has the table `big` for longer than other statements may take.
    private func slowly<T: Sendable>(
        _ test: TestDatabase, _ body: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let other = try test.open()
        let doing = try await other.transaction { transaction in
            try await transaction.execute("LOCK TABLE big IN ACCESS EXCLUSIVE MODE")
            let ended = Signal<Void>()
            let doing = Task {
                defer { ended.send(()) }
                return try await body()
            }
            try await eventually {
                // Before its time, so with an error that says more than that the time is over.
                if !ended.values.isEmpty { _ = try await doing.value }
                return try await test.run(
                    """
                    SELECT FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
                    WHERE relation = 'big'::regclass AND NOT granted
                      AND clock_timestamp() - waitstart > make_interval(secs => \(Self.leasedSeconds + 1))
                    """
                ).count == 1
            }
            return doing
        }
        await other.close()
        return try await doing.value
    }

    @Test("the script around a dump names tables and numbers as they are, whatever is in the names")
    func script() async throws {
        try await withTestDatabase { db, test in
            try await test.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE old (n int)")
            let backup = PostgresBackup(db: db)
            let odd = #"public.it's "odd""#
            let table = #"CREATE TABLE public."it's ""odd""" AS SELECT 1 AS n;"#
            let right = backup.restoring(replacing: true, expecting: [TableCount(table: odd, rows: 1)])
            let wrong = backup.restoring(replacing: true, expecting: [TableCount(table: odd, rows: 2)])
            await #expect(throws: (any Error).self) { try await test.run(wrong.begin + table + wrong.end) }
            #expect(try await test.run("SELECT to_regclass('old') IS NOT NULL") == [["t"]])
            try await test.run(right.begin + table + right.end)
            #expect(try await test.run("SELECT to_regclass('old') IS NULL") == [["t"]])
        }
    }
}

import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("What a backup asks of PostgreSQL")
struct BackupTests {
    @Test("big tables are counted and analysed for as long as that takes, whatever other statements may take")
    func bigTables() async throws {
        try await withTestDatabase(configure: {
            $0.leasedMilliseconds = 200
            // The machine is shared: a count that is slow for that is no server that has gone.
            $0.silenceMilliseconds = 60_000
        }) { db, test in
            try await test.run(
                """
                CREATE TABLE big AS
                SELECT n, md5(n::text) AS a, md5((n + 1)::text) AS b FROM generate_series(1, 2000000) n
                """)
            let backup = PostgresBackup(db: db)
            let counts = try await backup.snapshot { try await $0.tableCounts() }
            #expect(counts.contains(TableCount(table: "public.big", rows: 2_000_000)))
            try await backup.analyze()
            #expect(try await test.run("SELECT reltuples::bigint FROM pg_class WHERE relname = 'big'") == [["2000000"]])
        }
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

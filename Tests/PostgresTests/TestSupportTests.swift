import Foundation
import Postgres
import Testing

@testable import TestSupport

@Suite("Test databases")
struct TestSupportTests {
    @Test(
        "only a server of this machine is taken",
        arguments: [
            "postgres://u@127.0.0.1:5432/postgres", "postgres://u@localhost/postgres",
            "postgres://u@[::1]/martlet_test_x",
            "postgres:///postgres?host=/tmp/socket",
        ])
    func takes(url: String) throws {
        #expect(try TestServer.checked(url)["dbname"] != nil)
    }

    @Test(
        "another host or a database that may matter is refused",
        arguments: [
            "postgres://u@db.example.com/postgres", "postgres://u@10.0.0.1/postgres", "postgres://u@127.0.0.1/martlet",
            "postgres://u@127.0.0.1,db.example.com/postgres", "postgres://u@127.0.0.1/postgres?hostaddr=10.0.0.1",
            "postgres:///postgres", "postgres://u@127.0.0.1/", "nonsense",
        ])
    func refuses(url: String) {
        #expect(throws: TestDatabaseError.self) { try TestServer.checked(url) }
    }

    @Test("the up part of a migration is taken, and whether it wants a transaction")
    func migrations() throws {
        let file = try MigrationFiles.parse("1.sql", "-- migrate:up\nCREATE TABLE a ();\n-- migrate:down\nX;")
        #expect(file.up == "CREATE TABLE a ();" && file.inTransaction)
        let loose = try MigrationFiles.parse("2.sql", "-- migrate:up transaction:false\nX;\nY;\n")
        #expect(!loose.inTransaction)
        let text = "CREATE INDEX a\n ON b;\nDO $$\nBEGIN;\nEND $$;\nC"
        #expect(MigrationFiles.statements(text) == ["CREATE INDEX a\n ON b;", "DO $$\nBEGIN;\nEND $$;", "C"])
        #expect(throws: TestDatabaseError.self) { try MigrationFiles.parse("3.sql", "CREATE TABLE a ();") }
        let one = try MigrationFiles([("1.sql", "-- migrate:up\nA")])
        let other = try MigrationFiles([("1.sql", "-- migrate:up\nB")])
        #expect(one.digest != other.digest)
    }

    @Test("each test has a database of its own, with the migrations, gone afterwards")
    func isolated() async throws {
        let names = try await withTestDatabase { _, one in
            try await withTestDatabaseBeside(one)
        }
        #expect(names.0 != names.1)
        let server = try await TestServer.current()
        let left = try await server.run("SELECT datname FROM pg_database WHERE datname IN ('\(names.0)', '\(names.1)')")
        #expect(left.isEmpty)
    }

    private func withTestDatabaseBeside(_ one: TestDatabase) async throws -> (String, String) {
        try await one.run("CREATE TABLE only_here ()")
        return try await withTestDatabase { db, other in
            let found = try await db.short.execute("SELECT 1 FROM pg_class WHERE relname = 'only_here'")
            #expect(found == 0)
            return (one.name, other.name)
        }
    }

    @Test("a signal is waited for, and its absence noticed")
    func signals() async throws {
        let signal = Signal<Int>()
        Task { signal.send(1) }
        #expect(try await signal.wait(count: 1) == [1])
        await #expect(throws: TestDeadline.self) { try await signal.wait(count: 2, seconds: 0) }
    }
}

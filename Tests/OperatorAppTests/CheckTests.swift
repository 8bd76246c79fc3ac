import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@testable import OperatorApp

@Suite("martlet check, doctor, completion")
struct CheckTests {
    private func facts(
        version: Int = 150_006, isStandby: Bool = false, unsafe: [String] = [], encoding: String = "UTF8",
        connections: Int = 97, mayCreate: Bool = true
    ) -> DatabaseFacts {
        DatabaseFacts(
            version: version, isStandby: isStandby, unsafeSettings: unsafe, encoding: encoding,
            connectionsMax: connections, connectionsUsed: 3, mayCreate: mayCreate)
    }

    private func judged(_ facts: DatabaseFacts) -> [(Finding.Standing, String)] {
        DatabaseCheck.judge(facts, server: "db1:5432").map { ($0.standing, "\($0.detail) -> \($0.remedy)") }
    }

    @Test("a good server is told in a line; what is wrong has its remedy, and all of it is told")
    func database() throws {
        let good = judged(facts())
        #expect(good.count == 1 && good[0].0 == .good)
        #expect(good[0].1.contains("PostgreSQL 15.6 at db1:5432, 3 of 97 connections in use, enough for 6 services"))
        let bad = judged(
            facts(version: 140_001, isStandby: true, unsafe: ["fsync", "synchronous_commit"], encoding: "LATIN1"))
        #expect(bad.map(\.0) == [.bad, .bad, .bad, .bad, .bad])
        for words in ["PostgreSQL 15 or newer", "target_session_attrs", "ENCODING 'UTF8'", "SET fsync = on"] {
            #expect(bad.contains { $0.1.contains(words) }, "\(words)")
        }
        #expect(judged(facts(connections: 44)).map(\.0) == [.warning] && judged(facts(connections: 45))[0].0 == .good)
        #expect(judged(facts(mayCreate: false)).map(\.0) == [.warning])
    }

    @Test("a schema that is older, newer or changed is told apart")
    func schema() {
        func judged(_ standings: MigrationState.Standing...) -> Finding {
            DatabaseCheck.schema(
                standings.enumerated().map { MigrationState(version: "\($0)", name: "m\($0).sql", standing: $1) })
        }
        #expect(judged(.applied, .applied).standing == .good)
        #expect(judged(.applied, .pending).remedy.contains("older than this program"))
        #expect(judged(.applied, .unknown).standing == .warning)
        #expect(judged(.applied, .unknown).remedy.contains("newer than this program"))
        #expect(judged(.changed, .pending).detail.contains("changed since: m0.sql"))
    }

    @Test("a look at the schema leaves an empty database empty")
    func leavesEmpty() async throws {
        try await withTestDatabase { db, database in
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            let migrations = root.appending(path: "migrations").path
            let check = await martlet("check", "--migrations", migrations, on: db)
            #expect(check.status == 1 && check.said.output.contains("-> the schema is older than this program"))
            #expect(try await PostgresBackup(db: db).isEmpty())
            try await db.write.execute("CREATE TABLE t (id int)")
            #expect(try await !PostgresBackup(db: db).isEmpty())
        }
    }

    @Test("doctor finds work that is stuck and rooms that count wrong, and nothing in a database that is well")
    func doctor() async throws {
        try await withTestDatabase { db in
            let well = await martlet("doctor", on: db)
            #expect(well.status == 0 && well.said.output.contains("ok      every room counts"))
            #expect(well.said.output.contains("off     the store is not asked") && !well.said.output.contains("_"))
            try await db.write.execute(
                """
                INSERT INTO work_dead (id, kind, payload, attempts, created_at) VALUES (900, 'prune', '{}', 12, now())
                """)
            try await db.write.execute(
                """
                INSERT INTO work_items (kind, payload, run_at, leased_until)
                VALUES ('prune', '{}', now() - interval '1 hour', NULL),
                       ('prune', '{}', now(), now() - interval '1 hour'), ('prune', '{}', now(), NULL)
                """)
            try await db.write.execute("INSERT INTO rooms (wire_name, last_seq) VALUES (NULL, 5), (NULL, 0)")
            let ill = await martlet("doctor", "--json", on: db)
            #expect(ill.status == 1)
            let details = ill.said.json?.items.filter { $0["state"]?.string == "failed" }
                .compactMap { $0["detail"]?.string }
            #expect(
                details == [
                    "1 work item has failed for good: 900", "1 work item has been ready for over ten minutes: 1",
                    "1 work item is held by a worker that is gone: 2",
                    "1 room counts its messages wrong: its last number is not that of its last message: 1",
                ])
            let names = ill.said.json?.items.compactMap { $0["name"]?.string }
            #expect(names == ["dead_work", "late_work", "lost_leases", "room_numbers", "stuck_uploads", "objects"])
            let told = await martlet("doctor", on: db).said.output
            #expect(told.contains("failed  1 work item has failed for good: 900\n        -> martlet queue show ID"))
            #expect(!told.contains("dead_work") && !told.contains("lost_leases"))
            try await PostgresWorkQueue(db: db).pause([.prune], holder: .operator, seconds: nil)
            #expect(await martlet("doctor", on: db).said.output.contains("ok      no work is late"))
        }
    }

    @Test("one is said in other words than several, and of many a few are listed")
    func numbers() {
        let one = DoctorCommand.judge([HealthComplaint(kind: .stuckUploads, count: 1, examples: [4])])
        let many = DoctorCommand.judge([HealthComplaint(kind: .stuckUploads, count: 9, examples: [4, 7])])
        #expect(one.last?.detail == "1 upload has waited for over an hour: 4")
        #expect(many.last?.detail == "9 uploads have waited for over an hour: 4, 7, …")
        #expect([0, 1, 2].map { noun($0, "file") } == ["files", "file", "files"])
    }

    @Test("the gravest failure gives the status, and a warning none")
    func status() {
        func status(_ causes: Finding.Cause..., standing: Finding.Standing = .bad) -> Int32 {
            Finding.status(causes.map { Finding("x", standing, "", cause: $0) })
        }
        #expect(status() == 0 && status(.configuration, standing: .warning) == 0)
        #expect(status(.wrong) == 1 && status(.away, .wrong) == 69 && status(.wrong, .configuration, .away) == 78)
    }

    @Test("neighbours that belong together are taken together")
    func chunks() {
        #expect([1, 1, 2, 1].chunked(by: ==).map(Array.init) == [[1, 1], [2], [1]])
        #expect([Int]().chunked(by: ==).isEmpty)
    }

    @Test("completion knows every command and option, in each shell's language")
    func completion() async {
        for shell in ["bash", "zsh", "fish"] {
            let answer = await martlet(["completion", shell])
            #expect(answer.status == 0)
            for syntax in Operator.commands.map({ $0.syntax }) {
                #expect(answer.said.output.contains(syntax.name), "\(shell) \(syntax.name)")
                for option in syntax.options {
                    let name = shell == "fish" ? "-l \(option.name.dropFirst(2))" : option.name
                    #expect(answer.said.output.contains(name), "\(shell) \(option.name)")
                }
            }
        }
        #expect(await martlet(["completion", "cmd"]).status == 64)
        #expect(await martlet(["completion"]).status == 64)
    }
}

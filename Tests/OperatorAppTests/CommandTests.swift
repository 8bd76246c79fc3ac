import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@testable import OperatorApp

@Suite("martlet migrate, check, user, queue")
struct CommandTests {
    private let migrations = root.appending(path: "migrations").path

    @Test("migrate brings an empty database up, says so, and shows how it stands")
    func migrate() async throws {
        try await withTestDatabase { db, database in
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            let status = await martlet("migrate", "status", "--migrations", migrations, on: db)
            #expect(status.status == 1 && status.said.output.contains("pending"))
            let up = await martlet("migrate", on: db, environment: ["MARTLET_MIGRATIONS": migrations])
            #expect(up.status == 0 && up.said.output.contains("_create_users.sql: applied in"))
            let again = await martlet("migrate", "up", "--migrations", migrations, "--json", on: db)
            #expect(again.status == 0 && again.said.json?["applied"]?.items.isEmpty == true)
            #expect(await martlet("migrate", "status", "--migrations", migrations, on: db).status == 0)
            let down = await martlet("migrate", "down", "--migrations", migrations, "--json", on: db)
            #expect(down.said.json?["taken_back"]?.string?.hasSuffix(".sql") == true)
            #expect(await martlet("migrate", "sideways", "--migrations", migrations, on: db).status == 64)
            let missing = await martlet("migrate", "--migrations", "/nonexistent", on: db)
            #expect(missing.status == 1 && missing.said.complaints.contains("/nonexistent"))
        }
    }

    @Test("user create is there the second time, and makes the company once; passwords and blocks are set")
    func users() async throws {
        try await withTestDatabase { db in
            try await withFolder { folder in
                let password = try folder.file("password", "correct horse\n")
                let words = ["--email", "Jane@Example.org", "--username", "jane", "--password-file", password]
                func create(_ more: String...) async -> (status: Int32, said: Transcript) {
                    let transcript = Transcript()
                    let command = Operator(
                        environment: ["MARTLET_DATABASE_URL": "x"], terminal: transcript.terminal(),
                        connect: { _ in TestBackend(database: db) })
                    return (await command.run(["user", "create"] + words + more), transcript)
                }
                let first = await create("--company", "Acme")
                #expect(
                    first.status == 0 && first.said.output == "jane@example.org is created and represents Acme now\n")
                let second = await create("--company", "Acme")
                #expect(
                    second.status == 0 && second.said.output.contains("is there already and represents Acme already"))
                let users = PostgresUsers(db: db)
                let jane = try #require(try await users.findForSignIn(identifier: "jane"))
                #expect(jane.passwordHash?.hasPrefix("$argon2id$") == true)
                #expect(await martlet("user", "block", "jane", on: db).said.output.contains("blocked"))
                #expect(try await users.find(jane.user.id).blocked)
                #expect(
                    await martlet("user", "unblock", "jane@example.org", "--json", on: db).said.json?["blocked"]
                        == .bool(false))
                let other = try folder.file("other", "another one")
                #expect(await martlet("user", "password", "jane", "--password-file", other, on: db).status == 0)
                #expect(try await users.passwordHash(of: jane.user.id) != jane.passwordHash)
                #expect(await martlet("user", "show", "nobody", on: db).status == 1)
                let short = try folder.file("short", "abc")
                #expect(await martlet("user", "password", "jane", "--password-file", short, on: db).status == 1)
                #expect(await martlet("user", "create", "--email", "x@example.org", on: db).status == 64)
            }
        }
    }

    @Test("queue shows, retries and cancels")
    func queue() async throws {
        try await withTestDatabase { db in
            #expect(await martlet("queue", on: db).said.output == "The queue is empty.\n")
            try await db.write.enqueue(.prune, payload: "{}")
            try await db.write.execute(
                """
                INSERT INTO work_dead (id, kind, payload, attempts, last_error, created_at)
                VALUES (900, 'prune', '{}', 12, 'it broke', now())
                """)
            // On a busy machine the item may be seconds old by now.
            let listed = await martlet("queue", "ls", on: db).said.output
            #expect(
                listed.replacing(/\ +[0-9]+ s\n/, with: "     0 s\n") == """
                    KIND   READY  RUNNING  WAITING  DEAD  OLDEST
                    prune      1        0        0     1     0 s

                    """)
            #expect(await martlet("queue", "dead", "--json", on: db).said.json?.items.first?["id"]?.number == 900)
            #expect(await martlet("queue", "show", "900", on: db).said.output.contains("after 12 attempts: it broke"))
            #expect(await martlet("queue", "show", "901", on: db).status == 1)
            #expect(await martlet("queue", "retry", "900", on: db).said.output == "1 retried.\n")
            #expect(await martlet("queue", "retry", "900", on: db).status == 1)
            #expect(await martlet("queue", "cancel", "1", "--json", on: db).said.json?["cancelled"]?.number == 1)
            #expect(await martlet("queue", "cancel", "1", on: db).status == 1)
            for words in [["cancel"], ["retry"], ["show", "x"], ["ls", "1"], ["dead", "--kind", "nonsense"]] {
                let transcript = Transcript()
                let command = Operator(
                    environment: [:], terminal: transcript.terminal(), connect: { _ in TestBackend(database: db) })
                #expect(await command.run(["queue"] + words) == 64)
            }
        }
    }

    @Test("check says all that is wrong at once")
    func check() async throws {
        try await withTestDatabase { db, database in
            try await database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            _ = await martlet("migrate", "--migrations", migrations, on: db)
            try await withFolder { folder in
                let good = await martlet(
                    "check", "--migrations", migrations, on: db, environment: ["MARTLET_STORE": folder.path])
                #expect(good.status == 0 && good.said.output.contains("ok      schema"))
                let bad = await martlet(
                    "check", "--migrations", migrations, "--json", on: db,
                    environment: ["MARTLET_STORE": folder.path + "/a/b", "MARTLET_SMTP_URL": "smtp://127.0.0.1:1"])
                #expect(bad.status == 78)
                let states = bad.said.json?.items.compactMap { $0["state"]?.string }
                #expect(states == ["ok", "ok", "ok", "failed", "failed", "off"])
                let remedies = bad.said.json?.items.compactMap { $0["remedy"]?.string }
                #expect(remedies?.map(\.isEmpty) == [true, true, true, false, false, true])
                let away = await martlet(
                    "check", "--migrations", migrations, on: db,
                    environment: ["MARTLET_STORE": folder.path + "/a", "MARTLET_SMTP_URL": "smtp://127.0.0.1:1"])
                #expect(away.status == 69 && away.said.output.contains("warning store: \(folder.path)/a is not there"))
                let made = try FileManager.default.contentsOfDirectory(atPath: folder.path)
                #expect(!made.contains("a"), "a look makes none")
            }
            let wrong = await martlet(
                "check", "--migrations", migrations, on: db, environment: ["MARTLET_SMTP_URL": "nonsense"])
            #expect(wrong.status == 78)
        }
        let nothing = await martlet(["check"])
        #expect(nothing.status == 78 && nothing.said.output.contains("MARTLET_DATABASE_URL"))
    }
}

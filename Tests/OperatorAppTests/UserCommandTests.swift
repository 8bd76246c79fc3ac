import Core
import CorePostgres
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import OperatorApp

@Suite("martlet user")
struct UserCommandTests {
    /// Somebody with a session.
    private func person(_ name: String, on db: Database) async throws -> User {
        let draft = try User.Draft(username: name, email: "\(name)@example.org", password: "secret")
        let user = try await PostgresUsers(db: db).create(draft, passwordHash: "hash")
        _ = try await PostgresSessions(db: db).start(
            .long, user: user.id, refreshHash: nil, expiresAt: .now.addingTimeInterval(3600))
        return user
    }

    @Test("ls shows people a page at a time, and says that there are more")
    func list() async throws {
        try await withTestDatabase { db in
            let people = try await [person("jane", on: db), person("john", on: db), person("rita", on: db)]
            let first = await martlet("user", "ls", "--limit", "2", on: db)
            #expect(first.status == 0 && first.said.output.hasPrefix("ID  USERNAME  E-MAIL"))
            #expect(first.said.output.contains("john@example.org") && !first.said.output.contains("rita"))
            #expect(first.said.complaints.contains("--after \(people[1].id)"))
            let rest = await martlet("user", "ls", "--after", "\(people[1].id)", "--json", on: db)
            #expect(rest.said.json?.items.map { $0["username"]?.string } == ["rita"])
            #expect(rest.said.json?.items.first?["role"]?.string == "authenticated")
            #expect(await martlet("user", "block", "jane", on: db).status == 0)
            #expect(await martlet("user", "role", "john", "administrator", on: db).status == 0)
            func names(_ words: String...) async -> [String?]? {
                let transcript = Transcript()
                let command = Operator(
                    environment: ["MARTLET_DATABASE_URL": "x"], terminal: transcript.terminal(),
                    connect: { _ in TestBackend(database: db) })
                _ = await command.run(["user", "ls", "--json"] + words)
                return transcript.json?.items.map { $0["username"]?.string }
            }
            #expect(await names("--blocked", "yes") == ["jane"])
            #expect(await names("--blocked=no") == ["john", "rita"])
            #expect(await names("--role", "administrator") == ["john"])
            #expect(await names("--find", "RIT") == ["rita"])
            #expect(await names("--find", "nobody") == [])
            #expect(await martlet("user", "ls", "--find", "nobody", on: db).said.output == "There are none.\n")
        }
    }

    @Test("what cannot be meant is refused before the database is asked")
    func usage() async {
        for words in [
            ["ls", "jane"], ["ls", "--role", "king"], ["ls", "--blocked", "perhaps"], ["ls", "--after", "x"],
            ["ls", "--limit", "1001"], ["role", "jane"], ["role", "jane", "king"], ["sessions"], ["end-sessions"],
            ["erase"], ["block", "jane", "john"], ["show", "jane", "--yes"], ["nonsense"], [],
        ] {
            #expect(await martlet(["user"] + words).status == 64, "\(words)")
        }
    }

    @Test("the last administrator who may sign in keeps the role, and is neither blocked nor erased")
    func lastAdministrator() async throws {
        try await withTestDatabase { db in
            let (one, other) = try await (person("one", on: db), person("other", on: db))
            #expect(await martlet("user", "role", "one", "administrator", on: db).status == 0)
            for words in [["role", "one", "authenticated"], ["block", "one"], ["erase", "one"]] {
                let transcript = Transcript()
                let command = Operator(
                    environment: ["MARTLET_DATABASE_URL": "x"], terminal: transcript.terminal(),
                    connect: { _ in TestBackend(database: db) })
                #expect(await command.run(["user"] + words) == 1, "\(words)")
                #expect(transcript.complaints.contains("the last administrator"), "\(words)")
            }
            let users = PostgresUsers(db: db)
            #expect(try await users.find(one.id).role == .administrator)
            #expect(await martlet("user", "role", "other", "administrator", on: db).status == 0)
            #expect(await martlet("user", "role", "one", "authenticated", on: db).status == 0)
            #expect(try await users.find(one.id).role == .authenticated)
            #expect(try await users.find(other.id).role == .administrator)
        }
    }

    @Test("sessions are shown and ended")
    func sessions() async throws {
        try await withTestDatabase { db in
            let jane = try await person("jane", on: db)
            let shown = await martlet("user", "sessions", "jane", "--json", on: db)
            #expect(shown.said.json?.items.map { $0["kind"]?.string } == ["long"])
            #expect(shown.said.json?.items.first?["refreshed_at"] == .null)
            #expect(await martlet("user", "sessions", "jane", on: db).said.output.hasPrefix("ID  KIND"))
            let ended = await martlet("user", "end-sessions", "id:\(jane.id)", on: db)
            #expect(ended.said.output == "1 session of jane@example.org ended.\n")
            #expect(await martlet("user", "end-sessions", "jane", "--json", on: db).said.json?["ended"]?.number == 0)
            #expect(await martlet("user", "sessions", "jane", on: db).said.output == "There are none.\n")
            #expect(await martlet("user", "sessions", "id:999", on: db).status == 1)
            #expect(await martlet("user", "sessions", "id:x", on: db).status == 64)
        }
    }

    @Test("erase counts, and does it only when told; done again by id it finds nobody, and that is well")
    func erase() async throws {
        try await withTestDatabase { db in
            let jane = try await person("jane", on: db)
            let waited = Mutex<[Double]>([])
            func erase(_ words: String...) async -> (status: Int32, said: Transcript) {
                let transcript = Transcript()
                var command = Operator(
                    environment: ["MARTLET_DATABASE_URL": "x"], terminal: transcript.terminal(),
                    connect: { _ in TestBackend(database: db) })
                command.sleep = { seconds in waited.withLock { $0.append(seconds) } }
                return (await command.run(["user", "erase"] + words), transcript)
            }
            let counted = await erase("jane")
            #expect(counted.status == 0 && counted.said.output.hasPrefix("Nothing is changed. Of jane@example.org"))
            #expect(counted.said.output.contains("  1 session\n") && !counted.said.output.contains("files"))
            #expect(counted.said.complaints.contains("martlet user erase id:\(jane.id) --yes"))
            #expect(await erase("jane", "--json").said.json?["erased"] == .bool(false))
            #expect(try await PostgresUsers(db: db).find(jane.id).blocked == false)
            #expect(waited.withLock { $0.isEmpty })

            let done = await erase("jane", "--yes", "--json")
            #expect(done.status == 0 && done.said.json?["erased"] == .bool(true))
            #expect(done.said.json?["counts"]?["sessions"]?.number == 1)
            #expect(waited.withLock { $0 } == [PersonView.settleSeconds])
            #expect(try await PostgresUsers(db: db).findForSignIn(identifier: "jane") == nil)
            #expect(await erase("jane", "--yes").status == 1)
            let again = await erase("id:\(jane.id)", "--yes")
            #expect(again.status == 0 && again.said.complaints.contains("nothing to erase"))
        }
    }
}

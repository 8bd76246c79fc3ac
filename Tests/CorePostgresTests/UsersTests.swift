import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Users in PostgreSQL")
struct UsersTests {
    @Test("a user is stored as drafted, and found by id, address and exact name")
    func createAndFind() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let draft = try User.Draft(
                username: "Jane_Doe", email: "Jane@Example.org", password: "secret", firstName: "Jane",
                lastName: "D’Oë", phoneNumber: "+49 30 1234")
            let user = try await world.users.create(draft, passwordHash: "$argon2id$x")
            #expect(user.username == "Jane_Doe" && user.email == "jane@example.org")
            #expect(user.firstName == "Jane" && user.lastName == "D’Oë" && user.phoneNumber == "+49 30 1234")
            #expect(user.role == .authenticated && user.confirmed && !user.blocked && user.timeZone == "UTC")
            #expect(try await world.users.find(user.id) == user)

            for identifier in ["jane@example.org", "JANE@EXAMPLE.ORG", "Jane_Doe"] {
                let found = try await world.users.findForSignIn(identifier: identifier)
                #expect(found?.user == user && found?.passwordHash == "$argon2id$x", "\(identifier)")
            }
            for identifier in ["jane_doe", "Jane", "jane@example.or", "", "%", "x' OR true --"] {
                #expect(try await world.users.findForSignIn(identifier: identifier) == nil, "\(identifier)")
            }
            await refused(.notFound) { try await world.users.find(User.ID(noSuchID)) }
            await refused(.invalid) { try await world.users.findForSignIn(identifier: "a\u{0}b") }
        }
    }

    @Test("an address or a name that is taken, in any case, is a conflict in Strapi's words")
    func taken() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            _ = try await world.user("jane")
            for (name, email) in [("other", "jane@example.org"), ("jane", "a@example.org"), ("JANE", "b@example.org")] {
                let draft = try User.Draft(username: name, email: email, password: "secret")
                let error = await refused(.conflict) { try await world.users.create(draft, passwordHash: "x") }
                #expect(error?.message == "Email or Username are already taken")
            }
            #expect(try await world.count("SELECT count(*) FROM users") == 1)
        }
    }

    @Test("of many registering the same name at once, one succeeds")
    func registrationRace() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let outcomes = await atOnce(20) { number in
                let draft = try User.Draft(username: "jane", email: "jane\(number)@example.org", password: "secret")
                return try await world.users.create(draft, passwordHash: "x")
            }
            #expect(outcomes.successes().count == 1)
            #expect(outcomes.refusals() == Array(repeating: .conflict, count: 19))
        }
    }

    @Test("a change touches what it names, and only one's own picture can be linked")
    func update() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, bob) = (try await world.user("jane"), try await world.user("bob"))
            let changed = try await world.update(
                jane.id, User.Change(username: "janet", lastName: "Doe", timeZone: "Asia/Kathmandu"))
            #expect(changed.username == "janet" && changed.lastName == "Doe" && changed.timeZone == "Asia/Kathmandu")
            #expect(changed.email == jane.email && changed.firstName == jane.firstName)

            await refused(.conflict) { try await world.update(jane.id, User.Change(username: "BOB")) }
            await refused(.notFound) { try await world.update(User.ID(noSuchID), User.Change(firstName: "x")) }

            let pictures = try await db.write.rows(
                """
                INSERT INTO media (owner_id, kind, name, hash, bytes, sha256, storage_key)
                VALUES (\(bob.id), 'profile', 'b', 'b', 1, '', 'b'), (\(jane.id), 'cv', 'c', 'c', 1, '', 'c'),
                       (\(jane.id), 'profile', 'j', 'j', 1, '', 'j') RETURNING id
                """
            ) { Media.ID(try $0.get(0, as: Int64.self)) }
            for foreign in [pictures[0], pictures[1], Media.ID(noSuchID)] {
                await refused(.notFound) { try await world.update(jane.id, User.Change(profileMediaID: foreign)) }
            }
            let linked = try await world.update(jane.id, User.Change(profileMediaID: pictures[2]))
            #expect(linked.profileMediaID == pictures[2])
        }
    }

    @Test("a time zone that only Foundation knows is refused, not stored")
    func timeZone() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let user = try await world.user("jane")
            let old = try User.Change(firstName: "Jane", timeZone: "US/Pacific-New")
            let refusal = await refused(.invalid) { try await world.update(user.id, old) }
            #expect(refusal?.issues.first?.path == ["time_zone"])
            #expect(try await world.users.find(user.id) == user)
            let error = await #expect(throws: PostgresError.self) {
                try await db.write.execute("UPDATE users SET time_zone = 'Europe/Nowhere' WHERE id = \(user.id)")
            }
            #expect(error?.sqlState == "22023")
        }
    }

    @Test("a new password ends the other sessions in the same transaction")
    func setPassword() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, bob) = (try await world.user("jane"), try await world.user("bob"))
            let kept = try await world.family(jane.id, token: 1)
            let other = try await world.family(jane.id, token: 2)
            let long = try await world.sessions.start(.long, user: jane.id, refreshHash: nil, expiresAt: future)
            _ = try await world.family(bob.id, token: 3)

            try await world.users.setPassword("new", replacing: nil, of: jane.id, endingSessionsExcept: kept.id)
            #expect(try await world.users.passwordHash(of: jane.id) == "new")
            let ended = try await world.sessions.revocations(since: 0).sessions
            #expect(Set(ended.map(\.id)) == [other.id, long.id])
            #expect(ended.first { $0.id == long.id }?.expiresAt == future)
            #expect(try await world.strings("SELECT action FROM audit_log") == ["user.password"])

            await refused(.notFound) {
                try await world.users.setPassword(
                    "new", replacing: nil, of: User.ID(noSuchID), endingSessionsExcept: nil)
            }
            await refused(.notFound) { try await world.users.passwordHash(of: User.ID(noSuchID)) }
            // Nothing of a half-done change stays: the hash is refused before anything is sent.
            await refused(.invalid) {
                try await world.users.setPassword("a\u{0}b", replacing: nil, of: bob.id, endingSessionsExcept: nil)
            }
            #expect(try await world.sessions.revocations(since: 0).sessions.count == 2)
        }
    }

    @Test("a better hash is stored only in place of the hash it was made from")
    func rehash() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane", hash: "old")
            try await world.users.rehashPassword("better", replacing: "another", of: jane.id)
            #expect(try await world.users.passwordHash(of: jane.id) == "old")
            try await world.users.rehashPassword("better", replacing: "old", of: jane.id)
            #expect(try await world.users.passwordHash(of: jane.id) == "better")
        }
    }

    @Test("a block ends all sessions and lets none start; lifting it lets them start again")
    func block() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (admin, jane) = (try await world.user("admin"), try await world.user("jane"))
            let session = try await world.family(jane.id)
            try await world.users.setBlocked(true, of: jane.id, by: admin.id)
            #expect(try await world.users.find(jane.id).blocked)
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [session.id])
            await refused(.unauthenticated) { try await world.family(jane.id, token: 1) }
            await refused(.unauthenticated) {
                try await world.sessions.rotate(refreshHash: digest(0), newRefreshHash: digest(1), now: .now)
            }
            try await world.users.setBlocked(false, of: jane.id, by: admin.id)
            _ = try await world.family(jane.id, token: 1)
            let log = try await world.strings("SELECT action FROM audit_log ORDER BY id")
            #expect(log == ["user.block", "user.unblock"])
            await refused(.notFound) { try await world.users.setBlocked(true, of: User.ID(noSuchID), by: nil) }
        }
    }
}

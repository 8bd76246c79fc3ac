import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Sessions in PostgreSQL")
struct SessionsTests {
    @Test("a session starts for a user who is there, and whose password is still the one that was checked")
    func start() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane", hash: "old")
            let long = try await world.sessions.start(
                .long, user: jane.id, passwordHash: "old", refreshHash: nil, expiresAt: future)
            #expect(long.userID == jane.id && long.kind == .long && long.generation == 0 && long.expiresAt == future)
            await refused(.unauthenticated) {
                try await world.sessions.start(
                    .long, user: jane.id, passwordHash: "another", refreshHash: nil, expiresAt: future)
            }
            await refused(.unauthenticated) {
                try await world.sessions.start(.long, user: User.ID(noSuchID), refreshHash: nil, expiresAt: future)
            }
            #expect(try await world.count("SELECT count(*) FROM sessions") == 1)
        }
    }

    @Test("20 refreshes at once with one token stay one family, and each gets a token that works")
    func parallelRefreshes() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            let family = try await world.family(jane.id)
            let now = Date.now
            let outcomes = await atOnce(20) { number in
                try await world.sessions.rotate(
                    refreshHash: digest(0), newRefreshHash: digest(UInt8(number + 1)), now: now)
            }
            let sessions = outcomes.successes()
            #expect(sessions.count == 20)
            #expect(Set(sessions.map(\.id)) == [family.id])
            #expect(Set(sessions.map(\.generation)) == [1])

            let used = await atOnce(20) { number in
                try await world.sessions.rotate(
                    refreshHash: digest(UInt8(number + 1)), newRefreshHash: digest(UInt8(number + 1), 1),
                    now: now.addingTimeInterval(1))
            }
            #expect(used.successes().count == 20)
            #expect(Set(used.successes().map(\.generation)) == [2])
            #expect(try await world.sessions.revocations(since: 0).sessions.isEmpty)
        }
    }

    @Test("the former token works to the last second of the grace; after it, a replay ends the family")
    func replay() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let (family, bystander) = (try await world.family(jane.id), try await world.family(jane.id, token: 99))
            let now = Date(timeIntervalSince1970: 1_790_000_000)
            func rotate(_ old: UInt8, _ new: UInt8, after seconds: Double) async throws -> Core.Session {
                try await world.sessions.rotate(
                    refreshHash: digest(old), newRefreshHash: digest(new), now: now.addingTimeInterval(seconds))
            }
            #expect(try await rotate(0, 1, after: 0).generation == 1)
            #expect(try await rotate(0, 2, after: 60).generation == 1)
            #expect(try await world.sessions.revocations(since: 0).sessions.isEmpty)

            await refused(.unauthenticated) { try await rotate(0, 3, after: 60.1) }
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [family.id])
            // Whoever it is, thief or owner, has nothing any more; the user's other session lives.
            for (token, next) in [(1, 4), (2, 5), (0, 6)] as [(UInt8, UInt8)] {
                await refused(.unauthenticated) { try await rotate(token, next, after: 61) }
            }
            #expect(try await rotate(99, 7, after: 61).id == bystander.id)
            #expect(try await world.sessions.revocations(since: 0).sessions.count == 1)
        }
    }

    @Test("a token of two generations ago is a replay even within the grace")
    func oldReplay() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let family = try await world.family(jane.id)
            let now = Date.now
            for step in 0..<2 {
                _ = try await world.sessions.rotate(
                    refreshHash: digest(UInt8(step)), newRefreshHash: digest(UInt8(step + 1)), now: now)
            }
            await refused(.unauthenticated) {
                try await world.sessions.rotate(refreshHash: digest(0), newRefreshHash: digest(9), now: now)
            }
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [family.id])
        }
    }

    @Test("unknown and expired tokens are refused, and end nothing")
    func refusedTokens() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            _ = try await world.family(jane.id)
            await refused(.unauthenticated) {
                try await world.sessions.rotate(refreshHash: digest(5), newRefreshHash: digest(6), now: .now)
            }
            await refused(.unauthenticated) {
                try await world.sessions.rotate(refreshHash: digest(0), newRefreshHash: digest(6), now: future)
            }
            #expect(try await world.sessions.revocations(since: 0).sessions.isEmpty)
        }
    }

    @Test("ending is the owner's, is done once, and wakes once")
    func end() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, bob) = (try await world.user("jane"), try await world.user("bob"))
            let (first, second) = (try await world.family(jane.id, token: 1), try await world.family(jane.id, token: 2))
            let (wakes, feed) = AsyncStream.makeStream(of: String.self)
            let listener = try await db.listen(["martlet_session"], onWake: { feed.yield($0.payload) }, onReconnect: {})

            try await world.sessions.end(first.id, user: bob.id)
            #expect(try await world.sessions.revocations(since: 0).sessions.isEmpty)
            try await world.sessions.end(first.id, user: jane.id)
            try await world.sessions.end(first.id, user: jane.id)
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [first.id])
            try await world.sessions.endAll(user: jane.id)
            try await world.sessions.endAll(user: jane.id)
            #expect(Set(try await world.sessions.revocations(since: 0).sessions.map(\.id)) == [first.id, second.id])

            // Notifications arrive in the order of commits: the mark comes after all wakes.
            _ = try await db.write.execute("SELECT pg_notify('martlet_session', 'mark')")
            var payloads: [String] = []
            for await payload in wakes {
                payloads.append(payload)
                if payload == "mark" { break }
            }
            await listener.stop()
            #expect(payloads == ["", "", "mark"])
        }
    }

    @Test("a revocation that commits late, in a transaction that began early, is not passed over")
    func lateCommit() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 4 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            let (early, late) = (try await world.family(jane.id, token: 1), try await world.family(jane.id, token: 2))
            let start = try await world.sessions.revocations(since: 0)

            // One transaction writes its revocation and stays open while another begins after it and commits before it.
            let after = try await db.transaction { transaction in
                _ = try await transaction.execute(
                    "INSERT INTO session_revocations (session_id, expires_at) VALUES (\(early.id), \(future))")
                try await world.sessions.end(late.id, user: jane.id)
                let meanwhile = try await world.sessions.revocations(since: start.bound)
                #expect(meanwhile.sessions.map(\.id) == [late.id])
                return meanwhile.bound
            }
            let then = try await world.sessions.revocations(since: after)
            #expect(then.sessions.map(\.id).contains(early.id))
            #expect(then.bound >= after && after >= start.bound)
        }
    }

    @Test("a sign-in that races with a change of password or a block starts nothing that outlives it")
    func signInRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 4 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane", hash: "old")
            for change: SQL in ["UPDATE users SET password_hash = 'new'", "UPDATE users SET blocked = true"] {
                _ = try await db.write.execute("UPDATE users SET password_hash = 'old', blocked = false")
                let signIn = try await db.transaction { transaction in
                    _ = try await transaction.execute(change)
                    let signIn = Task {
                        try await world.sessions.start(
                            .long, user: jane.id, passwordHash: "old", refreshHash: nil, expiresAt: future)
                    }
                    // It has checked the password, and stands before the lock.
                    try await world.waitForLockWaiter()
                    return signIn
                }
                await refused(.unauthenticated) { try await signIn.value }
            }
            #expect(try await world.count("SELECT count(*) FROM sessions") == 0)
        }
    }

    @Test("prune deletes what is past its time, by portions, and nothing else")
    func prune() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            for number in 0..<3 {
                let old = try await world.sessions.start(
                    .family, user: jane.id, refreshHash: digest(UInt8(number)),
                    expiresAt: Date.now.addingTimeInterval(-7200))
                try await world.sessions.end(old.id, user: jane.id)
            }
            let live = try await world.family(jane.id, token: 9)
            _ = try await db.write.execute("UPDATE session_revocations SET expires_at = now() - interval '2 hours'")
            try await world.sessions.end(live.id, user: jane.id)

            #expect(try await world.sessions.prune(limit: 2) == 2)
            #expect(try await world.sessions.prune(limit: 2) == 1)
            #expect(try await world.sessions.prune(limit: 2) == 0)
            #expect(try await world.count("SELECT count(*) FROM sessions") == 1)
            #expect(try await world.count("SELECT count(*) FROM session_refresh_tokens") == 1)
            #expect(try await world.sessions.revocations(since: 0).sessions.map(\.id) == [live.id])
        }
    }
}

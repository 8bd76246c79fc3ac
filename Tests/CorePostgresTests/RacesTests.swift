import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Races and losses")
struct RacesTests {
    @Test("after a session has ended no token of it works, however many refreshes were under way")
    func endDuringRefreshes() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            for round in 0..<10 {
                let first = digest(0, UInt8(round))
                let family = try await world.sessions.start(
                    .family, user: jane.id, refreshHash: first, expiresAt: future)
                let outcomes = await atOnce(12) { number in
                    guard number != 6 else {
                        try await world.sessions.end(family.id, user: jane.id)
                        return [UInt8]?.none
                    }
                    let next = digest(UInt8(number + 1), UInt8(round))
                    _ = try await world.sessions.rotate(refreshHash: first, newRefreshHash: next, now: .now)
                    return next
                }
                #expect(Set(outcomes.refusals()).isSubset(of: [.unauthenticated]))
                for token in outcomes.successes().compactMap({ $0 }) + [first] {
                    await refused(.unauthenticated) {
                        try await world.sessions.rotate(
                            refreshHash: token, newRefreshHash: digest(99, UInt8(round)), now: .now)
                    }
                }
            }
            #expect(try await world.sessions.revocations(since: 0).sessions.count == 10)
        }
    }

    @Test("of changes of a password that checked the same one, one is made, and the others change nothing")
    func passwordChanges() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane", hash: "hash 0")
            for round in 1...5 {
                let former = try #require(try await world.users.passwordHash(of: jane.id))
                let outcomes = await atOnce(6) { number in
                    let hash = "hash \(round) \(number)"
                    try await world.users.setPassword(
                        hash, replacing: former, of: jane.id, endingSessionsExcept: nil)
                    return hash
                }
                let made = outcomes.successes()
                #expect(made.count == 1 && outcomes.refusals() == Array(repeating: .conflict, count: 5))
                #expect(try await world.users.passwordHash(of: jane.id) == made.first)
                #expect(try await world.strings("SELECT action FROM audit_log").count == round)
            }
            // A reset meanwhile, or an operator's word, is not undone either; and what is present is replaced.
            try await world.users.setPassword("reset", replacing: nil, of: jane.id, endingSessionsExcept: nil)
            await refused(.conflict) {
                try await world.users.setPassword("late", replacing: "hash 0", of: jane.id, endingSessionsExcept: nil)
            }
            try await world.users.setPassword("next", replacing: "reset", of: jane.id, endingSessionsExcept: nil)
            #expect(try await world.users.passwordHash(of: jane.id) == "next")
        }
    }

    @Test("a reader that follows the bound misses no revocation of many that commit in any order")
    func revocationsFollowed() async throws {
        try await withTestDatabase(configure: {
            $0.writeMax = 4
            $0.leasedMax = 6
        }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            var ids: [Core.Session.ID] = []
            for _ in 0..<60 {
                ids.append(
                    try await world.sessions.start(
                        .long, user: jane.id, refreshHash: nil, expiresAt: future
                    ).id)
            }
            let all = ids
            let follower = Task {
                var seen: Set<Core.Session.ID> = []
                var bound: UInt64 = 0
                try await eventually {
                    let news = try await world.sessions.revocations(since: bound)
                    #expect(news.bound >= bound)
                    bound = news.bound
                    seen.formUnion(news.sessions.map(\.id))
                    return seen.count >= all.count
                }
                return seen
            }
            _ = await atOnce(all.count) { number in
                guard number.isMultiple(of: 3) else { return try await world.sessions.end(all[number], user: jane.id) }
                // A third commit late: they have written, and let others overtake them.
                try await db.transaction { transaction in
                    _ = try await transaction.execute(
                        "INSERT INTO session_revocations (session_id, expires_at) VALUES (\(all[number]), \(future))")
                    _ = try await world.sessions.revocations(since: 0)
                    _ = try await transaction.execute("SELECT 1")
                }
            }
            #expect(try await follower.value == Set(all))
        }
    }

    @Test("applying while the posting is deleted leaves neither application nor CV, and each stored file is deleted")
    func deleteDuringApplying() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let scene = try await Scene(db)
            let world = scene.world
            var people: [User] = []
            for number in 0..<16 { people.append(try await world.user("person\(number)")) }
            let applicants = people
            let outcomes = await atOnce(17) { number -> Bool in
                guard number != 8 else {
                    _ = try await world.postings.delete(scene.posting.id, editor: scene.representative.id)
                    return false
                }
                _ = try await world.apply(applicants[number > 8 ? number - 1 : number], to: scene.posting)
                return true
            }
            #expect(Set(outcomes.refusals()).isSubset(of: [.notFound]))
            #expect(try await world.count("SELECT count(*) FROM applications") == 0)
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
            let keys = try await world.count(
                """
                SELECT coalesce(sum(jsonb_array_length(payload -> 'keys')), 0)::bigint FROM work_items
                WHERE kind = 'delete_files'
                """)
            #expect(keys == outcomes.successes().filter { $0 }.count)
        }
    }

    @Test("an acceptance whose connection dies is unavailable, leaves nothing, and can be tried again")
    func lostConnection() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 4 }) { db, database in
            let scene = try await Scene(db)
            let world = scene.world
            let application = try await scene.applied()
            try await db.transaction { transaction in
                _ = try await transaction.execute("SELECT id FROM applications FOR UPDATE")
                let waiting = Task {
                    try await world.applications.move(
                        application.id, to: .accepted, actor: scene.representative.id)
                }
                try await world.waitForLockWaiter()
                try await database.run(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'
                    """)
                await refused(.unavailable) { try await waiting.value }
            }
            #expect(try await world.find(application.id, viewer: scene.applicant.id) == application)
            let again = try await world.applications.move(
                application.id, to: .accepted, actor: scene.representative.id)
            #expect(again.application.status == .accepted)
        }
    }

    @Test("a change that waits too long for another's lock is unavailable, not a hang")
    func lockTimeout() async throws {
        try await withTestDatabase(configure: {
            $0.leasedMax = 4
            $0.lockMilliseconds = 50
        }) { db, _ in
            let scene = try await Scene(db)
            try await db.transaction { transaction in
                _ = try await transaction.execute("SELECT id FROM job_postings FOR UPDATE")
                await refused(.unavailable) {
                    try await scene.world.postings.delete(scene.posting.id, editor: scene.representative.id)
                }
                await refused(.unavailable) { try await scene.applied() }
            }
            #expect(try await scene.world.count("SELECT count(*) FROM media") == 0)
            _ = try await scene.applied()
        }
    }
}

import Core
import Foundation
import Postgres
import TestSupport
import Testing

@testable import CorePostgres

/// Somebody with everything, and a word in all of it that is nobody else's.
private struct Canary {
    static let word = "canary"

    let scene: Scene
    let ada: User
    let room: Room.ID

    var world: World { scene.world }
    var people: PostgresPeople { PostgresPeople(db: world.db) }
    var rooms: PostgresRooms { PostgresRooms(db: world.db) }

    init(_ db: Database, _ test: TestDatabase) async throws {
        scene = try await Scene(db)
        let world = scene.world
        let draft = try User.Draft(
            username: "canary_ada", email: "canary@example.org", password: "secret", firstName: "canary",
            lastName: "canary", phoneNumber: "+49 canary")
        ada = try await world.users.create(draft, passwordHash: "hash canary", confirmation: nil)
        _ = try await world.family(ada.id)
        for kind in [Media.Kind.profile, .attachment] {
            let media = try await world.media.create(file(kind, "canary_\(kind)"), owner: ada.id)
            _ = try await world.media.finish(
                media.id, ready(text: "canary", variants: [variant("small", "canary_\(kind)_small")]))
        }
        let application = try await world.apply(ada, to: scene.posting)
        _ = try await world.applications.move(application.id, to: .accepted, actor: scene.representative.id)
        room = Room.ID(try #require(Int64(try await test.run("SELECT id FROM rooms")[0][0] ?? "")))
        try await Self.talk(world, ada: ada.id, other: scene.representative.id, room: room)
        _ = try await PostgresAlerts(db: db).create(
            JobAlert.Draft(name: "canary", search: PostingSearch(q: "canary engineer"), cadence: .instant),
            owner: ada.id)
        try await test.run(
            """
            INSERT INTO mails (message_id, user_id, kind) VALUES ('m1', \(ada.id), 'alert_instant');
            INSERT INTO account_mails (message_id, kind, address, created_at, expires_at)
            VALUES ('m2', 'reset', 'canary@example.org', now(), now() + interval '1 hour');
            INSERT INTO mail_suppressions (address, reason) VALUES ('canary@example.org', '550 no such canary');
            INSERT INTO work_dead (id, kind, payload, attempts, last_error, created_at)
            SELECT 900, 'send_mail', jsonb_build_object('mail_id', id), 12,
              '550 <canary@example.org>', now() FROM mails;
            INSERT INTO work_items (kind, payload, last_error, waiting, run_at)
            SELECT 'send_account_mail', jsonb_build_object('mail_id', id), '450 <canary@example.org>', true, now()
            FROM account_mails;
            INSERT INTO chat_presence (user_id, run) VALUES (\(ada.id), 1);
            UPDATE application_events SET note = 'canary' WHERE actor_id = \(ada.id);
            DELETE FROM work_items WHERE kind IN ('process_upload', 'match_alerts')
            """)
    }

    private static func talk(_ world: World, ada: User.ID, other: User.ID, room: Room.ID) async throws {
        let rooms = PostgresRooms(db: world.db)
        let number = Int(room.value)
        for (sender, id, body) in [(ada, "canary1", "a canary"), (other, "b", "hello"), (ada, "canary2", "canaries")] {
            _ = try await rooms.send([draft(number, Int(sender.value), id, body)], notify: nil)
        }
        _ = try await rooms.send(
            [
                try Message.Draft(roomID: room, senderID: ada, clientID: "canary3", content: .edit(2, "the canary"))
            ], notify: nil)
    }

    /// Begins an erasure, and a send that waits for its room until the erasure is over.
    /// - Returns: the erasure, still under way or not, and the number of the message.
    func eraseDuringSend() async throws -> (erasing: Task<Erasure, any Error>, seq: Int64) {
        let (people, rooms, ada) = (people, rooms, ada.id)
        let late = try draft(Int(room.value), Int(ada.value), "canary9", "canary")
        let (erasing, sending) = try await world.db.transaction { transaction in
            // The erasure is done with the rooms and stands before the person's own row.
            try await transaction.execute("LOCK TABLE room_members IN SHARE MODE")
            let erasing = Task { try await people.erase(ada) }
            try await world.waitForLockWaiter()
            let sending = Task { try await rooms.send([late], notify: nil) }
            try await world.waitForLockWaiter(atLeast: 2)
            return (erasing, sending)
        }
        let seq: Int64? = if case .sent(let seq, _) = try await sending.value[0] { seq } else { nil }
        return (erasing, try #require(seq, "it was not to be stored; then this tests nothing"))
    }

    /// Where the word still is: tables, with the number of rows.
    static func left(in test: TestDatabase) async throws -> [String] {
        let tables = try await test.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1")
        var found: [String] = []
        for table in tables.compactMap(\.first).compactMap(\.self) {
            let rows = try await test.run("SELECT count(*) FROM \(table) t WHERE t::text ILIKE '%\(word)%'")
            if rows[0][0] != "0" { found.append("\(table) \(rows[0][0] ?? "")") }
        }
        return found
    }
}

@Suite("Erasing people in PostgreSQL")
struct ErasureTests {
    @Test("nothing of somebody is left in any table; their files are handed to be deleted, others' words stay")
    func erase() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let before = try await Canary.left(in: test)
            #expect(before.count > 10, "\(before)")
            let counted = try await canary.people.erasure(of: canary.ada.id)
            #expect(try await Canary.left(in: test) == before)
            #expect(counted.sessions == 1 && counted.files == 3 && counted.fileBytes == 19 && counted.applications == 1)
            #expect(counted.alerts == 1 && counted.mails == 2 && counted.rooms == 1 && counted.messages == 3)
            #expect(counted.postings == 0)

            #expect(try await canary.people.erase(canary.ada.id) == counted)
            let left = try await Canary.left(in: test)
            // The work that deletes the files names them.
            #expect(left.allSatisfy { $0.hasPrefix("work_items ") }, "\(left)")
            let keys = try await test.run(
                """
                SELECT k FROM work_items, jsonb_array_elements_text(payload -> 'keys') k
                WHERE kind = 'delete_files' ORDER BY 1
                """
            ).compactMap(\.first).compactMap(\.self)
            #expect(keys.count == 5 && keys.filter { $0.hasPrefix("va/") }.count == 2)
            #expect(try await test.run("SELECT count(*) FROM session_revocations")[0][0] == "1")
            await refused(.notFound) { try await canary.people.erase(canary.ada.id) }
            await refused(.notFound) { try await canary.people.erasure(of: canary.ada.id) }
        }
    }

    @Test("whoever shares a room sees that texts were deleted, under numbers without a gap, and no name")
    func rooms() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let (room, other) = (canary.room, canary.scene.representative.id)
            _ = try await canary.people.erase(canary.ada.id)
            let page = try await canary.rooms.history(room: room, from: .newest, limit: 50, viewer: other)
            #expect(page.messages.map(\.isDeleted) == [false, true, false, true])
            #expect(page.messages.map(\.message.body) == [Message.acceptedBody, "", "hello", ""])
            let all = try await canary.rooms.messages(after: [(room: room, seq: 0)], limitPerRoom: 50)
            #expect(all.map(\.seq) == Array(1...7) && all.suffix(2).map(\.kind) == [.delete, .delete])
            #expect(all.suffix(2).map(\.targetSeq) == [2, 4] && all.suffix(2).map(\.senderID) == [.init(0), .init(0)])
            let mine = try await canary.rooms.rooms(of: other, limit: 9)
            #expect(mine.map(\.wireName) == ["rep‐one_\(room)_deleted-\(canary.ada.id)"] && mine[0].lastSeq == 7)
            #expect(try await canary.rooms.members(of: [room])[room]?.map(\.user) == [other])
            #expect(try await canary.rooms.changes(since: 0).rooms[room] == 7)
        }
    }

    @Test("a representative's company stays; alone, its postings are closed and it has no logo; else a colleague's")
    func companies() async throws {
        try await withTestDatabase { db, test in
            let scene = try await Scene(db)
            let (world, representative) = (scene.world, scene.representative)
            let people = PostgresPeople(db: db)
            let company = scene.posting.company.id
            try await test.run(
                """
                UPDATE companies SET email = 'Rep_one@example.org', phone = '123' WHERE id = \(company);
                UPDATE users SET phone_number = '' WHERE id = \(representative.id)
                """)
            let media = try await world.media.create(file(.logo, "logo"), owner: representative.id)
            _ = try await world.media.attach(media.id, to: .logo(company), owner: representative.id)
            let colleague = try await scene.recruiter("colleague")
            let erasure = try await people.erase(representative.id)
            #expect(erasure.postings == 0)
            #expect(try await world.find(scene.posting.id, viewer: nil).state == .published)
            #expect(
                try await test.run("SELECT owner_id, name FROM media WHERE id = \(media.id)")
                    == [["\(colleague.id)", "logo"]])
            #expect(try await test.run("SELECT email, phone FROM companies WHERE id = \(company)") == [["", "123"]])
            #expect(try await people.erase(colleague.id).postings == 1)
            #expect(try await test.run("SELECT state FROM job_postings") == [["closed"]])
            #expect(try await test.run("SELECT count(*) FROM posting_search") == [["0"]])
            #expect(
                try await test.run("SELECT logo_media_id FROM companies WHERE id = \(company)") == [[nil]])
        }
    }

    @Test("what is still under way when somebody is erased finds nobody, and leaves nothing")
    func races() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let (world, ada) = (canary.world, canary.ada.id)
            let pending = try await world.media.create(file(.attachment, "canary_late"), owner: ada)
            // Somebody is just writing a row of theirs: the erasure waits, and takes that too.
            let begun = Signal<Void>()
            let erasing = Task {
                try await begun.wait(count: 1)
                return try await canary.people.erase(ada)
            }
            try await db.transaction { transaction in
                _ = try await transaction.batch([
                    """
                    INSERT INTO media (owner_id, kind, name, hash, bytes, sha256, storage_key)
                    VALUES (\(ada), 'cv', 'canary', 'canary_x', 3, \(digest(1)), 'up/canary_x')
                    """
                ])
                begun.send(())
                try await world.waitForLockWaiter()
            }
            #expect(try await erasing.value.files == 5)
            // A worker that has it in its hands.
            #expect(try await world.media.finish(pending.id, ready(text: "canary")) == false)
            await refused(.notFound) { try await world.media.create(file(.cv, "canary_y"), owner: ada) }
            await refused(.notFound) { try await world.apply(canary.ada, to: canary.scene.posting) }
            await refused(.unauthenticated) { try await world.family(ada, token: 9) }
            await refused(.unauthenticated) {
                try await PostgresAlerts(db: db).create(
                    JobAlert.Draft(name: "canary", search: PostingSearch(q: "canary"), cadence: .daily), owner: ada)
            }
            let late = try await canary.rooms.send(
                [draft(Int(canary.room.value), Int(ada.value), "canary9", "canary")], notify: nil)
            #expect(late == [.forbidden])
            #expect(try await Canary.left(in: test).allSatisfy { $0.hasPrefix("work_items ") })
        }
    }

    @Test("a send that waits for its room while its sender is erased leaves a number, and a deletion follows it")
    func lateSend() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let (erasing, seq) = try await canary.eraseDuringSend()
            _ = try await erasing.value
            let left = try await Canary.left(in: test)
            #expect(left.allSatisfy { $0.hasPrefix("work_items ") }, "\(left)")
            let all = try await canary.rooms.messages(after: [(room: canary.room, seq: 0)], limitPerRoom: 50)
            #expect(seq == 8 && all.map(\.seq) == Array(1...9) && all.last?.targetSeq == seq)
        }
    }

    @Test("broken off after its transaction, an erasure is brought to its end by another one, which does it once")
    func brokenOff() async throws {
        try await withTestDatabase(configure: fourLeased) { db, test in
            let canary = try await Canary(db, test)
            let (world, people, rooms) = (canary.world, canary.people, canary.rooms)
            let (ada, room) = (canary.ada.id, canary.room)
            #expect(try await people.finishErasure(of: ada) == 0, "nobody was erased yet")
            try await db.transaction { older in
                // A send of another instance, which the erasure waits for.
                try await older.execute("SET LOCAL application_name = 'other/write'")
                let erasing = try await canary.eraseDuringSend().erasing
                #expect(try await world.count("SELECT count(*) FROM users WHERE id = \(ada)") == 0)
                erasing.cancel()
                await #expect(throws: (any Error).self) { try await erasing.value }
            }
            #expect(try await Canary.left(in: test).contains { $0.hasPrefix("messages") })
            #expect(try await people.finishErasure(of: ada) == 1)
            let left = try await Canary.left(in: test)
            #expect(left.allSatisfy { $0.hasPrefix("work_items ") }, "\(left)")
            let all = try await rooms.messages(after: [(room: room, seq: 0)], limitPerRoom: 50)
            #expect(all.map(\.seq) == Array(1...9) && all.last?.targetSeq == 8)
            #expect(try await people.finishErasure(of: ada) == 0)
        }
    }

    @Test("an erasure that waits for rooms has nothing of messages yet: a migration of both goes on")
    func orderOfLocks() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let (world, people, ada) = (canary.world, canary.people, canary.ada.id)
            let erasing = try await db.transaction { migration in
                try await migration.execute("LOCK TABLE rooms IN ACCESS EXCLUSIVE MODE")
                let erasing = Task { try await people.erase(ada) }
                try await world.waitForLockWaiter()
                try await migration.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE NOWAIT")
                return erasing
            }
            #expect(try await erasing.value.messages == 3)
        }
    }

    @Test("the rooms of somebody who is erased go on while the queue and others' applications are looked through")
    func roomsGoOn() async throws {
        try await withTestDatabase(configure: fourLeased) { db, test in
            let canary = try await Canary(db, test)
            let (world, people, ada) = (canary.world, canary.people, canary.ada.id)
            let other = canary.scene.representative.id
            func talk(whileItWaitsFor table: String) async throws {
                try await eventually {
                    try await world.count(
                        """
                        SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                        WHERE d.datname = current_database() AND NOT l.granted
                          AND l.relation = to_regclass(\(table)::text)
                        """) == 1
                }
                let sent = try await canary.rooms.send(
                    [draft(Int(canary.room.value), Int(other.value), table)], notify: nil)
                if case .sent = sent[0] { return }
                Issue.record("\(sent)")
            }
            let erasing = try await db.transaction { outer in
                try await outer.execute("LOCK TABLE application_events IN SHARE MODE")
                let erasing = try await db.transaction { inner in
                    try await inner.execute("LOCK TABLE work_dead IN SHARE MODE")
                    let erasing = Task { try await people.erase(ada) }
                    try await talk(whileItWaitsFor: "work_dead")
                    return erasing
                }
                try await talk(whileItWaitsFor: "application_events")
                return erasing
            }
            #expect(try await erasing.value.rooms == 1)
        }
    }

    @Test("of many who erase the same person one does, and no two take the last administrators away")
    func atOnceTests() async throws {
        try await withTestDatabase { db, test in
            let canary = try await Canary(db, test)
            let people = canary.people
            let outcomes = await atOnce(5) { _ in try await people.erase(canary.ada.id) }
            #expect(outcomes.successes().count == 1 && outcomes.refusals().allSatisfy { $0 == .notFound })

            let (one, other) = (canary.scene.rival.id, canary.scene.stranger.id)
            for id in [one, other] { try await people.setRole(.administrator, of: id) }
            let users = canary.world.users
            let ends = await atOnce(6) { number in
                let id = number.isMultiple(of: 2) ? one : other
                switch number / 2 {
                case 0: try await people.setRole(.authenticated, of: id)
                case 1: try await users.setBlocked(true, of: id, by: nil)
                default: _ = try await people.erase(id)
                }
            }
            #expect(ends.refusals().contains(.conflict))
            #expect(
                try await test.run("SELECT count(*) FROM users WHERE role = 'administrator' AND NOT blocked")[0][0]
                    == "1")
        }
    }

    @Test("people are listed by role, block and a part of what they are called, a page at a time")
    func list() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let people = PostgresPeople(db: db)
            try await people.setRole(.administrator, of: scene.rival.id)
            try await scene.world.users.setBlocked(true, of: scene.stranger.id, by: nil)
            func names(_ filter: UserFilter, after: User.ID? = nil, limit: Int = 9) async throws -> [String] {
                try await people.list(filter, after: after, limit: limit).map(\.username)
            }
            let all = try await names(UserFilter())
            #expect(all == ["rep_one", "jane", "stranger", "rival"])
            #expect(try await names(UserFilter(), limit: 2) == ["rep_one", "jane"])
            #expect(try await names(UserFilter(), after: scene.applicant.id) == ["stranger", "rival"])
            #expect(try await names(UserFilter(role: .administrator)) == ["rival"])
            #expect(try await names(UserFilter(blocked: true)) == ["stranger"])
            #expect(try await names(UserFilter(blocked: false)).count == 3)
            #expect(try await names(UserFilter(part: "P_ON")) == ["rep_one"])
            #expect(try await names(UserFilter(part: "%")).isEmpty)
            _ = try await scene.world.family(scene.applicant.id, token: 1)
            let sessions = try await people.sessions(of: scene.applicant.id, limit: 10)
            #expect(sessions.count == 1 && sessions[0].kind == .family && sessions[0].refreshedAt == nil)
            #expect(try await people.endSessions(of: scene.applicant.id) == 1)
            #expect(try await people.endSessions(of: scene.applicant.id) == 0)
            #expect(try await people.sessions(of: scene.applicant.id, limit: 10).isEmpty)
            await refused(.notFound) { try await people.endSessions(of: User.ID(noSuchID)) }
            await refused(.notFound) { try await people.setRole(.administrator, of: User.ID(noSuchID)) }
            await refused(.conflict) { try await people.setRole(.authenticated, of: scene.rival.id) }
            await refused(.conflict) { try await people.erasure(of: scene.rival.id) }
        }
    }
}

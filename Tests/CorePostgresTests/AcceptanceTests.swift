import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Acceptances in PostgreSQL")
struct AcceptanceTests {
    @Test("accepting opens a room for both sides, with its name and first message, and wakes the chat once")
    func accept() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            let recruiter = try await scene.recruiter("rita")
            let application = try await scene.applied()
            let (wakes, feed) = AsyncStream.makeStream(of: String.self)
            let listener = try await db.listen(["martlet_chat"], onWake: { feed.yield($0.payload) }, onReconnect: {})

            let accepted = try await world.applications.move(application.id, to: .accepted, actor: recruiter.id)
            let room = try #require(accepted.application.roomID)
            _ = try await world.applications.move(application.id, to: .accepted, actor: recruiter.id)
            _ = try await db.write.execute("SELECT pg_notify('martlet_chat', 'mark')")
            var payloads: [String] = []
            for await payload in wakes {
                payloads.append(payload)
                if payload == "mark" { break }
            }
            await listener.stop()
            #expect(payloads == ["", "mark"])

            #expect(try await world.strings("SELECT wire_name FROM rooms") == ["rep\u{2010}one_\(room)_jane"])
            let members = try await db.short.rows("SELECT user_id FROM room_members ORDER BY user_id") {
                User.ID(try $0.get(0, as: Int64.self))
            }
            #expect(members == [scene.representative.id, scene.applicant.id, recruiter.id].sorted())
            #expect(
                try await world.strings(
                    "SELECT concat_ws('|', room_id, seq, sender_id, kind, body) FROM messages") == [
                        "\(room)|1|0|system|Application accepted"
                    ])
            #expect(try await world.count("SELECT last_seq FROM rooms") == 1)
            #expect(try await world.count("SELECT room_ids[1] FROM room_changes") == Int(room.value))
            #expect(try await world.count("SELECT count(*) FROM room_changes") == 1)
        }
    }

    @Test("20 acceptances at once make one room with one message, and are recorded once")
    func acceptRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let scene = try await Scene(db)
            let world = scene.world
            let application = try await scene.applied()
            let outcomes = await atOnce(20) { _ in
                try await world.applications.move(application.id, to: .accepted, actor: scene.representative.id)
            }
            #expect(outcomes.successes().count == 20)
            #expect(Set(outcomes.successes().map(\.application.roomID)).count == 1)
            #expect(outcomes.successes().allSatisfy { $0.application.roomID != nil })
            for count: SQL in [
                "SELECT count(*) FROM rooms", "SELECT count(*) FROM messages", "SELECT count(*) FROM room_changes",
                "SELECT count(*) FROM application_events WHERE kind = 'accepted'",
            ] { #expect(try await world.count(count) == 1) }
        }
    }

    @Test("acceptances, refusals and withdrawals at once leave a history that could have happened")
    func mixedRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let scene = try await Scene(db)
            let world = scene.world
            for number in 0..<8 {
                let posting = try await world.posting("Posting \(number)", by: scene.representative.id)
                let application = try await world.apply(scene.applicant, to: posting)
                let moves: [(Application.Status, User.ID)] = [
                    (.accepted, scene.representative.id), (.declined, scene.representative.id),
                    (.withdrawn, scene.applicant.id),
                ]
                let outcomes = await atOnce(12) { index in
                    let (status, actor) = moves[index % 3]
                    return try await world.applications.move(application.id, to: status, actor: actor)
                }
                #expect(Set(outcomes.refusals()).isSubset(of: [.conflict]))
                let history = try await world.applications.history(application.id, viewer: scene.applicant.id)
                let steps = history.compactMap { Application.Status(rawValue: $0.kind) }
                for (from, to) in zip(steps, steps.dropFirst()) { #expect(Application.mayMove(from: from, to: to)) }
                let last = try await world.find(application.id, viewer: scene.applicant.id)
                #expect(last.status == steps.last)
                #expect((last.roomID != nil) == steps.contains(.accepted))
            }
        }
    }

    @Test("what fails in the middle of an acceptance leaves nothing of it")
    func halfway() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            let application = try await scene.applied()
            _ = try await db.write.execute("ALTER TABLE room_changes ADD CONSTRAINT nothing CHECK (at IS NULL)")
            await #expect(throws: PostgresError.self) {
                try await world.applications.move(application.id, to: .accepted, actor: scene.representative.id)
            }
            #expect(try await world.find(application.id, viewer: scene.applicant.id) == application)
            #expect(try await world.count("SELECT count(*) FROM rooms") == 0)
            #expect(try await world.count("SELECT count(*) FROM messages") == 0)
            _ = try await db.write.execute("ALTER TABLE room_changes DROP CONSTRAINT nothing")
            let accepted = try await world.applications.move(
                application.id, to: .accepted, actor: scene.representative.id)
            #expect(accepted.application.roomID != nil)
        }
    }
}

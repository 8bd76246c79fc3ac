import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// A company with a posting, its representative, an applicant and two strangers, one with a company.
struct Scene {
    let world: World
    let representative: User
    let applicant: User
    let stranger: User
    let rival: User
    let posting: JobPosting

    init(_ db: Database) async throws {
        world = World(db)
        representative = try await world.user("rep_one")
        applicant = try await world.user("jane")
        stranger = try await world.user("stranger")
        rival = try await world.user("rival")
        _ = try await world.company("Acme", of: representative.id)
        _ = try await world.company("Rival", of: rival.id)
        posting = try await world.posting("Engineer", by: representative.id)
        _ = try await db.write.execute("DELETE FROM work_items")
    }

    var strangers: [User.ID] { [stranger.id, rival.id, User.ID(noSuchID)] }

    func applied() async throws -> Application { try await world.apply(applicant, to: posting) }

    func apply(to posting: JobPosting.ID, as user: User.ID, at now: Date) async throws -> Application {
        try await world.applications.create(posting: posting, applicant: user, cv: file(.cv, "cv"), now: now)
    }

    func recruiter(_ name: String) async throws -> User {
        let user = try await world.user(name)
        _ = try await world.db.write.execute(
            """
            INSERT INTO company_members (company_id, user_id, role)
            VALUES (\(posting.company.id), \(user.id), 'recruiter')
            """)
        return user
    }
}

@Suite("Applications in PostgreSQL")
struct ApplicationsTests {
    @Test("an application, its CV, its first event and the work on the CV are one transaction")
    func create() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let application = try await scene.applied()
            #expect(application.status == .initiated && application.postingID == scene.posting.id)
            #expect(application.applicantID == scene.applicant.id && application.roomID == nil)
            #expect(application.cv.kind == .cv && application.cv.state == .pending)
            #expect(try await scene.world.items() == [#"process_upload {"media_id": \#(application.cv.id)}"#])
            let history = try await scene.world.applications.history(application.id, viewer: scene.applicant.id)
            #expect(history.map(\.kind) == ["initiated"] && history[0].actorID == scene.applicant.id)
        }
    }

    @Test("50 applications at once of one person to one posting are one; the others are told of it")
    func createRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let scene = try await Scene(db)
            let outcomes = await atOnce(50) { number in
                try await scene.world.applications.create(
                    posting: scene.posting.id, applicant: scene.applicant.id, cv: file(.cv, "cv\(number)"), now: .now)
            }
            let first = try #require(outcomes.successes().first)
            #expect(outcomes.successes().count == 1)
            #expect(outcomes.refusals() == Array(repeating: .conflict, count: 49))
            let locations = Set(
                outcomes.compactMap { outcome -> String? in
                    guard case .failure(let error) = outcome else { return nil }
                    return (error as? AppError)?.location
                })
            #expect(locations == ["/api/applications/\(first.id)"])
            for table: SQL in [
                "SELECT count(*) FROM applications", "SELECT count(*) FROM media",
                "SELECT count(*) FROM application_events", "SELECT count(*) FROM work_items",
            ] { #expect(try await scene.world.count(table) == 1) }
        }
    }

    @Test("what is not open takes no application, and neither does one's own company")
    func notOpen() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, author) = (scene.world, scene.representative.id)
            let draft = try await world.posting("Draft", by: author, state: .draft)
            let closed = try await world.posting("Closed", by: author, state: .closed)
            let end = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded() + 60)
            let ending = try await world.posting("Ending", by: author, until: end)
            let (jane, before) = (scene.applicant.id, end.addingTimeInterval(-1))
            await refused(.notFound) { try await scene.apply(to: draft.id, as: jane, at: before) }
            await refused(.notFound) { try await scene.apply(to: JobPosting.ID(noSuchID), as: jane, at: before) }
            let isClosed = await refused(.gone) { try await scene.apply(to: closed.id, as: jane, at: before) }
            #expect(isClosed?.message == "This posting is closed.")
            let isExpired = await refused(.gone) { try await scene.apply(to: ending.id, as: jane, at: end) }
            #expect(isExpired?.message == "This posting has expired.")
            await refused(.forbidden) { try await scene.apply(to: scene.posting.id, as: author, at: before) }
            await refused(.notFound) {
                try await scene.apply(to: scene.posting.id, as: User.ID(noSuchID), at: before)
            }
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
            _ = try await scene.apply(to: ending.id, as: jane, at: before)
        }
    }

    @Test("an application that waits while its posting is closed is refused")
    func closeRace() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 4 }) { db, _ in
            let scene = try await Scene(db)
            let waiting = try await db.transaction { transaction in
                _ = try await transaction.execute("UPDATE job_postings SET state = 'closed'")
                let waiting = Task { try await scene.applied() }
                try await scene.world.waitForLockWaiter()
                return waiting
            }
            await refused(.gone) { try await waiting.value }
            #expect(try await scene.world.count("SELECT count(*) FROM applications") == 0)
        }
    }

    @Test("applicant and members of the company see it; nobody else finds it, reads its history or moves it")
    func foreign() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let applications = scene.world.applications
            let application = try await scene.applied()
            let recruiter = try await scene.recruiter("rita")
            for viewer in [scene.applicant.id, scene.representative.id, recruiter.id] {
                #expect(try await scene.world.find(application.id, viewer: viewer) == application)
                #expect(try await applications.history(application.id, viewer: viewer).count == 1)
            }
            for stranger in scene.strangers {
                await refused(.notFound) { try await scene.world.find(application.id, viewer: stranger) }
                await refused(.notFound) { try await applications.history(application.id, viewer: stranger) }
                for status in Application.Status.allCases {
                    await refused(.notFound) {
                        try await applications.move(application.id, to: status, actor: stranger)
                    }
                }
            }
            let none = Application.ID(noSuchID)
            await refused(.notFound) { try await scene.world.find(none, viewer: scene.applicant.id) }
            await refused(.notFound) { try await applications.history(none, viewer: scene.applicant.id) }
            await refused(.notFound) { try await applications.move(none, to: .withdrawn, actor: scene.applicant.id) }
        }
    }

    @Test("each side makes its own moves, in the order there is, and each is recorded once")
    func moves() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let applications = scene.world.applications
            let application = try await scene.applied()
            let (company, applicant) = (scene.representative.id, scene.applicant.id)
            await refused(.forbidden) { try await applications.move(application.id, to: .accepted, actor: applicant) }
            await refused(.forbidden) { try await applications.move(application.id, to: .declined, actor: applicant) }
            await refused(.forbidden) { try await applications.move(application.id, to: .withdrawn, actor: company) }
            await refused(.forbidden) { try await applications.move(application.id, to: .initiated, actor: company) }

            for _ in 0..<2 {
                let declined = try await applications.move(application.id, to: .declined, actor: company)
                #expect(declined.application.status == .declined && declined.application.roomID == nil)
            }
            await refused(.conflict) { try await applications.move(application.id, to: .withdrawn, actor: applicant) }
            let accepted = try await applications.move(application.id, to: .accepted, actor: company)
            #expect(accepted.application.status == .accepted && accepted.application.roomID != nil)
            await refused(.conflict) { try await applications.move(application.id, to: .declined, actor: company) }
            let withdrawn = try await applications.move(application.id, to: .withdrawn, actor: applicant)
            #expect(withdrawn.application.status == .withdrawn)
            await refused(.conflict) { try await applications.move(application.id, to: .accepted, actor: company) }

            let history = try await applications.history(application.id, viewer: applicant)
            #expect(history.map(\.kind) == ["initiated", "declined", "accepted", "withdrawn"])
            #expect(history.map(\.actorID) == [applicant, company, company, applicant])
        }
    }

    @Test("one's own applications have the newest first, whole, by one statement")
    func mine() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            var ids: [Application.ID] = []
            for number in 0..<4 {
                let posting = try await world.posting("Posting \(number)", by: scene.representative.id)
                ids.insert(try await world.apply(scene.applicant, to: posting).id, at: 0)
                _ = try await world.apply(scene.stranger, to: posting)
            }
            let before = db.statementsExecuted
            let mine = try await world.applications.mine(of: scene.applicant.id)
            #expect(db.statementsExecuted - before == 1)
            #expect(mine.map(\.application.id) == ids)
            #expect(mine.map(\.posting.title) == (0..<4).reversed().map { "Posting \($0)" })
            #expect(mine.allSatisfy { $0.posting.company.name == "Acme" && $0.applicant == scene.applicant })
            #expect(try await world.applications.mine(of: scene.representative.id).isEmpty)

            let middle = db.statementsExecuted
            let company = try await world.postings.mine(of: scene.representative.id)
            #expect(db.statementsExecuted - middle == 2)
            #expect(company.map(\.posting.title) == (0..<4).reversed().map { "Posting \($0)" } + ["Engineer"])
            #expect(company.map(\.applications.count) == [2, 2, 2, 2, 0])
            #expect(company[0].applications.map(\.applicant.username) == ["stranger", "jane"])
            #expect(try await world.postings.mine(of: scene.rival.id).isEmpty)
            #expect(try await world.postings.mine(of: scene.applicant.id).isEmpty)
        }
    }

    @Test("a deleted posting takes its applications and CVs along, and a worker deletes the files")
    func deletePosting() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            let application = try await scene.applied()
            let other = try await world.posting("Other", by: scene.representative.id)
            let kept = try await world.apply(scene.applicant, to: other)
            _ = try await world.applications.move(application.id, to: .accepted, actor: scene.representative.id)
            _ = try await world.media.finish(application.cv.id, ready(variants: [variant("thumbnail", "t")]))
            _ = try await db.write.execute("DELETE FROM work_items")

            #expect(try await world.postings.delete(scene.posting.id, editor: scene.representative.id) == scene.posting)
            await refused(.notFound) { try await world.find(scene.posting.id, viewer: nil) }
            #expect(try await world.applications.mine(of: scene.applicant.id).map(\.application.id) == [kept.id])
            await refused(.notFound) { try await world.media.find(application.cv.id) }
            #expect(
                try await world.items() == [
                    #"delete_files {"keys": ["up/\#(application.cv.hash)", "va/t"]}"#
                ])
            #expect(try await world.count("SELECT count(*) FROM posting_search") == 1)
            // What was said stays with those who said it.
            #expect(try await world.count("SELECT count(*) FROM rooms WHERE application_id IS NULL") == 1)
        }
    }
}

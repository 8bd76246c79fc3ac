import Core
import CorePostgres
import Postgres
import TestSupport
import Testing

@testable import Resume

@Suite("CVs in PostgreSQL")
struct CVsTests {
    private func read(_ resume: String?, text: String? = "Java\nGo") -> MediaResult {
        .ready(
            mime: "application/pdf", ext: ".pdf", width: nil, height: nil, pageCount: 2, text: text,
            pageOffsets: [0, 5], resume: resume, note: nil, variants: [])
    }

    @Test("what a CV says is for its owner and for members of companies it was sent to, and for nobody else")
    func reading() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, cvs) = (scene.world, PostgresCVs(db: db))
            let application = try await scene.applied()
            let pending = try await cvs.reading(of: application.cv.id, viewer: scene.applicant.id)
            #expect(pending.state == .pending && pending.resume == nil)
            #expect(try await world.media.finish(application.cv.id, read(#"{"name": null}"#)))
            let recruiter = try await scene.recruiter("rec")
            for viewer in [scene.applicant.id, scene.representative.id, recruiter.id] {
                let reading = try await cvs.reading(of: application.cv.id, viewer: viewer)
                #expect(reading.resume == #"{"name": null}"# && reading.state == .ready)
                let comparison = try await cvs.comparison(of: application.id, viewer: viewer)
                #expect(comparison.text == "Java\nGo" && comparison.pageOffsets == [0, 5])
                #expect(comparison.title == "Engineer" && comparison.cv == reading)
            }
            for viewer in scene.strangers {
                await refused(.notFound) { try await cvs.reading(of: application.cv.id, viewer: viewer) }
                await refused(.notFound) { try await cvs.comparison(of: application.id, viewer: viewer) }
            }
            let picture = try await world.media.create(file(.attachment, "p"), owner: scene.applicant.id)
            await refused(.notFound) { try await cvs.reading(of: picture.id, viewer: scene.applicant.id) }
        }
    }

    @Test("before applying, one's own CV is compared with postings one may see")
    func before() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, cvs, applicant) = (scene.world, PostgresCVs(db: db), scene.applicant.id)
            let cv = try await world.media.create(file(.cv, "c"), owner: applicant)
            #expect(try await world.media.finish(cv.id, read(nil)))
            let comparison = try await cvs.comparison(of: cv.id, with: scene.posting.id, owner: applicant)
            #expect(comparison.postingID == scene.posting.id && comparison.text == "Java\nGo")
            for other in scene.strangers + [scene.representative.id] {
                await refused(.notFound) { try await cvs.comparison(of: cv.id, with: scene.posting.id, owner: other) }
            }
            let draft = try await world.posting("Secret", by: scene.representative.id, state: .draft)
            await refused(.notFound) { try await cvs.comparison(of: cv.id, with: draft.id, owner: applicant) }
            let closed = try await world.posting("Over", by: scene.representative.id, state: .closed)
            #expect(try await cvs.comparison(of: cv.id, with: closed.id, owner: applicant).title == "Over")
        }
    }

    @Test("a replaced CV says what the new one says")
    func exchanged() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            let application = try await scene.applied()
            #expect(try await world.media.finish(application.cv.id, read(#"{"old": 1}"#)))
            let other = try await world.media.create(file(.cv, "n"), owner: scene.applicant.id)
            #expect(try await world.media.finish(other.id, read(#"{"new": 1}"#)))
            _ = try await world.media.exchange(application.cv.id, for: other.id, owner: scene.applicant.id)
            let reading = try await PostgresCVs(db: db).reading(of: application.cv.id, viewer: scene.applicant.id)
            #expect(reading.resume == #"{"new": 1}"#)
        }
    }

    @Test("skills that have names of their own are apart for the search too, and no spelling is another's name")
    func normaliser() async throws {
        try await withTestDatabase { db in
            let skills = SkillList.known.skills.map(\.name)
            #expect(Set(skills).count == skills.count && skills.count > 400)
            let words = try await db.long.rows(
                """
                SELECT search_normalise(n.name) FROM unnest(\(skills)::text[]) WITH ORDINALITY AS n (name, ord)
                ORDER BY n.ord
                """
            ) { try $0.get(0, as: String.self) }
            #expect(words.count == skills.count)
            var first: [String: String] = [:]
            for (skill, words) in zip(skills, words) {
                #expect(!words.isEmpty, "\(skill)")
                #expect(first[words] == nil, "\(skill) and \(first[words] ?? "")")
                first[words] = skill
            }
            var owner: [[String]: String] = [:]
            for skill in SkillList.known.skills {
                for spelling in skill.spellings {
                    #expect(
                        !spelling.isEmpty && owner[spelling] == nil,
                        "\(spelling): \(skill.name), \(owner[spelling] ?? "")")
                    owner[spelling] = skill.name
                }
            }
        }
    }
}

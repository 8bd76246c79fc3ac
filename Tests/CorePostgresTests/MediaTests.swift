import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

func variant(_ name: String, _ hash: String, width: Int = 10) -> Media.Variant {
    Media.Variant(
        name: name, storageKey: "va/\(hash)", hash: hash, mime: "image/webp", ext: ".webp", bytes: 5, width: width,
        height: 7)
}

func ready(text: String? = nil, variants: [Media.Variant] = []) -> MediaResult {
    .ready(
        mime: "image/png", ext: ".png", width: 20, height: 14, pageCount: 2, text: text, pageOffsets: [0, 3],
        note: "a note", variants: variants)
}

@Suite("Media in PostgreSQL")
struct MediaTests {
    @Test("a file is stored with its work item, and found by id, by its hash, and by those of its variants")
    func createAndFind() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane")
            let media = try await world.media.create(file(.attachment, "a"), owner: jane.id)
            #expect(media.state == .pending && media.kind == .attachment && media.hash == "a" && media.bytes == 3)
            #expect(media.name == "a.bin" && media.storageKey == "up/a" && media.variants.isEmpty)
            #expect(try await world.items() == [#"process_upload {"media_id": \#(media.id)}"#])

            let variants = [variant("large", "l", width: 1000), variant("thumbnail", "t", width: 245)]
            #expect(try await world.media.finish(media.id, ready(text: "one\0two", variants: variants)))
            let done = try await world.media.find(media.id)
            #expect(done.state == .ready && done.mime == "image/png" && done.ext == ".png" && done.note == "a note")
            #expect(done.width == 20 && done.height == 14 && done.pageCount == 2)
            #expect(done.variants == variants.reversed())
            #expect(try await world.strings("SELECT text || text_pages::text FROM media") == ["one two[0, 3]"])
            for hash in ["a", "l", "t"] { #expect(try await world.media.find(hash: hash) == done) }
            #expect(try await world.media.find(hash: "x") == nil)
            await refused(.invalid) { try await world.media.find(hash: "a\u{0}") }
            await refused(.notFound) { try await world.media.find(Media.ID(noSuchID)) }
            await refused(.notFound) { try await world.media.create(file(.cv, "b"), owner: User.ID(noSuchID)) }
            await refused(.conflict) { try await world.media.create(file(.cv, "a"), owner: jane.id) }
        }
    }

    @Test("a file is finished once, whoever comes again, and however many at once")
    func finishOnce() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application) = (scene.world, try await scene.applied())
            let outcomes = await atOnce(20) { number in
                try await world.media.finish(
                    application.cv.id,
                    number.isMultiple(of: 2)
                        ? ready(variants: [variant("thumbnail", "t")])
                        : .rejected(reason: "not_a_pdf", message: "This is no PDF."))
            }
            #expect(outcomes.successes().filter { $0 }.count == 1 && outcomes.successes().count == 20)
            let cv = try await world.media.find(application.cv.id)
            let kinds = try await world.applications.history(application.id, viewer: scene.applicant.id).map(\.kind)
            #expect(kinds == ["initiated", cv.state == .ready ? "cv_ready" : "cv_rejected"])
            #expect(cv.variants.count == (cv.state == .ready ? 1 : 0))
            #expect(try await world.media.finish(Media.ID(noSuchID), ready()) == false)
        }
    }

    @Test("a CV that is none is rejected with the reason; the application stands and has it in its history")
    func rejectCV() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application) = (scene.world, try await scene.applied())
            #expect(
                try await world.media.finish(
                    application.cv.id, .rejected(reason: "not_a_pdf", message: "This is no PDF.")))
            let rejected = try await world.find(application.id, viewer: scene.representative.id)
            #expect(rejected.status == .initiated)
            #expect(rejected.cv.state == .rejected && rejected.cv.rejection == "not_a_pdf")
            #expect(rejected.cv.rejectionMessage == "This is no PDF.")
            let event = try await world.applications.history(application.id, viewer: scene.applicant.id).last
            #expect(event?.kind == "cv_rejected" && event?.note == "This is no PDF." && event?.actorID == nil)
        }
    }

    @Test("a new profile picture takes the former one's place, and its files go")
    func profile() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane")
            let first = try await world.media.create(file(.profile, "first"), owner: jane.id)
            #expect(try await world.users.find(jane.id).profileMediaID == first.id)
            let outcomes = await atOnce(10) { number in
                try await world.media.create(file(.profile, "p\(number)"), owner: jane.id)
            }
            #expect(outcomes.successes().count == 10)
            let last = try await world.users.find(jane.id).profileMediaID
            #expect(outcomes.successes().map(\.id).contains(last!))
            #expect(try await world.count("SELECT count(*) FROM media") == 1)
            #expect(try await world.count("SELECT count(*) FROM work_items WHERE kind = 'delete_files'") == 10)
            await refused(.notFound) { try await world.media.find(first.id) }
        }
    }

    @Test("each kind of file is read by those it is for")
    func mayRead() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let (world, application) = (scene.world, try await scene.applied())
            let (rep, jane) = (scene.representative.id, scene.applicant.id)
            let logo = try await world.media.create(file(.logo, "logo"), owner: rep)
            let picture = try await world.media.create(file(.profile, "picture"), owner: jane)
            let repPicture = try await world.media.create(file(.profile, "rep"), owner: rep)
            let attachment = try await world.media.create(file(.attachment, "attachment"), owner: jane)
            let everyone = [jane, rep] + scene.strangers
            func readers(_ media: Media.ID) async throws -> [User.ID] {
                var readers: [User.ID] = []
                for user in everyone where try await world.media.mayRead(media, user: user) { readers.append(user) }
                return readers
            }
            #expect(try await readers(logo.id) == everyone)
            #expect(try await readers(application.cv.id) == [jane, rep])
            #expect(try await readers(picture.id) == [jane, rep])
            #expect(try await readers(repPicture.id) == [rep])
            #expect(try await readers(attachment.id) == [jane])
            #expect(try await readers(Media.ID(noSuchID)) == [])

            let room = try await world.applications.move(application.id, to: .accepted, actor: rep).application.roomID!
            _ = try await db.write.execute(
                """
                INSERT INTO messages (room_id, seq, sender_id, body, media_id)
                VALUES (\(room), 2, \(jane), '', \(attachment.id))
                """)
            #expect(try await readers(attachment.id) == [jane, rep])
            #expect(try await readers(repPicture.id) == [jane, rep])
        }
    }

    @Test("only the owner makes a file's URLs worthless")
    func revoke() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let application = try await scene.applied()
            let media = scene.world.media
            for other in scene.strangers + [scene.representative.id] {
                await refused(.notFound) { try await media.revokeURLs(of: application.cv.id, owner: other) }
            }
            try await media.revokeURLs(of: application.cv.id, owner: scene.applicant.id)
            #expect(try await media.find(application.cv.id).urlGeneration == 1)
        }
    }

    @Test("many files are deleted by items of bounded size")
    func deleteMany() async throws {
        try await withTestDatabase { db in
            let scene = try await Scene(db)
            let world = scene.world
            _ = try await db.write.execute(
                """
                WITH people AS (
                  INSERT INTO users (username, email)
                  SELECT 'many' || i, 'many' || i || '@example.org' FROM generate_series(1, 1201) i RETURNING id
                ), cvs AS (
                  INSERT INTO media (owner_id, kind, name, hash, bytes, sha256, storage_key)
                  SELECT id, 'cv', 'cv', 'h' || id, 1, '', 'k' || id FROM people RETURNING id, owner_id
                )
                INSERT INTO applications (posting_id, applicant_id, cv_media_id)
                SELECT \(scene.posting.id)::bigint, owner_id, id FROM cvs
                """)
            _ = try await world.postings.delete(scene.posting.id, editor: scene.representative.id)
            let sizes = try await db.short.rows(
                "SELECT jsonb_array_length(payload -> 'keys') FROM work_items ORDER BY id"
            ) { try $0.get(0, as: Int.self) }
            #expect(sizes.sorted() == [201, 500, 500])
            #expect(try await world.count("SELECT count(*) FROM media") == 0)
        }
    }
}

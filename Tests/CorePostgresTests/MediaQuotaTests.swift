import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("What one person's files may take")
struct MediaQuotaTests {
    private let quota = Media.Quota(mebibytes: 1)

    private func sized(_ kind: Media.Kind, _ hash: String, _ bytes: Int64) -> Media.Draft {
        Media.Draft(
            kind: kind, name: "a.bin", declaredType: "", hash: hash, bytes: bytes, sha256: digest(1),
            storageKey: "up/\(hash)")
    }

    @Test("the last byte is given, one more is refused with what to do; others' files, and rejected ones, do not count")
    func limit() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, tom) = (try await world.user("jane").id, try await world.user("tom").id)
            let media = PostgresMedia(db: db, quota: quota)
            let half = Int64(512 * 1024)
            let first = try await media.create(sized(.attachment, "a", half), owner: jane)
            _ = try await media.add([sized(.attachment, "b", half)], owner: jane, use: nil)
            let error = await #expect(throws: AppError.self) {
                try await media.add([sized(.attachment, "c", 1)], owner: jane, use: nil)
            }
            #expect(error == quota.exceeded && error?.code == .tooLarge)
            #expect(error?.message.contains("1 MiB") == true && error?.message.contains("Delete some") == true)
            await refused(.tooLarge) { try await media.create(sized(.profile, "c", 1), owner: jane) }
            #expect(try await world.items().count == 2)
            _ = try await media.create(sized(.attachment, "d", half), owner: tom)

            #expect(try await media.finish(first.id, .rejected(reason: "empty", message: "It is empty.")))
            _ = try await media.create(sized(.attachment, "c", half), owner: jane)
            await refused(.tooLarge) { try await media.create(sized(.attachment, "e", 1), owner: jane) }
            _ = try await media.delete(try await media.find(hash: "b").orFail().id, owner: jane)
            _ = try await media.create(sized(.attachment, "e", 1), owner: jane)
        }
    }

    @Test("what is made of a picture counts as soon as it is there, and goes with the picture")
    func variants() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane").id
            let media = PostgresMedia(db: db, quota: quota)
            let picture = try await media.create(sized(.attachment, "a", 1000), owner: jane)
            let made = ["upright", "small"].map {
                Media.Variant(
                    name: $0, storageKey: "va/\($0)", hash: "\($0)_a", mime: "image/png", ext: ".png", bytes: 450_000,
                    width: 1, height: 1)
            }
            let ready = MediaResult.ready(
                mime: "image/png", ext: ".png", width: 1, height: 1, pageCount: nil, text: nil, pageOffsets: [],
                note: nil, variants: made)
            // Under way, it counts what was sent.
            let rest = (Int64(1) << 20) - 901_000
            #expect(try await media.finish(picture.id, ready))
            await refused(.tooLarge) { try await media.create(sized(.attachment, "b", rest + 1), owner: jane) }
            let other = try await media.create(sized(.attachment, "b", rest), owner: jane)
            await refused(.tooLarge) { try await media.create(sized(.attachment, "c", 1), owner: jane) }
            _ = try await media.delete(picture.id, owner: jane)
            _ = try await media.create(sized(.attachment, "c", (1 << 20) - rest), owner: jane)
            #expect(try await media.find(other.id).bytes == rest)
        }
    }

    @Test("of several files sent at once all are kept or none")
    func together() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let jane = try await world.user("jane").id
            let media = PostgresMedia(db: db, quota: quota)
            let drafts = ["a", "b", "c"].map { sized(.attachment, $0, 400 * 1024) }
            await refused(.tooLarge) { try await media.add(drafts, owner: jane, use: nil) }
            #expect(try await media.find(hash: "a") == nil)
            #expect(try await media.add(Array(drafts.prefix(2)), owner: jane, use: nil).count == 2)
        }
    }

    @Test("small files count as if they were larger, and many at once do not get past each other")
    func race() async throws {
        try await withTestDatabase(configure: { $0.leasedMax = 8 }) { db, _ in
            let world = World(db)
            let jane = try await world.user("jane").id
            let media = PostgresMedia(db: db, quota: quota)
            let outcomes = await atOnce(24) { number in
                try await media.add([sized(.attachment, "a\(number)", 1)], owner: jane, use: nil)
            }
            #expect(outcomes.successes().count == 16)
            #expect(outcomes.refusals() == Array(repeating: .tooLarge, count: 8))
        }
    }

    @Test("pictures, logos and CVs count like any other file")
    func everyKind() async throws {
        try await withTestDatabase { db in
            let world = World(db)
            let (jane, tom) = (try await world.user("jane").id, try await world.user("tom").id)
            _ = try await world.company("ACME", of: tom)
            let posting = try await world.posting("Engineer", by: tom)
            let media = PostgresMedia(db: db, quota: quota)
            for owner in [jane, tom] {
                _ = try await media.create(sized(.attachment, "full\(owner)", 1 << 20), owner: owner)
            }
            let applications = PostgresApplications(db: db, quota: quota)
            await refused(.tooLarge) {
                try await applications.create(
                    posting: posting.id, applicant: jane, cv: sized(.cv, "cv", 1), now: .now)
            }
            let companies = PostgresCompanies(db: db, quota: quota)
            await refused(.tooLarge) {
                try await companies.save(
                    Company.Draft(name: "ACME"), logo: sized(.logo, "logo", 1), representative: tom)
            }
            let users = PostgresUsers(db: db, quota: quota)
            await refused(.tooLarge) {
                try await users.update(
                    jane, User.Change(), picture: sized(.profile, "me", 1), mailing: world.mailing())
            }
            #expect(try await world.strings("SELECT name FROM companies") == ["ACME"])
            #expect(try await world.strings("SELECT id::text FROM applications").isEmpty)
        }
    }
}

extension Media? {
    fileprivate func orFail() throws -> Media {
        guard let self else { throw AppError.notFound }
        return self
    }
}

import Core
import CorePostgres
import EventLoop
import Foundation
import Postgres
import ServiceKit
import TestSupport
import Testing

@testable import MediaStore
@testable import WorkerApp

@Suite("Rows without objects")
struct LostObjectsTests {
    let pool = OffloadPool(name: "lost", threads: 1, queueMax: 64)

    private struct Scene {
        let media: PostgresMedia
        let store: FolderStore
        let owner: User.ID
        let metrics = Metrics()

        var look: LostObjects { LostObjects(store: store, media: media, log: .silent, metrics: metrics) }

        func put(_ key: String) async throws {
            let writer = try await store.create(key)
            try await writer.write([1])
            try await writer.commit()
        }

        /// A picture with its objects in shard 10.
        func picture(_ name: String) async throws -> Media.ID {
            let created = try await media.create(
                Media.Draft(
                    kind: .attachment, name: name, declaredType: "", hash: name, bytes: 1,
                    sha256: [UInt8](repeating: 1, count: 32), storageKey: "up/0a/\(name)"), owner: owner)
            let variants = ["upright", "small"].map {
                Media.Variant(
                    name: $0, storageKey: "va/0a/\(name)_\($0)", hash: "\($0)_\(name)", mime: "image/png", ext: ".png",
                    bytes: 1, width: 1, height: 1)
            }
            _ = try await media.finish(
                created.id,
                .ready(
                    mime: "image/png", ext: ".png", width: 1, height: 1, pageCount: nil, text: nil, pageOffsets: [],
                    note: nil, variants: variants))
            for key in ["up/0a/\(name)"] + variants.map(\.storageKey) { try await put(key) }
            return created.id
        }

        func missing() -> Bool { metrics.text().contains("martlet_media_objects_missing_total 0\n") == false }
    }

    @Test("rows are looked for, and objects without a row, in the same parts of a store")
    func tops() {
        #expect(LostObjects.tops == ObjectKey.tops)
        let original = "up/0a/0a12"
        #expect(ProcessUpload.variantKey(original, "small") == "va/0a/0a12_small")
    }

    private func scene(_ db: Database, _ place: UploadTests.Place) async throws -> Scene {
        let owner = try await PostgresUsers(db: db).create(
            User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
        return Scene(
            media: PostgresMedia(db: db, notify: false), store: try FolderStore(root: place.root, offload: pool),
            owner: owner.id)
    }

    @Test("a file whose own content is gone says so, and is as before when it is there again")
    func lostAndFound() async throws {
        try await withTestDatabase { db in
            let place = UploadTests.Place()
            let scene = try await scene(db, place)
            let (gone, kept) = (try await scene.picture("gone"), try await scene.picture("kept"))
            let before = try await scene.media.find(gone)
            try await scene.look.look(in: [9, 10, 11])
            #expect(!scene.missing())

            try await scene.store.delete("va/0a/gone_upright")
            // Nobody is given these by the file's address.
            for key in ["up/0a/kept", "va/0a/kept_small"] { try await scene.store.delete(key) }
            try await scene.look.look(in: [9, 11])
            #expect(!scene.missing())
            try await scene.look.look(in: [10])
            #expect(scene.metrics.text().contains("martlet_media_objects_missing_total 3\n"))
            let lost = try await scene.media.find(gone)
            #expect(lost.state == .rejected && lost.rejectionMessage == Media.lost.message)
            #expect(try await scene.media.find(kept).state == .ready)

            try await scene.put("va/0a/gone_upright")
            try await scene.look.look(in: [10])
            let found = try await scene.media.find(gone)
            #expect(found.state == .ready && found.rejection == nil && found.variants == before.variants)
        }
    }

    @Test("a file that was rejected is not missed: its bytes are deleted")
    func notMissed() async throws {
        try await withTestDatabase { db in
            let place = UploadTests.Place()
            let scene = try await scene(db, place)
            let rejected = try await scene.picture("rejected")
            try await db.write.execute(
                "UPDATE media SET state = 'rejected', rejection = 'empty' WHERE id = \(rejected)")
            for key in place.files { try await scene.store.delete(key) }
            try await scene.look.look(in: [10])
            #expect(!scene.missing())
            #expect(try await scene.media.find(rejected).rejection == "empty")
        }
    }

    @Test("when most of them are missing it is the wrong store, and no file is marked")
    func wrongStore() async throws {
        try await withTestDatabase { db in
            let place = UploadTests.Place()
            let scene = try await scene(db, place)
            var ids: [Media.ID] = []
            for number in 0..<7 { ids.append(try await scene.picture("p\(number)")) }
            for key in place.files.filter({ !$0.contains("p6") }) { try await scene.store.delete(key) }
            try await scene.look.look(in: [10])
            #expect(scene.metrics.text().contains("martlet_media_objects_missing_total 18\n"))
            // Fewer than would be doubtful.
            #expect(try await scene.media.find(ids[0]).state == .rejected)
            try await db.write.execute("UPDATE media SET state = 'ready', rejection = NULL")
            try await scene.store.delete("up/0a/p6")
            try await scene.store.delete("va/0a/p6_small")
            try await scene.look.look(in: [10])
            for id in ids { #expect(try await scene.media.find(id).state == .ready) }
        }
    }
}

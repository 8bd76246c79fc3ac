import Core
import CorePostgres
import EventLoop
import Foundation
import MediaStore
import Postgres
import Resume
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import MediaTools
@testable import WorkerApp

@Suite struct UploadTests {
    let pool = OffloadPool(name: "upload", threads: 2, queueMax: 64)

    final class Place: Sendable {
        let root = NSTemporaryDirectory() + "martlet-upload-" + String(UInt64.random(in: .min ... .max), radix: 16)
        deinit { try? FileManager.default.removeItem(atPath: root) }

        var files: [String] {
            let all = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
            return all.filter { name in
                (try? FileManager.default.contentsOfDirectory(atPath: root + "/" + name)) == nil
            }.sorted()
        }
    }

    struct Uploaded {
        let media: PostgresMedia
        let store: FolderStore
        let place: Place
        let id: Media.ID
        let key: String
    }

    func upload(_ db: Database, _ kind: Media.Kind, _ bytes: [UInt8]) async throws -> Uploaded {
        let owner = try await PostgresUsers(db: db).create(
            User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
        let place = Place()
        let store = try FolderStore(root: place.root, offload: pool)
        let key = "up/ab/abcdef0123456789abcdef0123456789"
        let writer = try await store.create(key)
        try await writer.write(bytes)
        try await writer.commit()
        let media = PostgresMedia(db: db, notify: false)
        let created = try await media.create(
            Media.Draft(
                kind: kind, name: "file", declaredType: "", hash: "file_0123456789", bytes: Int64(bytes.count),
                sha256: [UInt8](repeating: 1, count: 32), storageKey: key),
            owner: owner.id)
        return Uploaded(media: media, store: store, place: place, id: created.id, key: key)
    }

    func handler(
        _ uploaded: Uploaded, _ process: @escaping @Sendable (MediaRequest) async throws -> MediaAnswer
    ) -> ProcessUpload {
        ProcessUpload(
            media: uploaded.media, store: uploaded.store, scratch: uploaded.place.root + "/tmp", offload: pool,
            clock: SystemClock(), log: .silent, process: process)
    }

    func item(_ id: Media.ID, attempt: Int = 1) -> WorkItem {
        WorkItem(
            id: .init(1), fence: 1, kind: "process_upload", payload: #"{"media_id": \#(id)}"#, attempt: attempt)
    }

    /// As a child does: files in the folder and an answer about them.
    func picture(_ request: MediaRequest) throws -> MediaAnswer {
        let variants = [MediaVariant.Name.original, .thumbnail].map {
            MediaVariant(name: $0, type: .jpeg, width: 300, height: 200, bytes: 600_000)
        }
        for variant in variants {
            // Longer than what is copied at a time.
            try Data(repeating: 7, count: 600_000).write(
                to: URL(fileURLWithPath: request.outputDirectory + "/" + variant.file))
        }
        return .image(
            MediaImage(
                source: .png, width: 300, height: 200, frames: 1, original: variants[0], variants: [variants[1]]))
    }

    @Test("an image becomes ready with its variants in the store; run again nothing changes")
    func image() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .profile, [1, 2, 3])
            let asked = Notes()
            let handler = handler(uploaded) { request in
                asked.add("\(request.kind) \(request.limits.fileBytesMax)")
                return try picture(request)
            }
            try await handler.run(item(uploaded.id))
            #expect(asked.all == ["image \(Media.Kind.profile.bytesMax)"])
            let media = try await uploaded.media.find(uploaded.id)
            #expect(media.state == .ready && media.mime == "image/jpeg" && media.width == 300)
            #expect(Set(media.variants.map(\.name)) == ["upright", "thumbnail"])
            for variant in media.variants {
                #expect(try await uploaded.store.size(variant.storageKey) == 600_000)
                #expect(variant.hash == "\(variant.name)_file_0123456789")
            }
            // Nothing of the child's is left.
            #expect(uploaded.place.files.allSatisfy { !$0.hasPrefix("tmp") })
            try await handler.run(item(uploaded.id, attempt: 2))
            #expect(asked.all.count == 1)
            #expect(try await uploaded.media.find(uploaded.id) == media)
        }
    }

    @Test("a file that is at fault is rejected with the reason, and its bytes go")
    func rejected() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .cv, [1, 2, 3])
            try await handler(uploaded) { _ in .rejected(.notACV) }.run(item(uploaded.id))
            let media = try await uploaded.media.find(uploaded.id)
            #expect(media.state == .rejected && media.rejection == "notACV")
            #expect(media.rejectionMessage == Rejection.notACV.sentence)
            // Its bytes are deleted as all are: a backup may need them yet.
            #expect(try await uploaded.store.size(uploaded.key) == 3)
            let queue = PostgresWorkQueue(db: db)
            let claim = try await queue.claim(worker: "w", kinds: [.deleteFiles], limit: 9, after: WorkPosition())
            let deletion = try #require(claim.items.first)
            #expect(claim.items.count == 1)
            try await DeleteFiles(store: uploaded.store).run(deletion)
            #expect(try await uploaded.store.size(uploaded.key) == nil)
            try await handler(uploaded) { _ in throw WorkFailure.later("not asked") }.run(item(uploaded.id))
        }
    }

    @Test(
        "a file that ends its child gets a second chance, and is rejected then",
        arguments: [
            Rejection.crashed, .timedOut,
        ])
    func crashed(rejection: Rejection) async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .cv, [1, 2, 3])
            let handler = handler(uploaded) { _ in .rejected(rejection) }
            await #expect(throws: WorkFailure.self) { try await handler.run(item(uploaded.id)) }
            #expect(try await uploaded.media.find(uploaded.id).state == .pending)
            try await handler.run(item(uploaded.id, attempt: 2))
            #expect(try await uploaded.media.find(uploaded.id).rejection == rejection.rawValue)
        }
    }

    @Test("trouble of ours is no fault of the file, and leaves nothing behind")
    func failed() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .attachment, [1, 2, 3])
            let handler = handler(uploaded) { request in
                try Data([1]).write(to: URL(fileURLWithPath: request.outputDirectory + "/rest"))
                return .failed("disk full")
            }
            await #expect(throws: WorkFailure.later("disk full")) {
                try await handler.run(item(uploaded.id, attempt: 9))
            }
            #expect(try await uploaded.media.find(uploaded.id).state == .pending)
            #expect(uploaded.place.files == [uploaded.key])
        }
    }

    @Test("a document keeps its text; a deleted or lost file is the end of it")
    func others() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .cv, [1, 2, 3])
            let answer = MediaAnswer.document(
                MediaDocument(
                    type: .pdf, pages: 2, textOutcome: .extracted, text: "one two", pageOffsets: [0, 4], links: [],
                    resume: Resume.read("one two", pageOffsets: [0], now: Resume.Month(year: 2026, month: 1))))
            try await handler(uploaded) { _ in answer }.run(item(uploaded.id))
            let media = try await uploaded.media.find(uploaded.id)
            #expect(media.state == .ready && media.mime == "application/pdf" && media.pageCount == 2)
            let text = try await db.write.first("SELECT text FROM media") { try $0.get(0, as: String.self) }
            #expect(text == "one two")
            let resume = try await db.write.first("SELECT resume ->> 'skills' FROM media") {
                try $0.get(0, as: String.self)
            }
            #expect(resume == "[]")
            try await handler(uploaded) { _ in answer }.run(item(.init(999_999)))

            try await db.write.execute("UPDATE media SET state = 'pending'")
            try await uploaded.store.delete(uploaded.key)
            await #expect(throws: WorkFailure.self) {
                try await handler(uploaded) { _ in answer }.run(item(uploaded.id))
            }
            try await handler(uploaded) { _ in answer }.run(item(uploaded.id, attempt: 2))
            #expect(try await uploaded.media.find(uploaded.id).rejection == "missing")
        }
    }

    @Test(
        "text that was read from pictures is kept and marked, and so is what was left out of it",
        arguments: [([0, 4], "scan"), ([0], "scan_cut")])
    func scanned(offsets: [Int], note: String) async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .cv, [1, 2, 3])
            let answer = MediaAnswer.document(
                MediaDocument(type: .pdf, pages: 2, textOutcome: .scanned, text: "one two", pageOffsets: offsets))
            try await handler(uploaded) { _ in answer }.run(item(uploaded.id))
            let media = try await uploaded.media.find(uploaded.id)
            #expect(media.state == .ready && media.note == note)
            let text = try await db.write.first("SELECT text FROM media") { try $0.get(0, as: String.self) }
            #expect(text == "one two")
        }
    }

    @Test("media deleted while the child was at it leaves no variants")
    func deletedMeanwhile() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .logo, [1, 2, 3])
            try await handler(uploaded) { request in
                try await db.write.execute("DELETE FROM media")
                return try picture(request)
            }.run(item(uploaded.id))
            #expect(uploaded.place.files == [uploaded.key])
        }
    }

    @Test("a scan that finds others being read waits for its turn, as often as it takes")
    func scansBusy() async throws {
        try await withTestDatabase { db in
            let uploaded = try await upload(db, .cv, [1, 2, 3])
            let busy = handler(uploaded) { _ in throw MediaPoolError.scansBusy }
            let turn = WorkFailure.waiting("other scans are being read")
            await #expect(throws: turn) { try await busy.run(item(uploaded.id)) }
            await #expect(throws: MediaPoolError.tooManyWaiting) {
                try await handler(uploaded) { _ in throw MediaPoolError.tooManyWaiting }.run(item(uploaded.id))
            }
            #expect(try await uploaded.media.find(uploaded.id).state == .pending)
            #expect(uploaded.place.files == [uploaded.key])
        }
    }
}

import Core
import CorePostgres
import EventLoop
import Foundation
import MediaStore
import Postgres
import ServiceKit
import TestSupport
import Testing

@testable import WorkerApp

@Suite("Objects without rows")
struct SweepTests {
    let pool = OffloadPool(name: "sweep", threads: 1, queueMax: 64)
    let item = WorkItem(id: .init(1), fence: 1, kind: "sweep_objects", payload: "{}", attempt: 1)

    @Test("old objects that no row names go; those with a row, young ones and other shards' stay")
    func sweep() async throws {
        try await withTestDatabase { db in
            let place = UploadTests.Place()
            let store = try FolderStore(root: place.root, offload: pool)
            let owner = try await PostgresUsers(db: db).create(
                User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
            let media = PostgresMedia(db: db, notify: false)
            let clock = ManualClock(Date())
            let shards = SweepObjects.shards(at: clock.now() + SweepObjects.ageSecondsMin + 60)
            let here = ObjectShard.name(shards[3])
            let elsewhere = ObjectShard.name((shards[0] + 255) % 256)
            let known = ["up/\(here)/known", "va/\(here)/known_small"]
            let all = known + ["up/\(here)/lost", "va/\(here)/lost_small", "up/\(elsewhere)/lost"]
            for key in all {
                let writer = try await store.create(key)
                try await writer.write([1])
                try await writer.commit()
            }
            let created = try await media.create(
                Media.Draft(
                    kind: .attachment, name: "a", declaredType: "", hash: "a_0123456789", bytes: 1,
                    sha256: [UInt8](repeating: 1, count: 32), storageKey: known[0]), owner: owner.id)
            _ = try await media.finish(
                created.id,
                .ready(
                    mime: "image/png", ext: ".png", width: 1, height: 1, pageCount: nil, text: nil, pageOffsets: [],
                    note: nil,
                    variants: [
                        Media.Variant(
                            name: "small", storageKey: known[1], hash: "small_a", mime: "image/png", ext: ".png",
                            bytes: 1, width: 1, height: 1)
                    ]))
            func sweep(at seconds: Double) async throws {
                let sweep = SweepObjects(
                    store: store, media: media,
                    clock: ManualClock(clock.now() + seconds), log: .silent, metrics: Metrics())
                try await sweep.run(item)
            }
            // Young: all of them may still get a row.
            for hour in 0..<16 {
                let before = Double(hour - 24) * 3600
                try await sweep(at: before)
            }
            #expect(place.files == all.sorted())
            try await sweep(at: SweepObjects.ageSecondsMin + 60)
            #expect(place.files == (known + ["up/\(elsewhere)/lost"]).sorted())
        }
    }

    @Test("32 runs look at every shard, and it is not always the same one that comes last")
    func shards() {
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        let runs = (0..<32).map { SweepObjects.shards(at: start + Double($0 * SweepObjects.everySeconds)) }
        #expect(runs.allSatisfy { $0.count == SweepObjects.shardsPerRun })
        #expect(Set(runs.joined()) == Set(0..<ObjectShard.count))
        #expect(Set(runs.compactMap(\.last)).count == 32)
    }
}

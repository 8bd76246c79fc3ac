import Core
import EventLoop
import Foundation
import ServiceKit
import TestSupport
import Testing

@testable import MediaStore

@Suite struct WatchedStoreTests {
    @Test("a folder that is gone is told by readiness and a metric, without ending either; it recovers by itself")
    func recovers() async throws {
        let files = OffloadPool(name: "watched", threads: 2, queueMax: 8)
        let folder = TemporaryFolder()
        let clock = ManualClock()
        let (health, metrics) = (Health(), Metrics())
        let store = WatchedStore(
            try FolderStore(root: folder.path, offload: files), health: health, metrics: metrics, clock: clock,
            log: .silent)
        store.start()
        try await eventually { clock.sleepers == 1 }
        #expect(health.remarks().isEmpty)
        #expect(metrics.text().contains("martlet_store_up 1.0\n"))

        try FileManager.default.moveItem(atPath: folder.path, toPath: folder.path + "-away")
        await #expect(throws: StoreError.self) { _ = try await store.create("up/ab/key") }
        #expect(health.problems().isEmpty && health.remarks().map(\.name) == ["store"])
        #expect(metrics.text().contains("martlet_store_up 0.0\n"))
        // What was not there before says nothing of the store.
        clock.advance(seconds: Watch.probeSeconds)
        try await eventually { clock.sleepers == 1 }
        #expect(store.problem != nil)

        try FileManager.default.moveItem(atPath: folder.path + "-away", toPath: folder.path)
        #expect(try await store.size("up/ab/key") == nil)
        #expect(store.problem != nil, "reading shows nothing: a full disk can be read")
        clock.advance(seconds: Watch.probeSeconds)
        try await eventually { store.problem == nil }
        #expect(health.remarks().isEmpty)
        await #expect(throws: StoreError(.badKey)) { _ = try await store.size("..") }
        #expect(store.problem == nil)
        store.stop()
    }
}

import Core
import EventLoop
import Foundation
import Testing

@testable import MediaStore

/// A folder that is gone when the test is.
final class TemporaryFolder: Sendable {
    let path = NSTemporaryDirectory() + "martlet-store-" + String(UInt64.random(in: .min ... .max), radix: 16)

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var files: [String] {
        let all = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return all.filter { name in
            var isFolder: ObjCBool = false
            let exists = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isFolder)
            return exists && !isFolder.boolValue
        }.sorted()
    }
}

@Suite struct FolderStoreTests {
    let folder = TemporaryFolder()
    let pool = OffloadPool(name: "store", threads: 2, queueMax: 64)

    @Test("an object that its owner forgets leaves nothing")
    func forgotten() async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        for _ in 0..<20 {
            let writer = try await store.create("up/ab/abcdef")
            try await writer.write([1])
        }
        #expect(folder.files.isEmpty)
    }

    @Test("a commit that cannot be done says so and leaves nothing")
    func commitFails() async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        let first = try await store.create("up/ab")
        try await first.commit()
        // "up/ab" is a file now, so it cannot be a folder.
        let second = try await store.create("up/ab/abcdef")
        try await second.write([1])
        await #expect(throws: StoreError.self) { try await second.commit() }
        #expect(folder.files == ["up/ab"])
    }

    @Test(
        "keys that are not ours are refused",
        arguments: [
            "", "/", "a/", "/a", "a//b", "..", "../a", "a/../b", "a/./b", ".hidden", "a/.b", "A", "a b", "a\u{0}b", "ä",
            "a\\b", "tmp/x", "tmp", String(repeating: "a", count: 201),
        ])
    func badKeys(key: String) async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        await #expect(throws: StoreError(.badKey)) { _ = try await store.create(key) }
        await #expect(throws: StoreError(.badKey)) { _ = try await store.size(key) }
        await #expect(throws: StoreError(.badKey)) { _ = try await store.open(key) }
        await #expect(throws: StoreError(.badKey)) { try await store.delete(key) }
    }

    @Test(
        "keys of ours are taken",
        arguments: ["a", "up/0f/0f.png", "va/00/00_large-2", String(repeating: "a", count: 200)])
    func goodKeys(key: String) async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        try await store.create(key).commit()
        #expect(try await store.size(key) == 0)
    }

    @Test("sweeping removes old temporary files and leaves those being written")
    func sweep() async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        let writer = try await store.create("up/ab/abcdef")
        try await writer.write([1])
        let now = Date()
        #expect(try await store.sweep(now: now) == 0)
        #expect(folder.files.count == 1)
        #expect(try await store.sweep(now: now.addingTimeInterval(FolderStore.temporarySecondsMax + 60)) == 1)
        #expect(folder.files.isEmpty)
        await writer.abort()
    }

    @Test("sweeping removes the folder of a child whose worker was killed")
    func sweepFolders() async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        let child = folder.path + "/tmp/child-1"
        try FileManager.default.createDirectory(atPath: child, withIntermediateDirectories: false)
        try Data([1]).write(to: URL(fileURLWithPath: child + "/small.jpg"))
        #expect(try await store.sweep(now: Date()) == 0)
        #expect(try await store.sweep(now: Date() + FolderStore.temporarySecondsMax + 60) == 1)
        #expect(!FileManager.default.fileExists(atPath: child))
    }

    @Test("what lies beside our own keys in the folder is nobody's to sweep")
    func others() async throws {
        let store = try FolderStore(root: folder.path, offload: pool)
        for key in ["up/ab/ours", "va/ab/ours_small", "backup/ab/theirs", "ab/ab/theirs"] {
            try await store.create(key).commit()
        }
        var found: [String] = []
        try await store.oldKeys(shard: 0xAB, before: .distantFuture, pageMax: 10) { keys in
            found += keys
            return true
        }
        #expect(found == ["up/ab/ours", "va/ab/ours_small"])
    }

    @Test("a folder that cannot be written is refused at once")
    func badRoot() throws {
        let file = TemporaryFolder()
        _ = FileManager.default.createFile(atPath: file.path, contents: Data())
        #expect(throws: StoreError.self) { _ = try FolderStore(root: file.path, offload: pool) }
        #expect(throws: StoreError.self) { _ = try FolderStore(root: file.path + "/below", offload: pool) }
    }
}

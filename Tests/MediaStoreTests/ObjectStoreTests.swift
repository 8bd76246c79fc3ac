import Core
import EventLoop
import Foundation
import ServiceKit
import Testing
import Transfer

@testable import MediaStore

/// What every store must do, on each of them.
enum StoreKind: String, CaseIterable, Sendable {
    case folder, s3Path, s3Virtual

    static let available: [StoreKind] = MotoServer.isInstalled ? allCases : [.folder]
    static let remote: [StoreKind] = MotoServer.isInstalled ? [.s3Path, .s3Virtual] : []
}

/// A store with nothing in it, of one test.
struct EmptyStore: Sendable {
    let store: any WorkingStore
    /// Where its local files are.
    let folder = TemporaryFolder()

    init(_ kind: StoreKind, files: OffloadPool, clock: any ServiceClock = SystemClock()) async throws {
        switch kind {
        case .folder: store = try FolderStore(root: folder.path, offload: files)
        case .s3Path, .s3Virtual:
            let bucket = try await MotoServer.bucket()
            try Files.makeFolder(folder.path)
            // libcurl knows that all names beneath localhost are this machine.
            let endpoint = bucket.endpoint.replacing("127.0.0.1", with: kind == .s3Path ? "127.0.0.1" : "localhost")
            let location = S3Location(
                endpoint: endpoint, region: bucket.region, bucket: bucket.bucket,
                style: kind == .s3Path ? .path : .virtual, accessKey: bucket.access_key, secretKey: bucket.secret_key)
            store = S3Store(
                client: S3Client(location, offload: files),
                prefix: "t" + String(UInt64.random(in: .min ... .max), radix: 16) + "/x", scratch: folder.path,
                files: files, clock: clock, partBytes: 5 << 20)
        }
    }

    func put(_ key: String, _ bytes: [UInt8]) async throws {
        let writer = try await store.create(key)
        try await writer.write(bytes)
        try await writer.commit()
    }

    /// All of an object, as a worker gets it.
    func content(_ key: String) async throws -> [UInt8]? {
        try await store.withLocalFile(key) { Array(FileManager.default.contents(atPath: $0) ?? Data()) }
    }
}

@Suite struct ObjectStoreTests {
    let files = OffloadPool(name: "store", threads: 4, queueMax: 64)

    @Test("an object is not there until it is committed, and then has every byte", arguments: StoreKind.available)
    func commit(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        let writer = try await empty.store.create("up/ab/abcdef")
        try await writer.write([1, 2, 3])
        #expect(try await empty.store.size("up/ab/abcdef") == nil)
        #expect(try await empty.content("up/ab/abcdef") == nil)
        try await writer.write([])
        try await writer.write([4])
        try await writer.commit()
        #expect(try await empty.store.size("up/ab/abcdef") == 4)
        #expect(try await empty.content("up/ab/abcdef") == [1, 2, 3, 4])
        // No copy is left.
        #expect(empty.folder.files == (kind == .folder ? ["up/ab/abcdef"] : []))
        await #expect(throws: StoreError(.finished)) { try await writer.write([5]) }
        await #expect(throws: StoreError(.finished)) { try await writer.commit() }
        #expect(try await empty.content("up/ab/abcdef") == [1, 2, 3, 4])
    }

    @Test("an aborted object leaves nothing, however far it was", arguments: StoreKind.available)
    func abort(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        for count in [0, 1, (5 << 20) + 1] {
            let writer = try await empty.store.create("up/ab/abcdef")
            try await writer.write([UInt8](repeating: 7, count: count))
            await writer.abort()
            await writer.abort()
            await #expect(throws: StoreError(.finished)) { try await writer.write([2]) }
            await #expect(throws: StoreError(.finished)) { try await writer.commit() }
        }
        #expect(try await empty.store.size("up/ab/abcdef") == nil)
        #expect(empty.folder.files.isEmpty)
        // Nothing in parts that waits for a sweep either.
        #expect(try await empty.store.sweep(now: Date() + 2 * S3Store.leftoverSecondsMax) == 0)
    }

    @Test("objects of all sizes about those of a part come back as they were", arguments: StoreKind.available)
    func sizes(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        let part = 5 << 20
        for count in [0, 1, part - 1, part, part + 1, 2 * part, 2 * part + 70_001] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            let writer = try await empty.store.create("up/ab/big")
            // In pieces that fit nothing.
            for start in stride(from: 0, to: count, by: 1_000_003) {
                try await writer.write(Array(bytes[start..<min(count, start + 1_000_003)]))
            }
            try await writer.commit()
            #expect(try await empty.store.size("up/ab/big") == Int64(count))
            #expect(try await empty.content("up/ab/big") == bytes, "\(count) bytes")
        }
        #expect(try await empty.store.sweep(now: Date() + 2 * S3Store.leftoverSecondsMax) == 0)
    }

    @Test(
        "writing a key again replaces the object whole; deleting works twice, and on nothing",
        arguments: StoreKind.available)
    func replaceAndDelete(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        try await empty.put("va/ab/abcdef_small", [1, 1, 1])
        try await empty.put("va/ab/abcdef_small", [2])
        #expect(try await empty.content("va/ab/abcdef_small") == [2])
        for key in ["va/ab/abcdef_small", "va/ab/abcdef_small", "up/zz/never"] { try await empty.store.delete(key) }
        #expect(try await empty.store.size("va/ab/abcdef_small") == nil)
        if case .some = try await empty.store.open("va/ab/abcdef_small") { Issue.record("it is still there") }
    }

    @Test("keys that are not ours are refused", arguments: StoreKind.available)
    func badKeys(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        for key in ["", "/", "a/", "/a", "a//b", "../a", "a/../b", ".a", "A", "a b", "a\u{0}b", "ä", "a?b", "tmp/x"] {
            await #expect(throws: StoreError(.badKey)) { _ = try await empty.store.create(key) }
            await #expect(throws: StoreError(.badKey)) { _ = try await empty.store.size(key) }
            await #expect(throws: StoreError(.badKey)) { _ = try await empty.store.open(key) }
            await #expect(throws: StoreError(.badKey)) { _ = try await empty.content(key) }
            await #expect(throws: StoreError(.badKey)) { try await empty.store.delete(key) }
        }
    }

    @Test(
        "a shard's old keys come in pages, from every folder of that shard, and no others",
        arguments: StoreKind.available)
    func oldKeys(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        let keys = (0..<5).map { "up/0a/\($0)" } + ["va/0a/x_small"]
        for key in keys + ["up/0b/other", "plain"] { try await empty.put(key, [1]) }
        try await empty.store.probe()
        func pages(before date: Date, pageMax: Int, stopAfter: Int = .max) async throws -> [[String]] {
            var pages: [[String]] = []
            try await empty.store.oldKeys(shard: 10, before: date, pageMax: pageMax) { page in
                pages.append(page)
                return pages.count < stopAfter
            }
            return pages
        }
        let found = try await pages(before: Date() + 60, pageMax: 3)
        #expect(found.joined().sorted() == keys)
        #expect(found.count > 2 && found.allSatisfy { $0.count <= 3 })
        #expect(try await pages(before: Date() + 60, pageMax: 3, stopAfter: 1).count == 1)
        #expect(try await pages(before: Date() - 60, pageMax: 3).isEmpty)
    }

    @Test("of keys that are asked about those without an object are told", arguments: StoreKind.available)
    func missing(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        for key in ["up/0a/a", "up/0a/b_", "up/0a/b_small", "up/0a/c", "up/0b/b"] { try await empty.put(key, [1]) }
        let store = empty.store
        #expect(try await store.missing(of: []) == [])
        #expect(try await store.missing(of: ["up/0a/a", "up/0a/b_small", "up/0a/c"]) == [])
        #expect(
            try await store.missing(of: ["up/0a/0", "up/0a/a", "up/0a/b", "up/0a/b_", "up/0a/z"])
                == ["up/0a/0", "up/0a/b", "up/0a/z"])
        #expect(try await store.missing(of: ["up/0c/a", "up/0c/b"]) == ["up/0c/a", "up/0c/b"])
    }

    @Test("a probe leaves nothing", arguments: StoreKind.available)
    func probe(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        try await empty.store.probe()
        #expect(empty.folder.files.isEmpty)
        guard let store = empty.store as? S3Store else { return }
        #expect(try await store.ask(S3Request("HEAD", store.root + "tmp/probe")) == nil)
    }

    @Test("an error of whoever uses a local file is theirs, and the copy goes", arguments: StoreKind.available)
    func localError(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        try await empty.put("up/ab/abcdef", [1])
        await #expect(throws: CancellationError.self) {
            try await empty.store.withLocalFile("up/ab/abcdef") { _ in throw CancellationError() }
        }
        #expect(empty.folder.files == (kind == .folder ? ["up/ab/abcdef"] : []))
    }

    // MARK: What only an S3 has

    @Test("a sweep finds nothing of others in the same bucket", arguments: StoreKind.remote)
    func foreign(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        let store = try #require(empty.store as? S3Store)
        let foreign = ["backup/0a/file", "upload/0a/file", "tmp/0a/file", "u/p/0a/file"]
        for key in foreign { _ = try await store.ask(S3Request("PUT", store.root + key)) }
        let begun = try await store.ask(S3Request("POST", store.root + "backup/big", query: [("uploads", "")]))
        let answer = S3Document(try #require(begun).body)
        let upload = try #require(answer.texts(of: "UploadId").first)
        try await empty.put("va/0a/ours", [1])
        var found: [String] = []
        try await store.oldKeys(shard: 10, before: Date() + 60, pageMax: 10) { page in
            found += page
            return true
        }
        #expect(found == ["va/0a/ours"])
        #expect(try await store.sweep(now: Date() + S3Store.leftoverSecondsMax + 60) == 0)
        let left = try await store.ask(S3Request("GET", "", query: [("prefix", store.root), ("uploads", "")]))
        #expect(S3Document(try #require(left).body).texts(of: "UploadId") == [upload])
        for key in foreign { #expect(try await store.ask(S3Request("HEAD", store.root + key)) != nil, "\(key)") }
    }

    @Test(
        "a part of an object is read without the rest, and another object of its name is noticed",
        arguments: StoreKind.remote)
    func ranges(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        try await empty.put("up/ab/abcdef", [0, 1, 2, 3, 4, 5, 6, 7])
        guard case .remote(let object)? = try await empty.store.open("up/ab/abcdef") else {
            throw StoreTestFailure("an object of an S3 is elsewhere")
        }
        #expect(object.bytes == 8 && abs(object.modifiedAt.timeIntervalSinceNow) < 60)
        #expect(try await object.read(at: 2, count: 3) == [2, 3, 4])
        #expect(try await object.read(at: 7, count: 1) == [7])
        await #expect(throws: StoreError.self) { _ = try await object.read(at: 6, count: 5) }
        try await empty.put("up/ab/abcdef", [9, 9, 9, 9, 9, 9, 9, 9])
        await #expect(throws: StoreError(.changed)) { _ = try await object.read(at: 2, count: 3) }
        try await empty.store.delete("up/ab/abcdef")
        await #expect(throws: StoreError(.changed)) { _ = try await object.read(at: 2, count: 3) }
    }

    @Test("the sweep ends uploads in parts that nobody goes on with", arguments: StoreKind.remote)
    func sweepUploads(kind: StoreKind) async throws {
        let empty = try await EmptyStore(kind, files: files)
        do {
            // Forgotten by its owner, as by a process that was killed.
            let writer = try await empty.store.create("up/ab/abcdef")
            try await writer.write([UInt8](repeating: 7, count: (5 << 20) + 1))
        }
        // Moto says of each that it began in 2010.
        #expect(try await empty.store.sweep(now: Date() + S3Store.leftoverSecondsMax + 60) == 1)
        #expect(try await empty.store.sweep(now: Date() + S3Store.leftoverSecondsMax + 60) == 0)
    }

    @Test("wrong keys and a bucket that is not there are told with what to look at")
    func wrongSettings() async throws {
        guard MotoServer.isInstalled else { return }
        let bucket = try await MotoServer.bucket()
        for (name, secret, said) in [
            (bucket.bucket, "wrong", "SignatureDoesNotMatch (look at MARTLET_S3_ACCESS_KEY"),
            ("nothing-here", bucket.secret_key, "NoSuchBucket (the bucket of MARTLET_STORE is not there)"),
        ] {
            let location = S3Location(
                endpoint: bucket.endpoint, region: bucket.region, bucket: name, style: .path,
                accessKey: bucket.access_key, secretKey: secret)
            let store = S3Store(
                client: S3Client(location, offload: files), prefix: "", scratch: "/tmp", files: files,
                clock: SystemClock())
            let error = await #expect(throws: StoreError.self) { try await store.probe() }
            #expect(error?.description.contains(said) == true, "\(String(describing: error))")
            #expect(error?.isTrouble == true && error?.description.contains(secret) == false)
        }
    }
}

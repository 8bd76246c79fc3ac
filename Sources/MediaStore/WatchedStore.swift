import Core
import Foundation
import ServiceKit

/// A store that remembers whether it works. Readiness tells of its trouble, and so do a metric and the log; but a
/// service without its store still answers searches and takes messages, so it is given work all the same.
public final class WatchedStore: WorkingStore {
    private let store: any WorkingStore
    private let watch: Watch

    public init(_ store: any WorkingStore, health: Health, metrics: Metrics, clock: any ServiceClock, log: Log) {
        self.store = store
        watch = Watch(
            broken: "the object store does not work", mended: "the object store works again", clock: clock, log: log
        ) {
            do { try await store.probe() } catch { return Self.finding(error) }
            return .works
        }
        watch.show("store", in: health, metrics, gauge: "martlet_store_up", "1 while the object store works.")
    }

    /// What is wrong, as far as is known; nil when the last that was written went well.
    public var problem: String? { watch.problem }

    /// Tries the store now, and again while it does not work.
    public func start() { watch.start() }

    public func stop() { watch.stop() }

    // MARK: The store

    public func create(_ key: String) async throws -> any ObjectWriter {
        Writer(writer: try await noting { try await store.create(key) }, owner: self)
    }

    public func size(_ key: String) async throws -> Int64? { try await noting { try await store.size(key) } }

    public func open(_ key: String) async throws -> StoredObject? {
        guard let object = try await noting({ try await store.open(key) }) else { return nil }
        guard case .remote(let remote) = object else { return object }
        return .remote(Remote(object: remote, owner: self))
    }

    public func delete(_ key: String) async throws { try await noting { try await store.delete(key) } }

    public func withLocalFile<T>(_ key: String, _ body: (String) async throws -> T) async throws -> T? {
        // An error of the body's is noted only when it is the store's own.
        try await noting { try await store.withLocalFile(key, body) }
    }

    public func oldKeys(
        shard: Int, before date: Date, pageMax: Int, _ page: ([String]) async throws -> Bool
    ) async throws {
        try await noting { try await store.oldKeys(shard: shard, before: date, pageMax: pageMax, page) }
    }

    public func missing(of keys: [String]) async throws -> [String] {
        try await noting { try await store.missing(of: keys) }
    }

    public func sweep(now: Date) async throws -> Int { try await noting { try await store.sweep(now: now) } }

    public func probe() async throws {
        try await noting { try await store.probe() }
        works()
    }

    // MARK: What is known

    private func noting<T>(_ work: () async throws -> T) async throws -> T {
        do { return try await work() } catch {
            watch.note(Self.finding(error))
            throw error
        }
    }

    private static func finding(_ error: any Error) -> Watch.Finding {
        guard let error = error as? StoreError, error.isTrouble else { return .unknown }
        return .fails(error.description)
    }

    /// Only what has been written shows this: a full disk can still be read.
    private func works() { watch.note(.works) }

    private struct Writer: ObjectWriter {
        let writer: any ObjectWriter
        let owner: WatchedStore

        func write(_ bytes: [UInt8]) async throws { try await owner.noting { try await writer.write(bytes) } }

        func commit() async throws {
            try await owner.noting { try await writer.commit() }
            owner.works()
        }

        func abort() async { await writer.abort() }
    }

    private struct Remote: RemoteObject {
        let object: any RemoteObject
        let owner: WatchedStore

        var bytes: Int64 { object.bytes }
        var modifiedAt: Date { object.modifiedAt }

        func read(at offset: Int64, count: Int) async throws -> [UInt8] {
            try await owner.noting { try await object.read(at: offset, count: count) }
        }
    }
}

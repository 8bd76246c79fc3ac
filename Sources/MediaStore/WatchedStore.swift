import Core
import Foundation
import ServiceKit
import Synchronization

/// A store that remembers whether it works. Readiness tells of its trouble, and so do a metric and the log; but a
/// service without its store still answers searches and takes messages, so it is given work all the same.
public final class WatchedStore: WorkingStore {
    /// Between two tries while something is wrong; nothing is tried while all is well.
    public static let probeSeconds = 5.0

    private let store: any WorkingStore
    private let log: Log
    private let clock: any ServiceClock
    private let trouble = Mutex<String?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    public init(_ store: any WorkingStore, health: Health, metrics: Metrics, clock: any ServiceClock, log: Log) {
        self.store = store
        self.clock = clock
        self.log = log
        health.mention("store") { [weak self] in self?.problem }
        metrics.observe("martlet_store_up", "1 while the object store works.") { [weak self] in
            self?.problem == nil ? 1 : 0
        }
    }

    /// What is wrong, as far as is known; nil when the last that was written went well.
    public var problem: String? { trouble.withLock { $0 } }

    /// Tries the store now, and again while it does not work.
    public func start() {
        task.withLock { task in
            task = Task { [weak self, clock] in
                await self?.tryOnce()
                while !Task.isCancelled {
                    do { try await clock.sleep(seconds: Self.probeSeconds) } catch { return }
                    if self?.problem != nil { await self?.tryOnce() }
                }
            }
        }
    }

    public func stop() { task.withLock { $0?.cancel() } }

    private func tryOnce() async {
        // What goes wrong is noted and logged there.
        do { try await probe() } catch { return }
    }

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
            if let error = error as? StoreError, error.isTrouble { fails(error) }
            throw error
        }
    }

    private func fails(_ error: StoreError) {
        let isNews = trouble.withLock { trouble in
            defer { trouble = error.description }
            return trouble == nil
        }
        if isNews { log.error("the object store does not work", ["error": .string(error.description)]) }
    }

    /// Only what has been written shows this: a full disk can still be read.
    private func works() {
        let isNews = trouble.withLock { trouble in
            defer { trouble = nil }
            return trouble != nil
        }
        if isNews { log.info("the object store works again") }
    }

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

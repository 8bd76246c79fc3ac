import Core
import EventLoop
import Foundation
import HTTPServer
import ServiceKit

/// The object store, whose trouble (a full disk, a folder that is gone) is an outage and no bug: the log is told what
/// it was, the client to come back.
struct GuardedStore: ObjectStore {
    static let unavailable = AppError(
        .unavailable, "Files cannot be stored or read at the moment. Try again later.", retryAfterSeconds: 30)

    let store: any ObjectStore
    let log: Log

    func create(_ key: String) async throws -> any ObjectWriter {
        let writer = try await guarded("create") { try await store.create(key) }
        return Writer(writer: writer, store: self)
    }

    func size(_ key: String) async throws -> Int64? { try await guarded("size") { try await store.size(key) } }

    func open(_ key: String) async throws -> StoredObject? {
        guard let object = try await guarded("open", { try await store.open(key) }) else { return nil }
        guard case .remote(let remote) = object else { return object }
        return .remote(Remote(object: remote, store: self))
    }

    func delete(_ key: String) async throws { try await guarded("delete") { try await store.delete(key) } }

    private func guarded<T>(_ act: StaticString, _ work: () async throws -> T) async throws -> T {
        do { return try await work() } catch {
            switch error {
            case is AppError, is HTTPError, is CancellationError, is OffloadPool.Full: throw error
            default:
                log.error("the object store failed", ["act": .string("\(act)"), "error": .string("\(error)")])
                throw Self.unavailable
            }
        }
    }

    private struct Remote: RemoteObject {
        let object: any RemoteObject
        let store: GuardedStore

        var bytes: Int64 { object.bytes }
        var modifiedAt: Date { object.modifiedAt }

        func read(at offset: Int64, count: Int) async throws -> [UInt8] {
            try await store.guarded("read") { try await object.read(at: offset, count: count) }
        }
    }

    private struct Writer: ObjectWriter {
        let writer: any ObjectWriter
        let store: GuardedStore

        func write(_ bytes: [UInt8]) async throws {
            try await store.guarded("write") { try await writer.write(bytes) }
        }

        func commit() async throws { try await store.guarded("commit") { try await writer.commit() } }

        func abort() async { await writer.abort() }
    }
}

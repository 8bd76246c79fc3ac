import Core
import EventLoop
import Foundation
import Synchronization

/// One object on its way into a `FolderStore`. One owner, one call at a time.
final class FolderWriter: ObjectWriter {
    private let temporary: String
    private let target: String
    private let store: FolderStore
    /// Nil once the object is committed or aborted.
    private let open: Mutex<Int32?>

    init(descriptor: Int32, temporary: String, target: String, store: FolderStore) {
        self.temporary = temporary
        self.target = target
        self.store = store
        open = Mutex(descriptor)
    }

    deinit {
        // The owner forgot it, or its task was cancelled: nothing may stay behind.
        if let descriptor = take() { Self.discard(descriptor, temporary) }
    }

    func write(_ bytes: [UInt8]) async throws {
        guard let descriptor = open.withLock({ $0 }) else { throw StoreError(.finished) }
        guard !bytes.isEmpty else { return }
        try await store.offload.run { try Files.write(bytes, to: descriptor) }
    }

    func commit() async throws {
        guard let descriptor = take() else { throw StoreError(.finished) }
        let (temporary, target) = (temporary, target)
        do {
            try await store.offload.run {
                do {
                    guard fsync(descriptor) == 0 else { throw StoreError.system("fsync") }
                    let folder = Files.parent(of: target)
                    try Files.makeFolder(folder)
                    guard rename(temporary, target) == 0 else { throw StoreError.system("rename") }
                    close(descriptor)
                    try Files.sync(folder: folder)
                } catch {
                    Self.discard(descriptor, temporary)
                    throw error
                }
            }
        } catch let error as OffloadPool.Full {
            Self.discard(descriptor, temporary)
            throw error
        }
    }

    func abort() async {
        guard let descriptor = take() else { return }
        let temporary = temporary
        do {
            try await store.offload.run { Self.discard(descriptor, temporary) }
        } catch {
            // The pool is full: two quick calls here are better than a file left behind.
            Self.discard(descriptor, temporary)
        }
    }

    private func take() -> Int32? {
        open.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
    }

    private static func discard(_ descriptor: Int32, _ temporary: String) {
        close(descriptor)
        unlink(temporary)
    }
}

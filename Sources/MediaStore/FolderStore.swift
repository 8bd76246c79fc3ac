import Core
import EventLoop
import Foundation

/// Objects as files below one folder. An object appears whole or not at all: bytes go to a file in `tmp/` of the same
/// file system, which `commit` makes durable and renames. Nothing here runs on a loop.
public struct FolderStore: ObjectStore {
    /// A temporary file that nobody wrote to for so long belongs to a process that is gone: an upload has its own,
    /// much shorter limits.
    public static let temporarySecondsMax: TimeInterval = 24 * 3600

    let root: String
    let offload: OffloadPool
    private var temporary: String { root + "/tmp" }

    /// Makes the folder when it is not there. Blocks: call it before the loops serve.
    /// - Throws: `StoreError` when it cannot be made or written.
    public init(root: String, offload: OffloadPool) throws {
        var root = root
        while root.count > 1, root.hasSuffix("/") { root.removeLast() }
        self.root = root
        self.offload = offload
        try Files.makeFolder(root)
        try Files.makeFolder(root + "/tmp")
        guard access(root + "/tmp", W_OK) == 0 else { throw StoreError.system("access") }
    }

    public func create(_ key: String) async throws -> any ObjectWriter {
        let target = try path(key)
        let name = temporary + "/" + String(UInt64.random(in: .min ... .max), radix: 16)
        let descriptor = try await offload.run { () throws -> Int32 in
            // 0600: only this user's services read uploads; the proxy never does.
            let descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw StoreError.system("open") }
            return descriptor
        }
        return FolderWriter(descriptor: descriptor, temporary: name, target: target, store: self)
    }

    public func size(_ key: String) async throws -> Int64? {
        let path = try path(key)
        return try await offload.run { try Files.size(path) }
    }

    public func localPath(_ key: String) async throws -> String? {
        let path = try path(key)
        return try await offload.run { try Files.size(path) == nil ? nil : path }
    }

    public func delete(_ key: String) async throws {
        let path = try path(key)
        try await offload.run {
            guard unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR else { throw StoreError.system("unlink") }
        }
    }

    /// Removes what processes that are gone have left in `tmp/`. Returns how many files and folders went.
    public func sweep(olderThan seconds: TimeInterval = Self.temporarySecondsMax, now: Date) async throws -> Int {
        let folder = temporary
        let before = now.timeIntervalSince1970 - seconds
        return try await offload.run {
            var removed = 0
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                var facts = stat()
                let path = folder + "/" + name
                guard lstat(path, &facts) == 0, TimeInterval(facts.st_mtim.tv_sec) < before else { continue }
                switch facts.st_mode & S_IFMT {
                case S_IFREG: if unlink(path) == 0 { removed += 1 }
                // A child's folder, whose worker was killed.
                case S_IFDIR: if (try? FileManager.default.removeItem(atPath: path)) != nil { removed += 1 }
                default: break
                }
            }
            return removed
        }
    }

    func path(_ key: String) throws -> String {
        guard ObjectKey.isValid(key), !key.hasPrefix("tmp/"), key != "tmp" else { throw StoreError(.badKey) }
        return root + "/" + key
    }
}

import Core
import EventLoop
import Foundation

/// Objects as files below one folder. An object appears whole or not at all: bytes go to a file in `tmp/` of the same
/// file system, which `commit` makes durable and renames. Nothing here runs on a loop.
public struct FolderStore: WorkingStore {
    /// A temporary file that nobody wrote to for so long belongs to a process that is gone: an upload has its own,
    /// much shorter limits.
    public static let temporarySecondsMax: TimeInterval = 24 * 3600

    let root: String
    let offload: OffloadPool
    private var temporary: String { root + "/tmp" }

    /// Makes the folder when it is not there, but none above it. Blocks: call it before the loops serve.
    /// - Throws: `StoreError` when it cannot be made or written.
    public init(root: String, offload: OffloadPool) throws {
        var root = root
        while root.count > 1, root.hasSuffix("/") { root.removeLast() }
        self.root = root
        self.offload = offload
        try Files.makeNamedFolder(root)
        try Files.makeFolder(root + "/tmp")
        guard access(root + "/tmp", W_OK) == 0 else { throw StoreError.system("access") }
    }

    public func create(_ key: String) async throws -> any ObjectWriter {
        let target = try path(key)
        let name = Files.temporaryName(in: temporary)
        let descriptor = try await offload.run { try Files.create(name) }
        return FolderWriter(descriptor: descriptor, temporary: name, target: target, store: self)
    }

    public func size(_ key: String) async throws -> Int64? {
        let path = try path(key)
        return try await offload.run { try Files.size(path) }
    }

    public func open(_ key: String) async throws -> StoredObject? {
        let path = try path(key)
        return try await offload.run { try Files.size(path) == nil ? nil : .file(path: path) }
    }

    public func withLocalFile<T>(_ key: String, _ body: (String) async throws -> T) async throws -> T? {
        guard case .file(let path)? = try await open(key) else { return nil }
        return try await body(path)
    }

    public func delete(_ key: String) async throws {
        let path = try path(key)
        try await offload.run {
            guard unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR else { throw StoreError.system("unlink") }
        }
    }

    public func missing(of keys: [String]) async throws -> [String] {
        let paths = try keys.map { (key: $0, path: try path($0)) }
        return try await offload.run { try paths.filter { try Files.size($0.path) == nil }.map(\.key) }
    }

    /// Removes what processes that are gone have left in `tmp/`. Returns how many files and folders went.
    public func sweep(now: Date) async throws -> Int {
        let (folder, before) = (temporary, now - Self.temporarySecondsMax)
        return try await offload.run { try Files.sweep(folder, before: before) }
    }

    public func probe() async throws {
        let path = Files.temporaryName(in: temporary)
        try await offload.run { try Files.probe(path) }
    }

    func path(_ key: String) throws -> String {
        guard ObjectKey.isValid(key), !key.hasPrefix("tmp/"), key != "tmp" else { throw StoreError(.badKey) }
        return root + "/" + key
    }
}

import Core
import Foundation
import Synchronization

extension FolderStore {
    public func oldKeys(
        shard: Int, before date: Date, pageMax: Int, _ page: ([String]) async throws -> Bool
    ) async throws {
        let shard = ObjectShard.name(shard)
        let root = root
        for top in ObjectKey.tops {
            let prefix = "\(top)/\(shard)/"
            guard let folder = try await offload.run({ try FolderPages(root + "/" + prefix) }) else { continue }
            while true {
                guard let names = try await offload.run({ try folder.next(max: pageMax, before: date) }) else { break }
                let keys = names.map { prefix + $0 }.filter(ObjectKey.isValid)
                if keys.isEmpty { continue }
                guard try await page(keys) else { return }
            }
        }
    }
}

/// The names in one folder, some at a time, however many there are. One owner, one call at a time.
private final class FolderPages: Sendable {
    private let folder: Mutex<OpaquePointer?>

    /// Nil when there is no such folder.
    init?(_ path: String) throws {
        guard let opened = opendir(path) else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw StoreError.system("opendir")
        }
        folder = Mutex(opened)
    }

    deinit {
        folder.withLock { folder in
            if let folder { closedir(folder) }
            folder = nil
        }
    }

    /// Of the next `max` names those of files last written before `date`; nil when there are no names left.
    func next(max: Int, before date: Date) throws -> [String]? {
        try folder.withLock { folder in
            guard let folder else { return nil }
            var (names, seen) = ([String](), 0)
            while seen < max {
                errno = 0
                guard let entry = readdir(folder) else {
                    guard errno == 0 else { throw StoreError.system("readdir") }
                    return seen == 0 ? nil : names
                }
                seen += 1
                let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                    name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                var facts = stat()
                // What is gone by now is somebody else's work.
                guard fstatat(dirfd(folder), name, &facts, AT_SYMLINK_NOFOLLOW) == 0,
                    facts.st_mode & S_IFMT == S_IFREG,
                    TimeInterval(facts.st_mtim.tv_sec) < date.timeIntervalSince1970
                else { continue }
                names.append(name)
            }
            return names
        }
    }
}

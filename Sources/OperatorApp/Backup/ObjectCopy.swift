import Core
import Crypto
import EventLoop
import Foundation
import Glibc

/// Objects between a store and a backup's folder, and their hashes on the way. A piece at a time, several objects at
/// once.
struct ObjectCopy: Sendable {
    /// Objects on their way at once: an S3 answers slowly, and each holds a piece in memory.
    static let atOnceMax = 8
    /// Objects of one round.
    static let pageMax = 1000

    let store: any WorkingStore
    let folder: BackupFolder
    let files: OffloadPool

    struct Copied: Sendable {
        let key: String
        /// Nil when there is no such object.
        let sha256: String?
        let bytes: Int64
    }

    /// Runs `work` for all of them, `atOnceMax` at a time; the results in the order of the items.
    static func each<Item: Sendable, T: Sendable>(
        _ items: [Item], _ work: @escaping @Sendable (Item) async throws -> T
    ) async throws -> [T] {
        try await withThrowingTaskGroup(of: (Int, T).self) { group in
            var results = [T?](repeating: nil, count: items.count)
            var next = 0
            func add() {
                guard next < items.count else { return }
                let (index, item) = (next, items[next])
                group.addTask { (index, try await work(item)) }
                next += 1
            }
            for _ in 0..<atOnceMax { add() }
            while let (index, result) = try await group.next() {
                results[index] = result
                add()
            }
            return results.compactMap { $0 }
        }
    }

    /// Gives `body` the bytes of an object of the store; false when there is none.
    private func pieces(of key: String, _ body: ([UInt8]) async throws -> Void) async throws -> Bool {
        switch try await store.open(key) {
        case nil: return false
        case .file(let path):
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                if errno == ENOENT { return false }
                throw BackupError.system(path)
            }
            defer { close(descriptor) }
            while true {
                let piece = try await files.run { try Disk.read(descriptor, path: path) }
                if piece.isEmpty { return true }
                try await body(piece)
            }
        case .remote(let object):
            var offset: Int64 = 0
            while offset < object.bytes {
                let piece = try await object.read(
                    at: offset, count: Int(min(Int64(Disk.pieceBytes), object.bytes - offset)))
                guard !piece.isEmpty else { throw BackupError("the object \(key) ends before its time") }
                offset += Int64(piece.count)
                try await body(piece)
            }
            return true
        }
    }

    /// From the store into the folder.
    func save(_ key: String) async throws -> Copied {
        let path = folder.object(key)
        let (hasher, files) = (SHA256.Hasher(), files)
        let descriptor = try await files.run {
            try Disk.makeFolder(URL(filePath: path).deletingLastPathComponent().path)
            return try Disk.create(path)
        }
        defer { close(descriptor) }
        var bytes: Int64 = 0
        let isThere = try await pieces(of: key) { piece in
            hasher.update(piece)
            bytes += Int64(piece.count)
            try await files.run { try Disk.write(piece, to: descriptor, path: path) }
        }
        guard isThere else {
            unlink(path)
            return Copied(key: key, sha256: nil, bytes: 0)
        }
        try await files.run { try Disk.sync(descriptor, path: path) }
        return Copied(key: key, sha256: Disk.hexadecimal(hasher.finish()), bytes: bytes)
    }

    /// From the folder into the store; then what the store has is read again and compared.
    func bring(_ key: String, sha256: String) async throws -> Int64 {
        let path = folder.object(key)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw BackupError.system(path) }
        defer { close(descriptor) }
        let hasher = SHA256.Hasher()
        let writer = try await store.create(key)
        var bytes: Int64 = 0
        do {
            while true {
                let piece = try await files.run { try Disk.read(descriptor, path: path) }
                if piece.isEmpty { break }
                hasher.update(piece)
                bytes += Int64(piece.count)
                try await writer.write(piece)
            }
            guard Disk.hexadecimal(hasher.finish()) == sha256 else {
                throw BackupError("\(path) is not what was written: its SHA-256 differs")
            }
            try await writer.commit()
        } catch {
            await writer.abort()
            throw error
        }
        _ = try await pieces(of: key) { hasher.update($0) }
        guard Disk.hexadecimal(hasher.finish()) == sha256 else {
            throw BackupError("the store has not kept \(key) as it was written")
        }
        return bytes
    }
}

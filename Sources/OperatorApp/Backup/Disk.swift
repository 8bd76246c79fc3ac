import Crypto
import Foundation
import Glibc

/// What went wrong with a file or with another program, in a sentence for the operator.
struct BackupError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    static func system(_ path: String) -> BackupError { BackupError("\(path): \(String(cString: strerror(errno)))") }
}

/// The blocking calls of backup and restore. They run on a pool's threads.
enum Disk {
    static let pieceBytes = 1 << 20

    /// Only this user's: what is saved has everybody's addresses in it.
    static func create(_ path: String) throws -> Int32 {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BackupError.system(path) }
        return descriptor
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32, path: String) throws {
        try bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[sent...])
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw BackupError.system(path) }
                sent += count
            }
        }
    }

    /// Nothing at the end.
    static func read(_ descriptor: Int32, path: String) throws -> [UInt8] {
        while true {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: pieceBytes) { buffer, initialised in
                count = Glibc.read(descriptor, buffer.baseAddress, pieceBytes)
                initialised = max(0, count)
            }
            if count >= 0 { return bytes }
            guard errno == EINTR else { throw BackupError.system(path) }
        }
    }

    /// Gives `body` the file a piece at a time.
    static func pieces(of path: String, _ body: ([UInt8]) throws -> Void) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw BackupError.system(path) }
        defer { close(descriptor) }
        while true {
            let piece = try read(descriptor, path: path)
            if piece.isEmpty { return }
            try body(piece)
        }
    }

    /// The SHA-256 of a file in hexadecimal digits, and its size.
    static func digest(of path: String) throws -> (sha256: String, bytes: Int64) {
        let hasher = SHA256.Hasher()
        var bytes: Int64 = 0
        try pieces(of: path) { piece in
            hasher.update(piece)
            bytes += Int64(piece.count)
        }
        return (hexadecimal(hasher.finish()), bytes)
    }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Gives `body` the lines of a text, without their ends, so many at once.
    static func lines(of path: String, together: Int, _ body: ([String]) async throws -> Void) async throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BackupError.system(path) }
        defer { close(descriptor) }
        var rest: [UInt8] = []
        var lines: [String] = []
        while true {
            let piece = try read(descriptor, path: path)
            if piece.isEmpty { break }
            var parts = (rest + piece).split(separator: 0x0A, omittingEmptySubsequences: false)
            rest = parts.popLast().map(Array.init) ?? []
            for part in parts {
                lines.append(String(decoding: part, as: UTF8.self))
                guard lines.count == together else { continue }
                try await body(lines)
                lines = []
            }
        }
        guard rest.isEmpty else { throw BackupError("\(path): its last line has no end") }
        if !lines.isEmpty { try await body(lines) }
    }

    static func writeWhole(_ text: String, to path: String) throws {
        let descriptor = try create(path)
        defer { close(descriptor) }
        try write(Array(text.utf8), to: descriptor, path: path)
        try sync(descriptor, path: path)
    }

    /// Makes the names durable of files that are durable themselves.
    static func sync(folder: String) throws {
        // Of all folders beneath it too, each of which would otherwise have to be opened.
        Glibc.sync()
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BackupError.system(folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw BackupError.system(folder) }
    }

    static func sync(_ descriptor: Int32, path: String) throws {
        guard fsync(descriptor) == 0 else { throw BackupError.system(path) }
    }

    static func makeFolder(_ path: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw BackupError("\(path) cannot be made: \(error.localizedDescription)")
        }
    }
}

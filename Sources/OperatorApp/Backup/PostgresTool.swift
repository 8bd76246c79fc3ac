import Crypto
import Foundation
import Glibc
import Synchronization

/// `pg_dump` or `pg_restore`, run as a child. Its password is in its environment, not in its arguments.
struct PostgresTool: Sendable {
    /// Of what it complained.
    static let wordsBytesMax = 4096
    private static let debianFolder = "/usr/lib/postgresql"

    let path: String
    private let environment: [String: String]

    /// - Parameter connection: what the tool connects by.
    /// - Throws: when it is not installed, or too old for the server, with the remedy.
    init(
        _ name: String, serverVersion: String, connection: [String: String],
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let wanted = Int(serverVersion.prefix { $0.isNumber }) ?? 0
        let remedy = "install PostgreSQL's client programs: apt-get install postgresql-client-\(wanted)"
        let folders = Self.folders(environment)
        guard let folder = folders.first(where: { access("\($0)/\(name)", X_OK) == 0 }) else {
            throw BackupError("\(name) is not there; \(remedy)")
        }
        path = "\(folder)/\(name)"
        var own = environment.filter { !$0.key.hasPrefix("PG") && !$0.key.hasPrefix("MARTLET_") }
        own["LC_ALL"] = "C.UTF-8"
        own["PGAPPNAME"] = "martlet-operator/\(name)"
        self.environment = own.merging(connection) { _, given in given }
        let words = try run(["--version"]) { String(decoding: $0, as: UTF8.self) }.joined()
        let version = Int(words.split(separator: " ").last { $0.first?.isNumber == true }?.prefix { $0.isNumber } ?? "")
        guard let version, version >= wanted else {
            throw BackupError("\(path) is of version \(version ?? 0), and the server of \(serverVersion): \(remedy)")
        }
    }

    /// Debian's by version, the newest first, then those of PATH.
    private static func folders(_ environment: [String: String]) -> [String] {
        let versions = ((try? FileManager.default.contentsOfDirectory(atPath: debianFolder)) ?? []).compactMap(Int.init)
        let debian = versions.sorted(by: >).map { "\(debianFolder)/\($0)/bin" }
        return debian + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
    }

    /// Runs it to its end and gives what `read` makes of each piece of its output. Blocks.
    /// - Throws: its own last words when it fails.
    @discardableResult
    func run<T>(_ arguments: [String], read: ([UInt8]) throws -> T) throws -> [T] {
        let complaints = try Complaints()
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardError = complaints.handle
        let output = Pipe()
        process.standardOutput = output
        do { try process.run() } catch { throw BackupError("\(path) cannot be run") }
        var results: [T] = []
        do {
            let descriptor = output.fileHandleForReading.fileDescriptor
            while true {
                let piece = try Disk.read(descriptor, path: path)
                if piece.isEmpty { break }
                results.append(try read(piece))
            }
        } catch {
            process.terminate()
            process.waitUntilExit()
            throw error
        }
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw BackupError("\(path) failed: \(complaints.text)")
        }
        return results
    }

    /// A file without a name: a pipe would have to be read at the same time as the output.
    private struct Complaints {
        let handle: FileHandle

        init() throws {
            var name = Array((NSTemporaryDirectory() + "martlet-XXXXXX").utf8CString)
            let descriptor = mkstemp(&name)
            guard descriptor >= 0 else { throw BackupError.system(NSTemporaryDirectory()) }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            unlink(name)
            handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }

        var text: String {
            var bytes = [UInt8](repeating: 0, count: wordsBytesMax)
            let count = pread(handle.fileDescriptor, &bytes, bytes.count, 0)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}

extension PostgresTool {
    /// Writes a dump of the snapshot, in pg_dump's custom format. Blocks.
    func dump(snapshot: String, to path: String, written: @Sendable (Int) -> Void) throws -> Int64 {
        let descriptor = try Disk.create(path)
        defer { close(descriptor) }
        let pieces = try run(["--format=custom", "--no-owner", "--no-privileges", "--snapshot=\(snapshot)"]) { piece in
            try Disk.write(piece, to: descriptor, path: path)
            written(piece.count)
            return piece.count
        }
        try Disk.sync(descriptor, path: path)
        return pieces.reduce(0) { $0 + Int64($1) }
    }

    /// Reads a dump into the database, all of it or nothing. Blocks.
    func restore(from path: String, database: String) throws {
        try run(
            [
                "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--dbname=\(database)",
                path,
            ]
        ) { _ in }
    }
}

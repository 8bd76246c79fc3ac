import Crypto
import Foundation
import Glibc
import Synchronization

/// `pg_dump` or `pg_restore`, run as a child. Its password is in its environment, not in its arguments.
struct PostgresTool: Sendable {
    /// Of what it complained.
    static let wordsBytesMax = 4096
    static let debianFolder = "/usr/lib/postgresql"

    let path: String
    private let environment: [String: String]

    /// - Parameter connection: what the tool connects by.
    /// - Throws: when it is not installed, or too old for the server, with the remedy.
    init(
        _ name: String, serverVersion: String, connection: [String: String],
        environment: [String: String] = ProcessInfo.processInfo.environment, debianFolder: String = Self.debianFolder
    ) throws {
        let wanted = Int(serverVersion.prefix { $0.isNumber }) ?? 0
        let remedy = "install PostgreSQL's client programs: apt-get install postgresql-client-\(wanted)"
        let folders = Self.folders(environment, debianFolder, wanted: wanted)
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

    /// Debian's of the server's version, then newer ones, those of PATH, and the rest for what is said of them. The own
    /// version comes first: a newer `pg_restore` writes settings that an older server does not know.
    private static func folders(_ environment: [String: String], _ debianFolder: String, wanted: Int) -> [String] {
        let versions = ((try? FileManager.default.contentsOfDirectory(atPath: debianFolder)) ?? []).compactMap(Int.init)
            .sorted()
        func debian(_ versions: [Int]) -> [String] { versions.map { "\(debianFolder)/\($0)/bin" } }
        return debian(versions.filter { $0 >= wanted })
            + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
            + debian(versions.filter { $0 < wanted })
    }

    /// Runs it to its end and gives what `read` makes of each piece of its output. Blocks.
    /// - Throws: its own last words when it fails.
    @discardableResult
    func run<T>(_ arguments: [String], stop: ToolStop? = nil, read: ([UInt8]) throws -> T) throws -> [T] {
        let output = Pipe()
        let child = try begin(arguments, input: FileHandle.nullDevice, output: output, stop: stop)
        var results: [T] = []
        do {
            let descriptor = output.fileHandleForReading.fileDescriptor
            while true {
                let piece = try Disk.read(descriptor, path: path)
                if piece.isEmpty { break }
                results.append(try read(piece))
            }
        } catch {
            child.process.terminate()
            child.process.waitUntilExit()
            throw error
        }
        try child.end()
        return results
    }

    /// Runs it and gives it what `write` writes. Blocks.
    /// - Throws: its own last words when it fails, for then there is nobody to write to; else what `write` throws.
    func feed(_ arguments: [String], stop: ToolStop, write: (_ send: ([UInt8]) throws -> Void) throws -> Void) throws {
        let input = Pipe()
        let child = try begin(arguments, input: input, output: FileHandle.nullDevice, stop: stop)
        let descriptor = input.fileHandleForWriting.fileDescriptor
        var failure: (any Error)?
        var isRead = true
        do {
            try write { piece in
                isRead = false
                try Disk.write(piece, to: descriptor, path: path)
                isRead = true
            }
        } catch {
            failure = error
        }
        try? input.fileHandleForWriting.close()
        let words = Result { try child.end() }
        // Where nobody reads any more, its own words are the reason.
        if isRead, let failure { throw failure }
        try words.get()
        if let failure { throw failure }
    }

    private struct Child {
        let path: String
        let process: Process
        let complaints: Complaints
        let stop: ToolStop?

        func end() throws {
            process.waitUntilExit()
            if stop?.isStopped == true { throw CancellationError() }
            guard process.terminationReason == .exit, process.terminationStatus == 0 else {
                throw BackupError("\(path) failed: \(complaints.text)")
            }
        }
    }

    private func begin(_ arguments: [String], input: Any, output: Any, stop: ToolStop?) throws -> Child {
        let complaints = try Complaints()
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = environment
        process.standardInput = input
        process.standardOutput = output
        process.standardError = complaints.handle
        do { try process.run() } catch { throw BackupError("\(path) cannot be run") }
        stop?.watch(process)
        return Child(path: path, process: process, complaints: complaints, stop: stop)
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

/// Ends programs that run for a task when that is cancelled: the thread that waits for them cannot notice.
final class ToolStop: Sendable {
    private let state = Mutex((isStopped: false, processes: [Process]()))

    var isStopped: Bool { state.withLock { $0.isStopped } }

    func watch(_ process: Process) {
        let isStopped = state.withLock { state in
            state.processes.append(process)
            return state.isStopped
        }
        if isStopped { process.terminate() }
    }

    private func stop() {
        let processes = state.withLock { state in
            state.isStopped = true
            return state.processes
        }
        for process in processes { process.terminate() }
    }

    static func whenCancelled<T: Sendable>(_ body: (ToolStop) async throws -> T) async throws -> T {
        let stop = ToolStop()
        return try await withTaskCancellationHandler {
            try await body(stop)
        } onCancel: {
            stop.stop()
        }
    }
}

extension PostgresTool {
    /// Writes a dump of the snapshot, in pg_dump's custom format. Blocks.
    func dump(
        snapshot: String, to path: String, stop: ToolStop, written: @Sendable (Int) -> Void
    ) throws -> Int64 {
        let descriptor = try Disk.create(path)
        defer { close(descriptor) }
        let arguments = ["--format=custom", "--no-owner", "--no-privileges", "--snapshot=\(snapshot)"]
        let pieces = try run(arguments, stop: stop) { piece in
            try Disk.write(piece, to: descriptor, path: path)
            written(piece.count)
            return piece.count
        }
        try Disk.sync(descriptor, path: path)
        return pieces.reduce(0) { $0 + Int64($1) }
    }

    /// Looks at whether `pg_restore`, which this is, knows the dump. Blocks.
    func list(_ path: String) throws { try run(["--list", path]) { _ in } }

    /// Reads a dump into a database, all of it or nothing: what `pg_restore`, which this is, makes of it goes to `psql`
    /// between the beginning of a transaction and its end. Whichever of the programs dies, the end is missing, and the
    /// database is as it was. Blocks.
    func restore(
        from path: String, by psql: PostgresTool, database: String, script: (begin: String, end: String), stop: ToolStop
    ) throws {
        let arguments = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=\(database)"]
        try psql.feed(arguments, stop: stop) { send in
            try send(Array(script.begin.utf8))
            try run(["--no-owner", "--no-privileges", "--file=-", path], stop: stop) { try send($0) }
            try send(Array(script.end.utf8))
        }
    }
}

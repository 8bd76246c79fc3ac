import EventLoop
import Foundation
import Synchronization
import TestSupport
import Transfer

/// An S3 of a third party's on this machine, which checks signatures: Tests/Clients/object_store.py. One for all tests;
/// each has a prefix of its own in its bucket.
final class MotoServer: Sendable {
    struct Bucket: Decodable, Sendable {
        let endpoint: String
        let region: String
        let bucket: String
        let access_key: String
        let secret_key: String
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let python = root.appendingPathComponent(".local/venv/bin/python").path

    /// `make test` installs it before these tests run; without it the tests of S3 are skipped, and say so.
    static let isInstalled: Bool = {
        let packages = root.appendingPathComponent(".local/venv/lib").path
        let isThere = FileManager.default.subpaths(atPath: packages)?.contains { $0.hasSuffix("/moto/server.py") }
        if isThere != true { print("SKIPPED: no moto in .local/venv, so nothing is tested on an S3") }
        return isThere == true
    }()

    private static let pool = OffloadPool(name: "moto", threads: 1, queueMax: 64)
    private static let running = Mutex<(Process, Bucket)?>(nil)

    /// Starts it at the first call.
    static func bucket() async throws -> Bucket {
        try await pool.run {
            try running.withLock { running in
                if let running { return running.1 }
                let process = Process()
                process.executableURL = URL(fileURLWithPath: python)
                process.arguments = [root.appendingPathComponent("Tests/Clients/object_store.py").path]
                let (input, output) = (Pipe(), Pipe())
                // It ends with its input, which is ours.
                process.standardInput = input
                process.standardOutput = output
                process.standardError = FileHandle.nullDevice
                try process.run()
                var line = Data()
                while !line.contains(UInt8(ascii: "\n")) {
                    let more = output.fileHandleForReading.availableData
                    guard !more.isEmpty else { throw StoreTestFailure("moto did not start") }
                    line += more
                }
                let bucket = try JSONDecoder().decode(Bucket.self, from: line)
                running = (process, bucket)
                return bucket
            }
        }
    }
}

struct StoreTestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

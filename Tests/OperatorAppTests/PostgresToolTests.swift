import Foundation
import Testing

@testable import OperatorApp

@Suite("PostgreSQL's own programs")
struct PostgresToolTests {
    /// A folder as Debian's, with programs that say their versions.
    private static func programs(_ versions: [Int]) throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for version in versions {
            let bin = folder.appending(path: "\(version)/bin")
            try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
            let program = bin.appending(path: "pg_restore").path
            let script = "#!/bin/sh\necho 'pg_restore (PostgreSQL) \(version).4 (Debian)'\n"
            #expect(
                FileManager.default.createFile(
                    atPath: program, contents: Data(script.utf8), attributes: [.posixPermissions: 0o700]))
        }
        return folder.path
    }

    private static func path(_ server: String, in folder: String, path: String = "/nowhere") throws -> String {
        try PostgresTool(
            "pg_restore", serverVersion: server, connection: [:], environment: ["PATH": path], debianFolder: folder
        ).path
    }

    @Test("the server's own version is taken, else the next newer one; an older one is refused with the remedy")
    func versions() throws {
        let folder = try Self.programs([14, 15, 17, 18])
        defer { try? FileManager.default.removeItem(atPath: folder) }
        #expect(try Self.path("15.14", in: folder) == "\(folder)/15/bin/pg_restore")
        #expect(try Self.path("16.1", in: folder) == "\(folder)/17/bin/pg_restore")
        let elsewhere = "\(folder)/18/bin"
        #expect(try Self.path("14.2", in: "\(folder)/none", path: elsewhere) == "\(elsewhere)/pg_restore")
        let error = #expect(throws: BackupError.self) { try Self.path("19.0", in: folder) }
        #expect(error?.description.contains("apt-get install postgresql-client-19") == true)
    }
}

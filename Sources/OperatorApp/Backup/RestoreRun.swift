import Core
import EventLoop
import Foundation
import Synchronization

/// Looks at every byte of a backup. Needs neither database nor store.
struct BackupVerification {
    let folder: BackupFolder
    let files: OffloadPool
    let terminal: Terminal

    /// - Throws: with the first thing that is not as it was written.
    func perform() async throws -> BackupManifest {
        let (folder, files) = (folder, files)
        let manifest = try await files.run { try folder.opened() }
        let progress = ProgressLine(terminal)
        defer { progress.clear() }
        var (count, bytes): (Int64, Int64) = (0, 0)
        try await Disk.lines(of: folder.file(BackupFolder.listName), together: ObjectCopy.pageMax) { lines in
            let sizes = try await ObjectCopy.each(lines) { line in
                guard let listed = BackupFolder.listed(line) else {
                    throw BackupError(
                        "\(folder.file(BackupFolder.listName)) has a line that is none: \(line.prefix(100))")
                }
                let path = folder.object(listed.key)
                let found = try await files.run { try Disk.digest(of: path) }
                guard found.sha256 == listed.sha256 else {
                    throw BackupError("\(path) is not what was written: its SHA-256 differs")
                }
                return found.bytes
            }
            count += Int64(sizes.count)
            bytes += sizes.reduce(0, +)
            progress.show("verified \(count) of \(manifest.objects) objects")
        }
        guard count == manifest.objects, bytes == manifest.objectBytes else {
            throw BackupError("the manifest speaks of \(manifest.objects) objects, and there are \(count)")
        }
        return manifest
    }
}

/// Brings a backup into an empty database and an empty store.
///
/// Objects come first, and the database last and in one transaction, at whose end the rows of every table are compared:
/// whoever is killed in between leaves the database as it was.
struct RestoreRun {
    let target: any DatabaseBackup
    let queue: any WorkQueueOperations
    let copy: ObjectCopy
    let context: Operator
    /// The migrations that this program has.
    let known: [String]
    /// The database's name, which is no secret.
    let database: String
    let replaces: Bool

    private var folder: BackupFolder { copy.folder }

    func perform() async throws -> BackupManifest {
        let version = try await target.serverVersion()
        let tool = try PostgresTool("pg_restore", serverVersion: version, connection: target.toolEnvironment)
        let psql = try PostgresTool("psql", serverVersion: version, connection: target.toolEnvironment)
        let verification = BackupVerification(folder: folder, files: copy.files, terminal: context.terminal)
        let manifest = try await verification.perform()
        let unknown = manifest.migrations.filter { !known.contains($0) }
        guard unknown.isEmpty else {
            throw BackupError(
                "the backup was made by a newer Martlet (it has the migration \(unknown[0])): restore it with that one")
        }
        let (path, name) = (folder.file(BackupFolder.dumpName), database)
        try await copy.files.run { try tool.list(path) }
        let isEmpty = try await target.isEmpty()
        guard replaces || isEmpty else {
            throw BackupError("the database is not empty: name another one, or say --replace to drop what is in it")
        }
        if !replaces, try await holdsObjects() {
            throw BackupError(
                "the store is not empty: name another one, or say --replace to write into it all the same")
        }
        try await bringObjects(manifest)
        let progress = ProgressLine(context.terminal)
        defer { progress.clear() }
        progress.show("database: \(BackupRun.size(manifest.dumpBytes))")
        let script = target.restoring(replacing: !isEmpty, expecting: manifest.tables)
        try await ToolStop.whenCancelled { [copy] stop in
            try await copy.files.run {
                try tool.restore(from: path, by: psql, database: name, script: script, stop: stop)
            }
        }
        // The backup has saved its own hold on deletions too.
        _ = try await queue.resume(BackupRun.deletions, holder: .backup)
        try await target.analyze()
        return manifest
    }

    private func holdsObjects() async throws -> Bool {
        for shard in 0..<ObjectShard.count {
            var found = false
            try await copy.store.oldKeys(shard: shard, before: .distantFuture, pageMax: 1) { keys in
                found = !keys.isEmpty
                return !found
            }
            if found { return true }
        }
        return false
    }

    private func bringObjects(_ manifest: BackupManifest) async throws {
        let progress = ProgressLine(context.terminal)
        defer { progress.clear() }
        let (copy, list) = (copy, folder.file(BackupFolder.listName))
        var (count, bytes): (Int64, Int64) = (0, 0)
        try await Disk.lines(of: list, together: ObjectCopy.pageMax) { lines in
            let sizes = try await ObjectCopy.each(lines) { line in
                guard let listed = BackupFolder.listed(line) else { throw BackupError("\(list) has changed") }
                return try await copy.bring(listed.key, sha256: listed.sha256)
            }
            count += Int64(sizes.count)
            bytes += sizes.reduce(0, +)
            progress.show("objects: \(count) of \(manifest.objects), \(BackupRun.size(bytes))")
        }
    }
}

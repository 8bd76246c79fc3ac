import Core
import EventLoop
import Foundation
import Synchronization

/// Makes a backup in which every object is that a row of the dump names.
///
/// Rows and objects cannot be looked at in one moment. So no object is deleted while this runs: deletions are work, and
/// their kinds are paused, before the snapshot is taken that both the dump and the list of objects come from. Objects
/// are never changed, and those that come later are in no row of the snapshot.
struct BackupRun {
    /// What deletes objects.
    static let deletions: [WorkItem.Kind] = [.deleteFiles, .sweepObjects]
    /// The pause ends by itself after this, when the backup is killed.
    static let holdSeconds = 120.0
    static let renewSeconds = 20.0
    /// Deletions that run when the pause begins have this long to end.
    static let endSecondsMax = 120.0
    static let lookSeconds = 0.2

    let source: any DatabaseBackup
    let queue: any WorkQueueOperations
    let copy: ObjectCopy
    let context: Operator

    private var folder: BackupFolder { copy.folder }

    func perform() async throws -> BackupManifest {
        let version = try await source.serverVersion()
        let tool = try PostgresTool("pg_dump", serverVersion: version, connection: source.toolEnvironment)
        if let other = try await queue.pauses().first(where: { $0.holder == WorkPause.Holder.backup.rawValue }) {
            throw BackupError(
                "another backup is being made since \(other.since.ISO8601Format()), or was killed just now: "
                    + "its hold ends \(Int(Self.holdSeconds)) s after that")
        }
        try folder.begin()
        let progress = ProgressLine(context.terminal)
        defer { progress.clear() }
        var manifest = try await holding {
            var manifest = try await dump(with: tool, version: version, progress)
            try await saveObjects(&manifest, progress)
            return manifest
        }
        manifest.createdAt = context.now()
        try Disk.writeWhole(manifest.json.text + "\n", to: folder.file(BackupFolder.manifestName))
        progress.clear()
        try folder.finish()
        return manifest
    }

    // MARK: No deletions

    /// Runs `body` while nothing is deleted.
    private func holding<T: Sendable>(_ body: () async throws -> T) async throws -> T {
        let (queue, sleep) = (queue, context.sleep)
        let renewed = Mutex(ContinuousClock.now)
        try await queue.pause(Self.deletions, holder: .backup, seconds: Self.holdSeconds)
        let renewal = Task {
            while true {
                do { try await sleep(Self.renewSeconds) } catch { return }
                // One that fails is made up for by the next one, as long as the hold lasts.
                if (try? await queue.pause(Self.deletions, holder: .backup, seconds: Self.holdSeconds)) != nil {
                    renewed.withLock { $0 = .now }
                }
            }
        }
        defer { renewal.cancel() }
        let result: Result<T, any Error>
        do {
            try await waitForDeletions()
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        renewal.cancel()
        let isHeld = renewed.withLock { ContinuousClock.now - $0 < .seconds(Self.holdSeconds) }
        if case .failure = result {
            _ = try? await queue.resume(Self.deletions, holder: .backup)
        } else {
            _ = try await queue.resume(Self.deletions, holder: .backup)
            guard isHeld else {
                throw BackupError("the database was away for too long, so files may have been deleted")
            }
        }
        return try result.get()
    }

    private func waitForDeletions() async throws {
        let names = Set(Self.deletions.map(\.rawValue))
        let deadline = context.now().addingTimeInterval(Self.endSecondsMax)
        while try await queue.depth().contains(where: { names.contains($0.kind) && $0.leased > 0 }) {
            guard context.now() < deadline else {
                throw BackupError(
                    "a deletion of files has been running for \(Int(Self.endSecondsMax)) s: martlet queue")
            }
            try await context.sleep(Self.lookSeconds)
        }
    }

    // MARK: The database

    private func dump(
        with tool: PostgresTool, version: String, _ progress: ProgressLine
    ) async throws -> BackupManifest {
        let (folder, files) = (folder, copy.files)
        return try await source.snapshot { snapshot in
            var manifest = BackupManifest(
                createdAt: context.now(), postgres: version, migrations: try await snapshot.migrations(),
                tables: try await snapshot.tableCounts())
            try await writeKeys(of: snapshot)
            let written = Atomic<Int>(0)
            let name = snapshot.name
            manifest.dumpBytes = try await files.run {
                try tool.dump(snapshot: name, to: folder.file(BackupFolder.dumpName)) { count in
                    let sum = written.wrappingAdd(count, ordering: .relaxed).newValue
                    progress.show("database: \(Self.size(Int64(sum))) written")
                }
            }
            return manifest
        }
    }

    /// What is to be copied goes to a file, since it may be long and the snapshot is not kept for the time of copying.
    private func writeKeys(of snapshot: any DatabaseSnapshot) async throws {
        let path = folder.file(BackupFolder.keysName)
        let descriptor = try Disk.create(path)
        defer { close(descriptor) }
        var last = ""
        while true {
            let page = try await snapshot.objectKeys(after: last, limit: ObjectCopy.pageMax)
            let text = page.map { ($0.isLost ? "- " : "+ ") + $0.key + "\n" }.joined()
            try Disk.write(Array(text.utf8), to: descriptor, path: path)
            guard page.count == ObjectCopy.pageMax, let end = page.last else { return }
            last = end.key
        }
    }

    // MARK: The objects

    private func saveObjects(_ manifest: inout BackupManifest, _ progress: ProgressLine) async throws {
        let path = folder.file(BackupFolder.listName)
        let list = try Disk.create(path)
        defer { close(list) }
        let copy = copy
        var (made, missing) = (manifest, [String]())
        try await Disk.lines(of: folder.file(BackupFolder.keysName), together: ObjectCopy.pageMax) { lines in
            let copied = try await ObjectCopy.each(lines) { line in
                (try await copy.save(String(line.dropFirst(2))), line.hasPrefix("-"))
            }
            var text = ""
            for (object, isLost) in copied {
                if let sha256 = object.sha256 {
                    text += "\(sha256)  \(BackupFolder.objectsName)/\(object.key)\n"
                    made.objects += 1
                    made.objectBytes += object.bytes
                } else if !isLost {
                    made.missingCount += 1
                    if missing.count < BackupManifest.missingToldMax { missing.append(object.key) }
                }
            }
            try Disk.write(Array(text.utf8), to: list, path: path)
            progress.show("objects: \(made.objects), \(Self.size(made.objectBytes))")
        }
        try Disk.sync(list, path: path)
        made.missing = missing
        manifest = made
    }

    /// `1.5 MB`
    static func size(_ bytes: Int64) -> String {
        var (value, unit) = (Double(bytes), 0)
        let units = ["B", "kB", "MB", "GB", "TB"]
        while value >= 1000, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        return unit == 0 ? "\(bytes) B" : String(format: "%.1f %@", value, units[unit])
    }
}

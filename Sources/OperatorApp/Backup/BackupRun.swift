import Core
import EventLoop
import Foundation
import Synchronization

/// Makes a backup in which every object is that a row of the dump names.
///
/// Rows and objects cannot be looked at in one moment. So no object is deleted while this runs: deletions are work, and
/// their kinds are paused, before the snapshot is taken that both the dump and the list of objects come from. Objects
/// are never changed, and those that come later are in no row of the snapshot.
struct BackupRun: Sendable {
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
        let progress = ProgressLine(context.terminal)
        defer { progress.clear() }
        var manifest = try await holding {
            try folder.begin()
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

    /// Runs `body` while nothing is deleted. It is cancelled as soon as that is not certain any more.
    private func holding<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
        let asked = ContinuousClock.now
        guard let hold = try await queue.hold(Self.deletions, holder: .backup, seconds: Self.holdSeconds) else {
            throw try await refusal()
        }
        let result: Result<T, any Error>
        do {
            result = .success(try await kept(hold, since: asked, body))
        } catch {
            result = .failure(error)
        }
        guard case .success = result else {
            // It ends by itself when the database is away now.
            _ = try? await queue.release(hold)
            return try result.get()
        }
        guard try await queue.release(hold) else { throw Self.lost }
        return try result.get()
    }

    private static let lost = BackupError(
        "the hold on deletions was lost, so files that this backup needs may have been deleted: make it again. "
            + "Was the database away for long, or this machine asleep?")

    private func refusal() async throws -> BackupError {
        let other = try await queue.pauses().first { $0.holder == WorkPause.Holder.backup.rawValue }
        let since = other.map { "since \($0.since.ISO8601Format())" } ?? "at this moment"
        return BackupError(
            "another backup is being made \(since), or was killed just now: "
                + "its hold ends \(Int(Self.holdSeconds)) s after that")
    }

    private func kept<T: Sendable>(
        _ hold: WorkHold, since: ContinuousClock.Instant, _ body: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        try await withThrowingTaskGroup(of: T?.self) { group in
            group.addTask {
                try await waitForDeletions()
                return try await body()
            }
            group.addTask {
                try await renew(hold, since: since)
                return nil
            }
            defer { group.cancelAll() }
            while let value = try await group.next() {
                if let value { return value }
            }
            throw CancellationError()
        }
    }

    /// Returns when it is cancelled.
    /// - Throws: when the hold is lost.
    private func renew(_ hold: WorkHold, since: ContinuousClock.Instant) async throws {
        var last = since
        while true {
            do { try await context.sleep(Self.renewSeconds) } catch { return }
            let asked = ContinuousClock.now
            do {
                guard try await queue.renew(hold, seconds: Self.holdSeconds) else { throw Self.lost }
                last = asked
            } catch let error as BackupError {
                throw error
            } catch is CancellationError {
                return
            } catch {
                // The database is away; that is made up for by the next time, as long as the hold lasts.
                guard ContinuousClock.now - last < .seconds(Self.holdSeconds) else { throw Self.lost }
            }
        }
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
            manifest.dumpBytes = try await ToolStop.whenCancelled { stop in
                try await files.run {
                    try tool.dump(snapshot: name, to: folder.file(BackupFolder.dumpName), stop: stop) { count in
                        let sum = written.wrappingAdd(count, ordering: .relaxed).newValue
                        progress.show("database: \(Self.size(Int64(sum))) written")
                    }
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

import EventLoop
import Foundation
import Glibc
import MediaStore
import ServiceKit

/// Writes a small object to the store, reads it and removes it, as the services will.
enum StoreCheck {
    static func look(_ environment: [String: String]) async -> Finding {
        var settings = Environment(environment)
        guard let path = settings.value("MARTLET_STORE") else {
            return Finding.unset("store", settings, "MARTLET_STORE is not set")
        }
        let isBucket = StoreSettings.isBucket(path)
        // Opening would make it.
        if !isBucket, let problem = folderProblem(path) { return problem }
        let files = OffloadPool(name: "files", threads: 1, queueMax: 8)
        defer { files.stop() }
        do {
            let opened = StoreSettings.open(&settings, files: files, clock: SystemClock())
            try settings.check()
            try await opened?.store.probe()
            return Finding("store", .good, isBucket ? "S3" : path)
        } catch {
            let mistakes = (error as? ConfigurationError)?.mistakes.joined(separator: "; ")
            let detail = mistakes ?? "\(error)"
            return Finding(
                "store", .bad, detail, cause: mistakes == nil ? .away : .configuration,
                remedy: remedy(detail, isBucket: isBucket))
        }
    }

    private static func folderProblem(_ path: String) -> Finding? {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            let above = URL(fileURLWithPath: path).standardizedFileURL.deletingLastPathComponent().path
            guard FileManager.default.fileExists(atPath: above) else {
                return Finding(
                    "store", .bad, "there is no folder \(above)", cause: .configuration,
                    remedy: "correct MARTLET_STORE, mount what belongs there, or mkdir -p \(path), owned by the user "
                        + "of the services: they make the last folder of it alone")
            }
            return Finding(
                "store", .warning, "\(path) is not there",
                remedy: "right before the first start, as services make it; is it the right path otherwise?")
        }
        guard isFolder.boolValue else {
            return Finding(
                "store", .bad, "\(path) is no folder", cause: .configuration, remedy: "name a folder by MARTLET_STORE")
        }
        guard access(path, W_OK | X_OK) == 0 else {
            let isReadOnly = errno == EROFS
            return Finding(
                "store", .bad, "\(path) cannot be written to" + (isReadOnly ? ": its file system is read-only" : ""),
                cause: .away, remedy: isReadOnly ? "mount it for writing" : "chown it to the user of the services")
        }
        return nil
    }

    private static func remedy(_ detail: String, isBucket: Bool) -> String {
        if detail.contains(String(cString: strerror(ENOSPC))) { return "the disk is full: make room" }
        if detail.contains(String(cString: strerror(EROFS))) { return "mount it for writing" }
        return isBucket ? "look at MARTLET_STORE, its endpoint, region and keys" : "look at the folder of MARTLET_STORE"
    }
}

import Clamd
import EventLoop
import ServiceKit

/// What `martlet check` says of the clamd that the worker asks.
enum ScannerCheck {
    static func look(_ environment: [String: String]) async -> Finding {
        var settings = Environment(environment)
        guard let text = settings.value("MARTLET_CLAMD") else {
            return Finding.unset("scanner", settings, "MARTLET_CLAMD is not set: uploads are not scanned")
        }
        let pool = OffloadPool(name: "clamd", threads: 1, queueMax: 8)
        defer { pool.stop() }
        let address: ClamdAddress
        do { address = try ClamdAddress(text) } catch {
            return Finding(
                "scanner", .bad, "\(text): \(error)", cause: .configuration, remedy: "correct MARTLET_CLAMD")
        }
        do {
            let client = ClamdClient(address, offload: pool)
            let version = try await client.version()
            // What answers a ping may have no room for a stream.
            try await client.probe()
            return Finding("scanner", .good, "\(address): \(version)")
        } catch {
            return Finding(
                "scanner", .bad, "\(text): \(error)", cause: .away,
                remedy: "start clamd, or correct MARTLET_CLAMD: until then uploads stay pending")
        }
    }
}

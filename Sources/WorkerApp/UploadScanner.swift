import Clamd
import Core
import EventLoop
import Foundation
import ServiceKit
import Synchronization

/// Has clamd look at uploads, and remembers whether clamd can.
///
/// While it cannot, no upload is tried: all of them wait, and a probe looks every few seconds whether it can again.
/// Readiness tells of the trouble, and so do a metric and the log; but a worker without clamd still sends mail, so it
/// is given work all the same.
public final class UploadScanner: Sendable {
    private let scan: @Sendable (String) async throws -> ClamdVerdict
    private let watch: Watch
    private let log: Log
    private let clean: Counter
    private let infected: Counter
    private let failed: Counter
    /// Of the smallest file that was longer than clamd takes.
    private let tooLong = Mutex<Int64?>(nil)

    /// - Parameters:
    ///   - scan: as `ClamdClient.scan`.
    ///   - probe: as `ClamdClient.probe`.
    public init(
        scan: @escaping @Sendable (_ path: String) async throws -> ClamdVerdict,
        probe: @escaping @Sendable () async throws -> Void,
        health: Health, metrics: Metrics, clock: any ServiceClock, log: Log
    ) {
        self.scan = scan
        self.log = log
        func counter(_ outcome: String) -> Counter {
            metrics.counter("martlet_scans_total", "Uploads that clamd was asked about.", labels: ["outcome": outcome])
        }
        (clean, infected, failed) = (counter("clean"), counter("infected"), counter("failed"))
        watch = Watch(
            broken: "clamd does not work, and uploads wait for it", mended: "clamd works again", clock: clock, log: log
        ) {
            do {
                try await probe()
                return .works
            } catch is OffloadPool.Full {
                // Nothing was asked, so nothing is known.
                return .unknown
            } catch {
                return .fails("\(error)")
            }
        }
        watch.show(
            "scanner", in: health, metrics, gauge: "martlet_scanner_up", "1 while clamd scans all that is uploaded."
        ) { [weak self] in self?.problem }
    }

    /// What is wrong, as far as is known.
    public var problem: String? {
        watch.problem
            ?? tooLong.withLock { $0 }.map {
                "clamd takes no file of \($0) bytes: its StreamMaxLength must be 25M or more"
            }
    }

    /// Tries clamd now, and again while it does not work.
    public func start() { watch.start() }

    public func stop() { watch.stop() }

    /// Before anything is done for a scan that cannot be.
    /// - Throws: `WorkFailure.waiting` while clamd does not work.
    public func checkReady() throws {
        if let trouble = watch.problem { throw WorkFailure.waiting(trouble) }
    }

    /// - Parameters:
    ///   - path: of the file's bytes on this machine.
    ///   - media: for the log.
    /// - Returns: the signature that was found; nil when clamd has seen the whole file and found none.
    /// - Throws: when there is no verdict: `WorkFailure.waiting`, or `later` where clamd works on other files.
    func signature(in path: String, of media: Media) async throws -> String? {
        do {
            let verdict = try await scan(path)
            works(bytes: media.bytes)
            switch verdict {
            case .clean:
                clean.add()
                return nil
            case .infected(let signature):
                infected.add()
                return signature
            }
        } catch let error as ClamdError {
            // Ours, and no trouble of clamd's: an attempt like others.
            if case .unreadable = error { throw error }
            failed.add()
            log.error(
                "an upload could not be scanned, and waits",
                ["media": .int(media.id.value), "bytes": .int(media.bytes), "error": .string("\(error)")])
            if error == .streamTooLong {
                tooLong.withLock { $0 = min($0 ?? .max, media.bytes) }
            } else {
                // Is it clamd, or only this file? Of a file the attempts end, or a few that keep clamd busy to its
                // limit would keep all others waiting for as long as they are there.
                await watch.look()
                if watch.problem == nil { throw WorkFailure.later("\(error)") }
            }
            throw WorkFailure.waiting("\(error)")
        }
    }

    private func works(bytes: Int64) {
        watch.note(.works)
        tooLong.withLock { if let length = $0, bytes >= length { $0 = nil } }
    }
}

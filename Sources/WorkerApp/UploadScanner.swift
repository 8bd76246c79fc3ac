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
    /// Between two probes while something is wrong; nothing is tried while all is well.
    public static let probeSeconds = 5.0

    private struct State {
        /// What was wrong with clamd when it was last asked.
        var trouble: String?
        /// Of the smallest file that was longer than clamd takes.
        var tooLong: Int64?
    }

    private let scan: @Sendable (String) async throws -> ClamdVerdict
    private let probe: @Sendable () async throws -> Void
    private let clock: any ServiceClock
    private let log: Log
    private let clean: Counter
    private let infected: Counter
    private let failed: Counter
    private let state = Mutex(State())
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - scan: as `ClamdClient.scan`.
    ///   - probe: as `ClamdClient.probe`.
    public init(
        scan: @escaping @Sendable (_ path: String) async throws -> ClamdVerdict,
        probe: @escaping @Sendable () async throws -> Void,
        health: Health, metrics: Metrics, clock: any ServiceClock, log: Log
    ) {
        self.scan = scan
        self.probe = probe
        self.clock = clock
        self.log = log
        func counter(_ outcome: String) -> Counter {
            metrics.counter("martlet_scans_total", "Uploads that clamd was asked about.", labels: ["outcome": outcome])
        }
        (clean, infected, failed) = (counter("clean"), counter("infected"), counter("failed"))
        health.mention("scanner") { [weak self] in self?.problem }
        metrics.observe("martlet_scanner_up", "1 while clamd scans all that is uploaded.") { [weak self] in
            self?.problem == nil ? 1 : 0
        }
    }

    /// What is wrong, as far as is known.
    public var problem: String? {
        state.withLock { state in
            state.trouble
                ?? state.tooLong.map { "clamd takes no file of \($0) bytes: its StreamMaxLength must be 25M or more" }
        }
    }

    /// Tries clamd now, and again while it does not work.
    public func start() {
        task.withLock { task in
            task = Task { [weak self, clock] in
                await self?.tryOnce()
                while !Task.isCancelled {
                    do { try await clock.sleep(seconds: Self.probeSeconds) } catch { return }
                    guard let self else { return }
                    if state.withLock({ $0.trouble }) != nil { await tryOnce() }
                }
            }
        }
    }

    public func stop() { task.withLock { $0?.cancel() } }

    /// Before anything is done for a scan that cannot be.
    /// - Throws: `WorkFailure.waiting` while clamd does not work.
    public func checkReady() throws {
        if let trouble = state.withLock({ $0.trouble }) { throw WorkFailure.waiting(trouble) }
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
                state.withLock { $0.tooLong = min($0.tooLong ?? .max, media.bytes) }
            } else {
                // Is it clamd, or only this file? Of a file the attempts end, or a few that keep clamd busy to its
                // limit would keep all others waiting for as long as they are there.
                await tryOnce()
                if state.withLock({ $0.trouble }) == nil { throw WorkFailure.later("\(error)") }
            }
            throw WorkFailure.waiting("\(error)")
        }
    }

    private func tryOnce() async {
        do {
            try await probe()
            works(bytes: 0)
        } catch is OffloadPool.Full {
            // Nothing was asked, so nothing is known.
            return
        } catch {
            fails("\(error)")
        }
    }

    private func fails(_ text: String) {
        let isNews = state.withLock { state in
            defer { state.trouble = text }
            return state.trouble == nil
        }
        if isNews { log.error("clamd does not work, and uploads wait for it", ["error": .string(text)]) }
    }

    private func works(bytes: Int64) {
        let isNews = state.withLock { state in
            defer { state.trouble = nil }
            if let tooLong = state.tooLong, bytes >= tooLong { state.tooLong = nil }
            return state.trouble != nil
        }
        if isNews { log.info("clamd works again") }
    }
}

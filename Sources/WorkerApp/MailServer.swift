import Core
import Foundation
import ServiceKit
import Synchronization
import Transfer

/// Sends mails, and remembers whether the mail server can be reached.
///
/// While it cannot, no mail is tried, and none comes nearer to the dead letters: all of them wait, and a greeting
/// every few seconds finds out when it can again. Readiness tells of the trouble, and so do a metric and the log; but a
/// worker without its mail server still looks at uploads, so it is given work all the same.
public final class MailServer: Sendable {
    public typealias Send = @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void

    /// Between two greetings while something is wrong; none while all is well.
    public static let probeSeconds = 5.0

    private let probe: @Sendable () async throws -> Void
    private let clock: any ServiceClock
    private let log: Log
    /// What was wrong when the server was last asked.
    private let trouble = Mutex<String?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter probe: as `SMTPClient.probe`.
    public init(
        probe: @escaping @Sendable () async throws -> Void, health: Health, metrics: Metrics, clock: any ServiceClock,
        log: Log
    ) {
        self.probe = probe
        self.clock = clock
        self.log = log
        health.mention("mail") { [weak self] in self?.problem }
        metrics.observe("martlet_mail_server_up", "1 while the mail server answers.") { [weak self] in
            self?.problem == nil ? 1 : 0
        }
    }

    /// What is wrong, as far as is known.
    public var problem: String? { trouble.withLock { $0 } }

    /// Greets the server now, and again while it does not answer.
    public func start() {
        task.withLock { task in
            task = Task { [weak self, clock] in
                await self?.tryOnce()
                while !Task.isCancelled {
                    do { try await clock.sleep(seconds: Self.probeSeconds) } catch { return }
                    guard let self else { return }
                    if problem != nil { await tryOnce() }
                }
            }
        }
    }

    public func stop() { task.withLock { $0?.cancel() } }

    /// As `send`, for as long as the server can be reached.
    /// - Throws: `WorkFailure.waiting` while it cannot; else what `send` throws.
    func guarding(_ send: @escaping Send) -> Send {
        { [self] from, to, message in
            if let problem { throw WorkFailure.waiting(problem) }
            do {
                try await send(from, to, message)
                works()
            } catch let error as SMTPError {
                // Is it the server, or this mail alone? What was said of its recipient is the recipient's; of others
                // the attempts end, or one that the server chokes on would be tried for ever.
                guard case .temporary = error else { throw error }
                await tryOnce()
                if let problem { throw WorkFailure.waiting(problem) }
                throw error
            }
        }
    }

    private func tryOnce() async {
        do {
            try await probe()
            works()
        } catch let fault as SMTPFault {
            fails("the mail server cannot be used: \(fault)")
        } catch {
            // Nothing was asked, so nothing is known.
            return
        }
    }

    private func fails(_ text: String) {
        let isNews = trouble.withLock { trouble in
            defer { trouble = text }
            return trouble == nil
        }
        if isNews { log.error("the mail server does not work, and mails wait for it", ["error": .string(text)]) }
    }

    private func works() {
        let isNews = trouble.withLock { trouble in
            defer { trouble = nil }
            return trouble != nil
        }
        if isNews { log.info("the mail server works again") }
    }
}

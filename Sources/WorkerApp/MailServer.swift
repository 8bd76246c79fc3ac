import Core
import Foundation
import ServiceKit
import Transfer

/// Sends mails, and remembers whether the mail server can be reached.
///
/// While it cannot, no mail is tried, and none comes nearer to the dead letters: all of them wait, and a greeting
/// every few seconds finds out when it can again. Readiness tells of the trouble, and so do a metric and the log; but a
/// worker without its mail server still looks at uploads, so it is given work all the same.
public final class MailServer: Sendable {
    public typealias Send = @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void

    private let watch: Watch

    /// - Parameter probe: as `SMTPClient.probe`.
    public init(
        probe: @escaping @Sendable () async throws -> Void, health: Health, metrics: Metrics, clock: any ServiceClock,
        log: Log
    ) {
        watch = Watch(
            broken: "the mail server does not work, and mails wait for it", mended: "the mail server works again",
            clock: clock, log: log
        ) {
            do {
                try await probe()
                return .works
            } catch let fault as SMTPFault {
                return .fails("the mail server cannot be used: \(fault)")
            } catch {
                // Nothing was asked, so nothing is known.
                return .unknown
            }
        }
        watch.show(
            "mail", in: health, metrics, gauge: "martlet_mail_server_up", "1 while the mail server answers.")
    }

    /// What is wrong, as far as is known.
    public var problem: String? { watch.problem }

    /// Greets the server now, and again while it does not answer.
    public func start() { watch.start() }

    public func stop() { watch.stop() }

    /// As `send`, for as long as the server can be reached.
    /// - Throws: `WorkFailure.waiting` while it cannot; else what `send` throws.
    func guarding(_ send: @escaping Send) -> Send {
        { [self] from, to, message in
            if let problem { throw WorkFailure.waiting(problem) }
            do {
                try await send(from, to, message)
                watch.note(.works)
            } catch let error as SMTPError {
                // Is it the server, or this mail alone? What was said of its recipient is the recipient's; of others
                // the attempts end, or one that the server chokes on would be tried for ever.
                guard case .temporary = error else { throw error }
                await watch.look()
                if let problem { throw WorkFailure.waiting(problem) }
                throw error
            }
        }
    }
}

import Core
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import Transfer
@testable import WorkerApp

@Suite("The mail server, watched")
struct MailServerTests {
    /// A server that does as it is told, and what was asked of it.
    private final class Script: Sendable {
        let answer = Mutex<SMTPError?>(nil)
        let fault = Mutex<SMTPFault?>(nil)
        let sent = Notes()
        let greeted = Notes()
        let health = Health()
        let metrics = Metrics()
        let clock = ManualClock()

        func server() -> MailServer {
            MailServer(
                probe: {
                    self.greeted.add("greeted")
                    if let fault = self.fault.withLock({ $0 }) { throw fault }
                }, health: health, metrics: metrics, clock: clock, log: .silent)
        }

        func send(_ server: MailServer) async throws {
            let send = server.guarding { _, to, _ in
                self.sent.add(to)
                if let error = self.answer.withLock({ $0 }) { throw error }
            }
            try await send("a@example.org", "b@example.org", [])
        }

        var remarks: [String] { health.remarks().map { "\($0.name): \($0.problem)" } }
    }

    private let away = SMTPError.temporary(code: 0, "Couldn't connect to server")

    @Test("while it is away mails wait untried, however long; a greeting finds it back")
    func isAway() async throws {
        let script = Script()
        let server = script.server()
        try await script.send(server)
        #expect(script.remarks.isEmpty && script.greeted.all.isEmpty)
        let fault = SMTPFault(.unreachable, "Couldn't connect to server")
        script.answer.withLock { [away] in $0 = away }
        script.fault.withLock { $0 = fault }
        let waiting = WorkFailure.waiting("the mail server cannot be used: \(fault)")
        for _ in 0..<3 { await #expect(throws: waiting) { try await script.send(server) } }
        #expect(script.sent.all.count == 2 && script.greeted.all.count == 1)
        #expect(script.remarks == ["mail: \(waiting)"] && script.health.problems().isEmpty)
        #expect(script.metrics.text().contains("martlet_mail_server_up 0"))

        server.start()
        try await eventually { script.greeted.all.count == 2 && script.clock.sleepers == 1 }
        script.answer.withLock { $0 = nil }
        script.fault.withLock { $0 = nil }
        script.clock.advance(seconds: Watch.probeSeconds)
        try await eventually { script.remarks.isEmpty }
        #expect(script.metrics.text().contains("martlet_mail_server_up 1"))
        try await script.send(server)
        server.stop()
    }

    @Test(
        "a mail that fails alone, though the server answers, is tried like other work",
        arguments: [
            SMTPError.recipientDeferred(code: 452, "full"), .temporary(code: 0, "timed out"),
            .refused(code: 554, "spam"), .recipientRefused(code: 550, "RCPT failed: 550"),
        ])
    func alone(error: SMTPError) async throws {
        let script = Script()
        let server = script.server()
        script.answer.withLock { $0 = error }
        for _ in 0..<2 { await #expect(throws: error) { try await script.send(server) } }
        #expect(script.sent.all.count == 2 && script.remarks.isEmpty)
    }

    @Test("a password that is wrong keeps all mails waiting until it is mended")
    func login() async throws {
        let script = Script()
        let server = script.server()
        script.answer.withLock { $0 = .temporary(code: 535, "Login denied") }
        script.fault.withLock { $0 = SMTPFault(.login, "Login denied") }
        await #expect(throws: WorkFailure.self) { try await script.send(server) }
        #expect(script.remarks == ["mail: the mail server cannot be used: Login denied"])
    }
}

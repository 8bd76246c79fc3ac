import Foundation
import TestSupport
import Testing
import Transfer

@testable import OperatorApp

@Suite("martlet check: mail")
struct MailCheckTests {
    private func look(_ url: String?, authorities: String? = nil) async -> Finding {
        var environment: [String: String] = [:]
        environment["MARTLET_SMTP_URL"] = url
        environment["MARTLET_SMTP_CA"] = authorities
        return await MailCheck.look(environment)
    }

    @Test("a server is greeted as for a mail, and gets none; without a setting there is nothing to ask")
    func good() async throws {
        let sink = SMTPSink()
        let found = await look("smtp://127.0.0.1:\(sink.port)")
        #expect(found.standing == .good && found.detail == "127.0.0.1:\(sink.port), unencrypted")
        #expect(sink.mails.isEmpty)
        #expect(await look(nil).standing == .off)
    }

    @Test("who is nobody, no mail server, or has no STARTTLS is told apart, with a remedy of its own")
    func faults() async throws {
        var script = SMTPSink.Script()
        script.greeting = "554 go away"
        let (rude, plain) = (SMTPSink(script), SMTPSink())
        for (url, words) in [
            ("smtp://127.0.0.1:1", "is the mail server up"), ("smtp://nowhere.invalid", "is the mail server up"),
            ("smtp://127.0.0.1:\(rude.port)", "is that port a mail server's?"),
            ("smtp://127.0.0.1:\(plain.port)?starttls=required", "offers no STARTTLS"),
            ("smtps://127.0.0.1:\(plain.port)", "TLS from the first byte"),
        ] {
            let found = await look(url)
            #expect(found.standing == .bad && found.remedy.contains(words), "\(url): \(found.detail) \(found.remedy)")
        }
    }

    @Test("a password is never shown; sent in the clear it is a warning, refused a fault")
    func login() async throws {
        var script = SMTPSink.Script()
        script.credentials = ("martlet", "hidden-word")
        let sink = SMTPSink(script)
        let right = await look("smtp://martlet:hidden-word@127.0.0.1:\(sink.port)")
        #expect(right.standing == .warning && right.remedy.contains("starttls=required"))
        let wrong = await look("smtp://martlet:other-word@127.0.0.1:\(sink.port)")
        #expect(wrong.standing == .bad && wrong.remedy.contains("user and password"))
        for found in [right, wrong] {
            #expect(!"\(found.detail) \(found.remedy)".contains("-word"))
        }
    }

    @Test("every fault has a remedy")
    func remedies() {
        for kind in SMTPFault.Kind.allCases { #expect(!MailCheck.remedy(kind, host: "h").isEmpty) }
    }
}

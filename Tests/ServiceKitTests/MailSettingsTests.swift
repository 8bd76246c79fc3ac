import Foundation
import Testing
import Transfer

@testable import ServiceKit

@Suite("Settings of mail")
struct MailSettingsTests {
    private static func read<T>(
        _ values: [String: String], _ body: (inout Environment) -> T
    ) -> (value: T, mistakes: [String]) {
        var environment = Environment(values)
        let value = body(&environment)
        do throws(ConfigurationError) { try environment.check() } catch { return (value, error.mistakes) }
        return (value, [])
    }

    @Test(
        "a sender is an address that servers take, and its domain ends Message-IDs",
        arguments: [
            ("jobs@example.org", "jobs@example.org", "", "example.org"),
            ("Martlet <jobs@example.org>", "jobs@example.org", "Martlet", "example.org"),
            ("\"A <b> @ c\" <a+b@x-1.example>", "a+b@x-1.example", "A <b> @ c", "x-1.example"),
            ("", "martlet@localhost", "Martlet", "localhost"),
        ])
    func sender(text: String, address: String, name: String, domain: String) {
        let read = Self.read(["MARTLET_MAIL_FROM": text]) { $0.mailSender() }
        #expect(read.mistakes.isEmpty && read.value?.domain == domain)
        #expect(read.value?.mailbox == MailMessage.Mailbox(name: name, address: address))
    }

    @Test(
        "what no server takes, or no Message-ID can end in, is a mistake",
        arguments: [
            "nobody", "a@b@c", "@example.org", "jobs@", "jobs@ex_ample.org", "jobs@exämple.org", "jobs@[127.0.0.1]",
            "jobs @example.org", "Martlet <jobs@example.org", "Martlet jobs@example.org", "jobs@example.org <>",
        ])
    func noSender(text: String) {
        let read = Self.read(["MARTLET_MAIL_FROM": text]) { $0.mailSender() }
        #expect(read.value == nil && read.mistakes.count == 1)
        #expect(read.mistakes.first?.contains("MARTLET_MAIL_FROM is \"\(text)\"") == true)
    }

    @Test("a posting's page is a URL with the posting's place in it, and the site's own otherwise")
    func postingURL() {
        func read(_ text: String) -> (value: String, mistakes: [String]) {
            Self.read(["MARTLET_POSTING_URL": text]) { $0.postingURL(publicURL: "https://a.example") }
        }
        #expect(read("") == ("https://a.example/api/jobs/{id}", []))
        for text in ["https://jobs.example/jobs/{id}", "http://{id}.example", "http://localhost:1/#/jobs/{id}?a=b"] {
            #expect(read(text) == (text, []))
        }
        for text in ["https://jobs.example/jobs", "ftp://a/{id}", "https://{id", "https:///{id}", "jobs/{id}", "{id}"] {
            #expect(read(text).mistakes.count == 1, "\(text)")
        }
    }

    @Test("a mail server that cannot be one is told without its password, and beside authorities that are not there")
    func server() {
        #expect(Self.read([:]) { $0.mailServer()?.host }.value == nil)
        let good = Self.read(["MARTLET_SMTP_URL": "smtps://a:b@mail.example"]) { $0.mailServer()?.host }
        #expect(good.value == "mail.example" && good.mistakes.isEmpty)
        let bad = Self.read(["MARTLET_SMTP_URL": "http://a:hidden-word@mail", "MARTLET_SMTP_CA": "/nowhere.pem"]) {
            $0.mailServer()?.host
        }
        #expect(bad.value == nil && bad.mistakes.map { $0.prefix(16) } == ["MARTLET_SMTP_CA ", "MARTLET_SMTP_URL"])
        #expect(!bad.mistakes.joined().contains("hidden-word"))
    }
}

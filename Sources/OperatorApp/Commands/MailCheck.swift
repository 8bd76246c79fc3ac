import EventLoop
import Foundation
import ServiceKit
import Transfer

/// Greets the mail server as the worker does, TLS and password included, without a mail.
enum MailCheck {
    /// Of the whole conversation: an operator waits.
    static let secondsMax = 15

    static func look(_ environment: [String: String]) async -> Finding {
        var settings = Environment(environment)
        guard let text = settings.value("MARTLET_SMTP_URL") else {
            return Finding.unset("mail", settings, "MARTLET_SMTP_URL is not set: mails wait in the queue")
        }
        let authorities = settings.value("MARTLET_SMTP_CA")
        guard let configuration = SMTPClient.Configuration(url: text, authorities: authorities),
            let parts = URLComponents(string: text), let host = parts.host
        else {
            return Finding(
                "mail", .bad, "MARTLET_SMTP_URL cannot be understood", cause: .configuration,
                remedy: "write it like smtp://user:password@mail.example.org:587?starttls=required")
        }
        let isSecure = parts.scheme == "smtps" || configuration.security == .startTLS
        let address = host + (parts.port.map { ":\($0)" } ?? "")
        let pool = OffloadPool(name: "smtp", threads: 1, queueMax: 8)
        defer { pool.stop() }
        do {
            try await SMTPClient(configuration, offload: pool, sendSecondsMax: secondsMax).probe()
        } catch {
            let fault = error as? SMTPFault
            return Finding(
                "mail", .bad, "\(address): \(fault?.description ?? "\(error)")",
                cause: fault?.kind == .authorities ? .configuration : .away,
                remedy: "mails wait in the queue meanwhile; " + remedy(fault?.kind ?? .other, host: host))
        }
        if !isSecure, configuration.password != nil {
            return Finding(
                "mail", .warning, "\(address): the password is sent unencrypted",
                remedy: "put ?starttls=required at the end of MARTLET_SMTP_URL, or use smtps://")
        }
        return Finding("mail", .good, isSecure ? "\(address), with TLS" : "\(address), unencrypted")
    }

    static func remedy(_ kind: SMTPFault.Kind, host: String) -> String {
        switch kind {
        case .unreachable: "is the mail server up, and are host and port of MARTLET_SMTP_URL right?"
        case .silent: "is that port a mail server's? TLS from the first byte (465) is smtps://, else smtp:// (25, 587)"
        case .handshake: "does that port do TLS from the first byte? STARTTLS (587) is smtp://…?starttls=required"
        case .noStartTLS: "the server offers no STARTTLS: use its port for smtps:// (465), or mend the server"
        case .expired: "renew the mail server's certificate, and look at the clocks of both machines"
        case .otherName: "name the server in MARTLET_SMTP_URL as its certificate does, not \(host)"
        case .untrusted: "name a file with its authority's certificate (PEM) by MARTLET_SMTP_CA"
        case .authorities: "MARTLET_SMTP_CA must name a PEM file with certificates"
        case .login: "are user and password in MARTLET_SMTP_URL right, and percent-encoded?"
        case .other: "is MARTLET_SMTP_URL right?"
        }
    }
}

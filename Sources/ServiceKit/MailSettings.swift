import Foundation
import Transfer

/// Who sends all mail.
public struct MailSender: Sendable {
    /// What stands there unless it is set.
    public static let fallback = "Martlet <martlet@localhost>"

    public let mailbox: MailMessage.Mailbox
    /// The right side of Message-IDs.
    public let domain: String

    /// Nil where no server would take it, or its domain cannot end a Message-ID.
    init?(_ text: String) {
        guard let mailbox = MailMessage.Mailbox(text), let domain = mailbox.messageDomain else { return nil }
        self.mailbox = mailbox
        self.domain = domain
    }
}

/// What is said of mail, judged in one place: several programs read it, and what one takes all of them take.
extension Environment {
    /// `MARTLET_MAIL_FROM`. Nil after a mistake.
    public mutating func mailSender() -> MailSender? {
        let text = string("MARTLET_MAIL_FROM", default: MailSender.fallback)
        if let sender = MailSender(text) { return sender }
        mistake("MARTLET_MAIL_FROM is \"\(text)\"; it must be like Martlet <jobs@example.org>")
        return nil
    }

    /// `MARTLET_POSTING_URL`: where mails send people; `{id}` stands for the posting's number.
    /// - Parameter publicURL: of the site, whose own page of a posting it is otherwise.
    public mutating func postingURL(publicURL: String) -> String {
        guard let text = value("MARTLET_POSTING_URL") else { return publicURL + "/api/jobs/{id}" }
        let parts = URLComponents(string: text.replacing("{id}", with: "1"))
        let isWeb = ["http", "https"].contains(parts?.scheme) && parts?.host?.isEmpty == false
        if !isWeb || !text.contains("{id}") {
            mistake("MARTLET_POSTING_URL is \"\(text)\"; it must be like https://jobs.example.org/jobs/{id}")
        }
        return text
    }

    /// `MARTLET_SMTP_URL` and `MARTLET_SMTP_CA`. Nil where there is no mail server, and after a mistake.
    public mutating func mailServer() -> SMTPClient.Configuration? {
        let authorities = value("MARTLET_SMTP_CA")
        if let authorities, !FileManager.default.isReadableFile(atPath: authorities) {
            mistake("MARTLET_SMTP_CA names \(authorities), which cannot be read")
        }
        guard let url = value("MARTLET_SMTP_URL") else { return nil }
        if let server = SMTPClient.Configuration(url: url, authorities: authorities) { return server }
        // It may hold a password, so it is not shown.
        mistake("MARTLET_SMTP_URL must be like smtp://user:password@mail.example.org:587?starttls=required")
        return nil
    }
}

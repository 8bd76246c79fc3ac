import Foundation

/// A mail as bytes for SMTP: RFC 5322 with MIME (RFC 2045 to 2047), all of it 7-bit with short lines, so that every
/// server passes it on unchanged. Whatever a value holds, it stays inside its header.
public struct MailMessage: Sendable {
    /// A name and an address: `Martlet <martlet@example.org>`.
    public struct Mailbox: Sendable, Equatable {
        public let name: String
        public let address: String

        /// Nil when the address cannot stand in SMTP. A name may be anything.
        public init?(name: String = "", address: String) {
            guard SMTPClient.isAddress(address) else { return nil }
            self.name = name
            self.address = address
        }

        /// `Name <address>`, `"Name" <address>` or only an address, as the configuration has it.
        public init?(_ text: String) {
            guard let open = text.lastIndex(of: "<"), text.hasSuffix(">") else {
                self.init(address: text.trimmingCharacters(in: .whitespaces))
                return
            }
            let quotes = CharacterSet(charactersIn: "\" ")
            self.init(
                name: text[..<open].trimmingCharacters(in: quotes),
                address: String(text[text.index(after: open)...].dropLast()))
        }

        /// What stands behind the `@`; nil when it cannot end a Message-ID (`MailMessage.init`).
        public var messageDomain: String? {
            address.split(separator: "@").last.map(String.init).flatMap { SMTPClient.isWord($0) ? $0 : nil }
        }
    }

    public let from: Mailbox
    public let to: Mailbox
    public let subject: String
    /// Without angle brackets.
    public let messageID: String
    public let date: Date
    public let text: String
    public let html: String
    /// An https (or on one's own machine http) URL that ends the subscription by one POST (RFC 8058).
    public let unsubscribeURL: String?

    /// - Throws: `SMTPError.malformed` for a Message-ID or URL that cannot stand in a header.
    public init(
        from: Mailbox, to: Mailbox, subject: String, messageID: String, date: Date, text: String, html: String,
        unsubscribeURL: String?
    ) throws {
        let parts = messageID.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ SMTPClient.isWord(String($0)) }) else {
            throw SMTPError.malformed("not a Message-ID")
        }
        if let unsubscribeURL {
            guard unsubscribeURL.hasPrefix("https://") || unsubscribeURL.hasPrefix("http://"),
                unsubscribeURL.utf8.count <= 500,
                unsubscribeURL.utf8.allSatisfy({
                    $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">")
                })
            else { throw SMTPError.malformed("not an unsubscribe URL") }
        }
        self.from = from
        self.to = to
        self.subject = subject
        self.messageID = messageID
        self.date = date
        self.text = text
        self.html = html
        self.unsubscribeURL = unsubscribeURL
    }

    /// The whole message, ready for `SMTPClient.send`. The same values give the same bytes.
    public func encoded() -> [UInt8] {
        var out = MailWriter()
        out.mailbox("From", from)
        out.mailbox("To", to)
        out.unstructured("Subject", subject)
        out.field("Date", MailWriter.date(date))
        out.field("Message-ID", "<\(messageID)>")
        out.field("MIME-Version", "1.0")
        // Programs that answer automatically leave this alone (RFC 3834 section 5).
        out.field("Auto-Submitted", "auto-generated")
        if let unsubscribeURL {
            out.field("List-Unsubscribe", "<\(unsubscribeURL)>")
            out.field("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
        }
        // "=_" never stands in quoted-printable text (RFC 2045 section 6.7), so no part can end early.
        let boundary = "=_martlet"
        out.field("Content-Type", "multipart/alternative; boundary=\"\(boundary)\"")
        out.line("")
        for (type, body) in [("text/plain", text), ("text/html", html)] {
            out.line("--\(boundary)")
            out.field("Content-Type", "\(type); charset=utf-8")
            out.field("Content-Transfer-Encoding", "quoted-printable")
            out.line("")
            out.quotedPrintable(body)
        }
        out.line("--\(boundary)--")
        return out.bytes
    }
}

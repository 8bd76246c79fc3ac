import Core
import Crypto
import Foundation
import SafeHTML
import Transfer

/// Makes the mail of an alert: the postings, why each is in it, and how to end it.
public struct AlertMailWriter: Sendable {
    private let publicURL: String
    private let postingURL: String
    private let tokens: UnsubscribeToken

    /// - Parameters:
    ///   - publicURL: where people reach this installation, without a slash at the end.
    ///   - postingURL: where a posting is shown; `{id}` stands for its number.
    public init(publicURL: String, postingURL: String, tokens: UnsubscribeToken) {
        self.publicURL = publicURL
        self.postingURL = postingURL
        self.tokens = tokens
    }

    public func write(_ mail: Mail, from: MailMessage.Mailbox, to: MailMessage.Mailbox) throws -> MailMessage {
        let unsubscribe = mail.alertID.map { "\(publicURL)/unsubscribe/\(tokens.make(alertID: $0.value))" }
        return try MailMessage(
            from: from, to: to, subject: mail.subjectLine, messageID: mail.messageID, date: mail.createdAt,
            text: text(mail, unsubscribe: unsubscribe), html: html(mail, unsubscribe: unsubscribe),
            unsubscribeURL: unsubscribe)
    }

    private func link(_ item: MailItem) -> String {
        postingURL.replacingOccurrences(of: "{id}", with: item.postingID.description)
    }

    /// Company and place, as far as there are any.
    private func where_(_ item: MailItem) -> String {
        [item.company, item.place].filter { !$0.isEmpty }.joined(separator: " · ")
    }

    // MARK: Plain text

    private func text(_ mail: Mail, unsubscribe: String?) -> String {
        var lines = [mail.subjectLine, ""]
        for item in mail.items {
            lines.append(item.title)
            if !where_(item).isEmpty { lines.append(where_(item)) }
            lines.append(link(item))
            lines.append("Why: " + item.reason)
            lines.append("")
        }
        if mail.moreItems > 0 { lines += ["And \(mail.moreItems) more: \(publicURL)", ""] }
        lines.append("-- ")
        lines.append("You get this mail because you saved this search as an alert at \(publicURL).")
        if let unsubscribe { lines.append("End this alert: \(unsubscribe)") }
        return lines.joined(separator: "\n")
    }

    // MARK: HTML

    private func html(_ mail: Mail, unsubscribe: String?) -> String {
        let items = mail.items.map { item in
            let place =
                where_(item).isEmpty ? "" : "<div style=\"color:#444b55\">\(SafeHTML.escaped(where_(item)))</div>\n"
            return """
                <tr><td style="padding:14px 0;border-top:1px solid #d9dee5">
                <a href="\(SafeHTML.escaped(link(item)))" style="font-size:17px;font-weight:bold;color:#0b57a4">\
                \(SafeHTML.escaped(item.title))</a>
                \(place)<div style="font-size:14px;color:#5b6470;padding-top:4px">\
                Why: \(SafeHTML.escaped(item.reason))</div>
                </td></tr>
                """
        }
        let more =
            mail.moreItems == 0
            ? ""
            : """
            <p style="margin:14px 0 0">And <a href="\(SafeHTML.escaped(publicURL))" style="color:#0b57a4">\
            \(mail.moreItems) more</a>.</p>

            """
        let end = unsubscribe.map { url in
            " <a href=\"\(SafeHTML.escaped(url))\" style=\"color:#5b6470\">End this alert</a>"
        }
        return MailLayout.html(
            title: mail.subjectLine,
            content: """
                <table role="presentation" width="100%" cellpadding="0" cellspacing="0">
                \(items.joined(separator: "\n"))
                </table>
                \(more)
                """,
            footer: """
                You get this mail because you saved this search as an alert at \
                <a href="\(SafeHTML.escaped(publicURL))" style="color:#5b6470">\(SafeHTML.escaped(publicURL))</a>.\
                \(end ?? "")
                """)
    }
}

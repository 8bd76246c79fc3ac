import Core
import Crypto
import Foundation
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
            let place = where_(item).isEmpty ? "" : "<div style=\"color:#444b55\">\(Self.escape(where_(item)))</div>\n"
            return """
                <tr><td style="padding:14px 0;border-top:1px solid #d9dee5">
                <a href="\(Self.escape(link(item)))" style="font-size:17px;font-weight:bold;color:#0b57a4">\
                \(Self.escape(item.title))</a>
                \(place)<div style="font-size:14px;color:#5b6470;padding-top:4px">Why: \(Self.escape(item.reason))</div>
                </td></tr>
                """
        }
        let more = mail.moreItems == 0 ? "" : """
            <p style="margin:14px 0 0">And <a href="\(Self.escape(publicURL))" style="color:#0b57a4">\
            \(mail.moreItems) more</a>.</p>

            """
        let end = unsubscribe.map { url in
            " <a href=\"\(Self.escape(url))\" style=\"color:#5b6470\">End this alert</a>"
        }
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light"><title>\(Self.escape(mail.subjectLine))</title></head>
            <body style="margin:0;padding:0;background:#f3f5f8">
            <table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" \
            style="padding:24px 12px">
            <table role="presentation" cellpadding="0" cellspacing="0" style="width:100%;max-width:600px;\
            background:#ffffff;border-radius:8px;font-family:Arial,Helvetica,sans-serif;font-size:15px;\
            line-height:1.45;color:#1b2027"><tr><td style="padding:24px 28px">
            <h1 style="margin:0 0 12px;font-size:20px;line-height:1.3">\(Self.escape(mail.subjectLine))</h1>
            <table role="presentation" width="100%" cellpadding="0" cellspacing="0">
            \(items.joined(separator: "\n"))
            </table>
            \(more)<p style="margin:18px 0 0;padding-top:14px;border-top:1px solid #d9dee5;font-size:13px;\
            color:#5b6470">
            You get this mail because you saved this search as an alert at \
            <a href="\(Self.escape(publicURL))" style="color:#5b6470">\(Self.escape(publicURL))</a>.\(end ?? "")
            </p></td></tr></table></td></tr></table></body></html>
            """
    }

    /// For text and for attributes in double quotes.
    static func escape(_ text: String) -> String {
        var out = ""
        out.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

import Core
import Crypto
import Foundation
import SafeHTML
import Transfer

/// Makes the mails about an account.
///
/// A name stands only in mails to people who have the account: to a new address it would carry whatever a stranger has
/// chosen as their name.
public struct AccountMailWriter: Sendable {
    private let publicURL: String
    private let resetURL: String
    private let tokens: MailedToken

    /// - Parameters:
    ///   - publicURL: where people reach this installation, without a slash at the end.
    ///   - resetURL: the page for a new password; gets the token as `code`.
    public init(publicURL: String, resetURL: String, tokens: MailedToken) {
        self.publicURL = publicURL
        self.resetURL = resetURL
        self.tokens = tokens
    }

    private struct Words {
        let subject: String
        let paragraphs: [String]
        /// What the link is called where it is a button, and where it leads.
        var link: (label: String, url: String)?
        var ending: [String] = []
    }

    /// - Throws: `WorkFailure.permanent` when none of the configuration's secrets has made the token.
    public func write(_ mail: AccountMail, from: MailMessage.Mailbox, to: MailMessage.Mailbox) throws -> MailMessage {
        let words = try words(mail)
        return try MailMessage(
            from: from, to: to, subject: words.subject, messageID: mail.messageID, date: mail.createdAt,
            text: text(words), html: html(words), unsubscribeURL: nil)
    }

    private func words(_ mail: AccountMail) throws -> Words {
        let nothing = "If it was not you, do nothing: without the link nothing changes."
        switch mail.content {
        case .reset(let token):
            return Words(
                subject: "Reset your password",
                paragraphs: [
                    "Somebody, you we hope, wants a new password for your account “\(mail.username)” at \(publicURL).",
                    "This link lets you choose one. It works once, within an hour.",
                ], link: ("Choose a new password", link(resetURL, "code", try text(of: token))), ending: [nothing])
        case .confirm(let token):
            return Words(
                subject: "Confirm your e-mail address",
                paragraphs: [
                    "An account was made with this address at \(publicURL).",
                    "This link confirms that the address is yours. It works once, within a day.",
                ], link: ("Confirm this address", try confirmLink(token)), ending: [nothing])
        case .change(let token):
            return Words(
                subject: "Confirm your new e-mail address",
                paragraphs: [
                    "Somebody wants this address to be that of their account at \(publicURL).",
                    "This link confirms that the address is yours and makes the change. It works once, within a day.",
                ], link: ("Confirm this address", try confirmLink(token)), ending: [nothing])
        case .addressTaken:
            return Words(
                subject: "You have an account with this address",
                paragraphs: [
                    "Somebody wants this address to be that of another account at \(publicURL). "
                        + "It is that of an account already, so nothing was changed.",
                    "If it was you, sign in to the account that has this address, or ask there for a new password.",
                ])
        case .changeNotice(let newAddress):
            return Words(
                subject: "Your account is about to get another e-mail address",
                paragraphs: [
                    "Somebody, you we hope, wants \(newAddress) to be the address of your account "
                        + "“\(mail.username)” at \(publicURL).",
                    "As soon as that address is confirmed, mail goes there and no longer here.",
                    "If it was not you, change your password at once: that stops the change and signs everybody out.",
                ])
        }
    }

    private func text(of token: AccountToken.Stored) throws -> String {
        guard let text = tokens.text(seed: token.seed, hash: token.hash) else {
            throw WorkFailure.permanent("no secret of this worker has made the token: has MARTLET_SECRET changed?")
        }
        return text
    }

    private func confirmLink(_ token: AccountToken.Stored) throws -> String {
        link(publicURL + "/confirm-email", "confirmation", try text(of: token))
    }

    private func link(_ url: String, _ name: String, _ token: String) -> String {
        url + (url.contains("?") ? "&" : "?") + name + "=" + token
    }

    private func text(_ words: Words) -> String {
        var lines: [String] = []
        for paragraph in words.paragraphs { lines += [paragraph, ""] }
        if let link = words.link { lines += [link.url, ""] }
        for paragraph in words.ending { lines += [paragraph, ""] }
        return (lines + ["-- ", footer]).joined(separator: "\n")
    }

    private var footer: String { "You get this mail because this address was given at \(publicURL)." }

    private func html(_ words: Words) -> String {
        func paragraph(_ text: String) -> String { "<p style=\"margin:0 0 12px\">\(SafeHTML.escaped(text))</p>\n" }
        let link = words.link.map { link in
            let url = SafeHTML.escaped(link.url)
            return """
                <p style="margin:20px 0"><a href="\(url)" style="display:inline-block;padding:10px 20px;\
                border-radius:6px;background:#0b57a4;color:#ffffff;text-decoration:none;font-weight:bold">\
                \(SafeHTML.escaped(link.label))</a></p>
                <p style="margin:0 0 12px;font-size:13px;color:#5b6470">Or open this address: \
                <a href="\(url)" style="color:#0b57a4;word-break:break-all">\(url)</a></p>

                """
        }
        return MailLayout.html(
            title: words.subject,
            content: words.paragraphs.map(paragraph).joined() + (link ?? "") + words.ending.map(paragraph).joined(),
            footer: SafeHTML.escaped(footer))
    }
}

import Foundation
import Testing

@testable import Transfer

@Suite struct MailMessageTests {
    let from = MailMessage.Mailbox("Martlet <martlet@example.org>")!
    let to = MailMessage.Mailbox(address: "b@example.org")!

    func message(
        subject: String = "Hello", text: String = "text", html: String = "<p>html</p>", url: String? = nil,
        from: MailMessage.Mailbox? = nil
    ) throws -> String {
        let message = try MailMessage(
            from: from ?? self.from, to: to, subject: subject, messageID: "1234@example.org",
            date: Date(timeIntervalSince1970: 1_790_000_000), text: text, html: html, unsubscribeURL: url)
        return String(decoding: message.encoded(), as: UTF8.self)
    }

    /// The header lines, unfolded.
    func head(_ message: String) -> [String] {
        message.components(separatedBy: "\r\n\r\n")[0].replacingOccurrences(of: "\r\n ", with: " ")
            .components(separatedBy: "\r\n")
    }

    @Test("a mail has the headers that mail programs want, once each")
    func headers() throws {
        let lines = head(try message(url: "https://jobs.example.org/unsubscribe/abc"))
        #expect(
            lines == [
                "From: \"Martlet\" <martlet@example.org>", "To: <b@example.org>", "Subject: Hello",
                "Date: Mon, 21 Sep 2026 14:13:20 +0000", "Message-ID: <1234@example.org>", "MIME-Version: 1.0",
                "Auto-Submitted: auto-generated",
                "List-Unsubscribe: <https://jobs.example.org/unsubscribe/abc>",
                "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
                "Content-Type: multipart/alternative; boundary=\"=_martlet\"",
            ])
    }

    @Test("both bodies stand in their parts")
    func parts() throws {
        let parts = try message(text: "plain = text", html: "<p>ü</p>").components(separatedBy: "--=_martlet")
        #expect(parts.count == 4)
        #expect(parts[1].contains("text/plain; charset=utf-8") && parts[1].hasSuffix("\r\n\r\nplain =3D text\r\n"))
        #expect(parts[2].contains("text/html; charset=utf-8") && parts[2].hasSuffix("\r\n\r\n<p>=C3=BC</p>\r\n"))
        #expect(parts[3] == "--\r\n")
    }

    @Test(
        "a value cannot begin a header of its own",
        arguments: [
            "a\r\nBcc: c@example.org", "a\nBcc: c@example.org", "a\rBcc: c@example.org", "a\r\n\r\nbody",
            "ü\r\nBcc: c@example.org",
            "a\u{2028}Bcc: x", "a\u{85}Bcc: x", "a\u{0}b", "a\u{b}Bcc: x",
        ])
    func injection(value: String) throws {
        let mailbox = try #require(MailMessage.Mailbox(name: value, address: "a@example.org"))
        let lines = head(try message(subject: value, from: mailbox))
        #expect(lines.count == head(try message()).count)
        #expect(!lines.contains { $0.hasPrefix("Bcc") })
        #expect(MailMessage.Mailbox(address: "a@example.org" + value) == nil)
        #expect(throws: SMTPError.self) { _ = try message(url: "https://a" + value) }
    }

    @Test(
        "any text goes through encoded words and comes back",
        arguments: [
            "Grüße aus Zürich",
            "日本語の求人が十二件あります。とても長い件名なので折り返されなければなりません。",
            String(repeating: "👩‍🚀", count: 40), "=?utf-8?B?aGk=?=", String(repeating: "x", count: 300), "a  b",
        ])
    func encodedWords(text: String) throws {
        let raw = try message(subject: text)
        for line in raw.components(separatedBy: "\r\n") { #expect(line.utf8.count <= 78) }
        let subject = try #require(head(raw).first { $0.hasPrefix("Subject: ") }).dropFirst(9)
        var bytes = Data()
        for word in subject.split(separator: " ") {
            #expect(word.utf8.count <= 75)
            #expect(word.hasPrefix("=?utf-8?B?") && word.hasSuffix("?="))
            let part = try #require(Data(base64Encoded: String(word.dropFirst(10).dropLast(2))))
            // Each word is whole characters (RFC 2047 section 5).
            #expect(String(data: part, encoding: .utf8) != nil)
            bytes += part
        }
        #expect(String(decoding: bytes, as: UTF8.self) == text)
    }

    @Test("plain subjects stay readable and are folded at spaces")
    func plain() throws {
        let text = Array(repeating: "posting", count: 30).joined(separator: " ")
        let raw = try message(subject: text)
        for line in raw.components(separatedBy: "\r\n") { #expect(line.utf8.count <= 78) }
        #expect(head(raw).contains("Subject: " + text))
    }

    @Test(
        "quoted-printable keeps every character, short lines and trailing spaces",
        arguments: [
            "", "a", "a \nb\t\n c", String(repeating: "x", count: 1000),
            String(repeating: "ü", count: 200), "=", ".\n..\n",
            "a\r\nb\n", String(repeating: "=", count: 77), "--=_martlet--",
        ])
    func quotedPrintable(text: String) throws {
        var writer = MailWriter()
        writer.quotedPrintable(text)
        let raw = String(decoding: writer.bytes, as: UTF8.self)
        for line in raw.components(separatedBy: "\r\n") {
            #expect(line.utf8.count <= 76)
            #expect(!line.hasSuffix(" ") && !line.hasSuffix("\t"))
            #expect(!line.contains("--=_martlet"))
        }
        var decoded: [UInt8] = []
        let bytes = Array(raw.replacingOccurrences(of: "=\r\n", with: "").utf8)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "=") {
                let pair = String(decoding: bytes[index + 1...index + 2], as: UTF8.self)
                decoded.append(try #require(UInt8(pair, radix: 16)))
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        let wanted = text.replacingOccurrences(of: "\r\n", with: "\n").replacingOccurrences(of: "\n", with: "\r\n")
        #expect(String(decoding: decoded, as: UTF8.self) == wanted + "\r\n")
    }

    @Test("names with quotes and backslashes are quoted; addresses alone are taken")
    func mailboxes() throws {
        let odd = try #require(MailMessage.Mailbox(name: "A \"B\" \\ C", address: "a@example.org"))
        #expect(head(try message(from: odd))[0] == #"From: "A \"B\" \\ C" <a@example.org>"#)
        #expect(MailMessage.Mailbox("a@example.org") == MailMessage.Mailbox(address: "a@example.org"))
        let named = MailMessage.Mailbox(name: "X Y", address: "a@example.org")
        #expect(MailMessage.Mailbox("\"X Y\" <a@example.org>") == named)
        #expect(MailMessage.Mailbox("X <a@example.org") == nil)
    }

    @Test("Message-IDs and URLs that cannot stand in a header are refused")
    func refused() {
        for id in ["", "a", "a@", "@a", "a@b@c", "a@b\r\nX: y", "<a@b>", "a b@c"] {
            #expect(throws: SMTPError.malformed("not a Message-ID")) {
                _ = try MailMessage(
                    from: from, to: to, subject: "", messageID: id, date: Date(), text: "", html: "",
                    unsubscribeURL: nil)
            }
        }
        for url in ["ftp://a", "https://a b", "https://a>", "mailto:a@b", "https://ü"] {
            #expect(throws: SMTPError.malformed("not an unsubscribe URL")) { _ = try message(url: url) }
        }
    }
}

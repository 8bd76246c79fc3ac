import Core
import CorePostgres
import Crypto
import EventLoop
import Foundation
import Postgres
import ServiceKit
import TestSupport
import Testing
import Transfer

@testable import WorkerApp

@Suite struct AccountMailTests {
    let tokens = MailedToken(keys: try! SigningKeys([[UInt8](repeating: 7, count: 32)]))
    let from = MailMessage.Mailbox("Martlet <martlet@example.org>")!
    let to = MailMessage.Mailbox(address: "ann@example.org")!

    func writer(_ resetURL: String = "https://jobs.example.org/reset-password") -> AccountMailWriter {
        AccountMailWriter(publicURL: "https://jobs.example.org", resetURL: resetURL, tokens: tokens)
    }

    func token() -> (stored: AccountToken.Stored, text: String) {
        let (seed, hash) = tokens.make(random: SystemRandom())
        return (AccountToken.Stored(seed: seed, hash: hash), tokens.text(seed: seed, hash: hash)!)
    }

    func mail(_ content: AccountMail.Content, name: String = "ann") -> AccountMail {
        AccountMail(
            id: .init(1), messageID: "abc@example.org", to: "ann@example.org", username: name, content: content,
            createdAt: Date(timeIntervalSince1970: 1_790_000_000))
    }

    @Test("a reset has its link in both parts, escaped, and the name as text")
    func reset() throws {
        let (stored, text) = token()
        let message = try writer("https://app.example.org/new?lang=en").write(
            mail(.reset(stored), name: "<b>R&D</b>\"x"), from: from, to: to)
        #expect(message.subject == "Reset your password" && message.messageID == "abc@example.org")
        #expect(message.text.contains("\nhttps://app.example.org/new?lang=en&code=\(text)\n"))
        #expect(message.text.contains("<b>R&D</b>\"x"))
        #expect(message.html.contains("href=\"https://app.example.org/new?lang=en&amp;code=\(text)\""))
        #expect(message.html.contains("&lt;b&gt;R&amp;D&lt;/b&gt;&quot;x") && !message.html.contains("<b>"))
        #expect(message.unsubscribeURL == nil)
        let again = try writer("https://app.example.org/new?lang=en").write(
            mail(.reset(stored), name: "<b>R&D</b>\"x"), from: from, to: to)
        #expect(again.encoded() == message.encoded())
    }

    @Test("mails to addresses that are not confirmed carry no name that a stranger has chosen")
    func names() throws {
        let (stored, text) = token()
        let link = "https://jobs.example.org/confirm-email?confirmation=\(text)"
        for content in [AccountMail.Content.confirm(stored), .change(stored), .addressTaken] {
            let message = try writer().write(mail(content, name: "win.example"), from: from, to: to)
            #expect(!message.text.contains("win.example") && !message.html.contains("win.example"))
            #expect(message.text.contains(link) == (content != .addressTaken))
            #expect(message.html.contains("href=\"\(link)\"") == (content != .addressTaken))
        }
        let notice = try writer().write(
            mail(.changeNotice(newAddress: "new@example.org")), from: from, to: to)
        #expect(notice.text.contains("new@example.org") && notice.text.contains("“ann”"))
        #expect(!notice.text.contains(text))
    }

    @Test("the HTML of each opens and closes its tags in order")
    func html() throws {
        for content in [
            AccountMail.Content.reset(token().stored), .confirm(token().stored), .change(token().stored), .addressTaken,
            .changeNotice(newAddress: "new@example.org"),
        ] {
            let html = try writer().write(mail(content), from: from, to: to).html
            var open: [Substring] = []
            for tag in html.matches(of: /<(\/?)([a-z1-6]+)[^>]*>/) where !["meta", "br"].contains(tag.2) {
                if tag.1.isEmpty { open.append(tag.2) } else { #expect(open.popLast() == tag.2) }
            }
            #expect(open.isEmpty)
        }
    }

    @Test("a token that no secret here has made is a dead letter, not a mail without a link")
    func otherSecret() throws {
        let others = MailedToken(keys: try SigningKeys([[UInt8](repeating: 8, count: 32)]))
        let (seed, hash) = others.make(random: SystemRandom())
        #expect(throws: WorkFailure.self) {
            try writer().write(mail(.reset(AccountToken.Stored(seed: seed, hash: hash))), from: from, to: to)
        }
    }

    private func expect(_ count: Int, _ db: Database, _ sql: SQL) async throws {
        let found = try await number(db, sql)
        #expect(found == count)
    }

    private func run(
        _ script: SMTPSink.Script = SMTPSink.Script(), _ body: (Database, SMTPSink) async throws -> Void
    ) async throws {
        try await withTestDatabase { db in
            _ = try await PostgresUsers(db: db).create(
                User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
            let sink = SMTPSink(script)
            let pool = OffloadPool(name: "smtp", threads: 2, queueMax: 8)
            let configuration = try #require(SMTPClient.Configuration(url: "smtp://127.0.0.1:\(sink.port)"))
            let client = SMTPClient(configuration, offload: pool)
            let worker = WorkerAppTests.worker(
                db,
                [
                    SendAccountMail(
                        mails: PostgresAccountMails(db: db), writer: writer(), from: from, clock: SystemClock(),
                        log: .silent
                    ) { from, to, message in try await client.send(from: from, to: to, message: message) }
                ])
            await worker.start()
            let (seed, hash) = tokens.make(random: SystemRandom())
            let mailing = AccountMailing(token: AccountToken.Stored(seed: seed, hash: hash), now: Date())
            for address in ["ann@example.org", "nobody@example.org"] {
                try await PostgresAccounts(db: db).ask(.reset, address: address, mailing)
            }
            try await eventually { try await items(db) == 0 }
            try await body(db, sink)
            await worker.stop(graceSeconds: 5)
            pool.stop()
        }
    }

    @Test("asking leads to one mail to who has the account, and to none to who has not")
    func endToEnd() async throws {
        try await run { db, sink in
            #expect(sink.mails.map(\.to) == [["ann@example.org"]])
            #expect(sink.mails.first?.header("Subject") == "Reset your password")
            #expect(sink.mails.first?.header("List-Unsubscribe") == nil)
            try await expect(1, db, "SELECT count(*) FROM account_mails WHERE state = 'sent'")
            try await expect(1, db, "SELECT count(*) FROM account_mails WHERE state = 'dropped'")
        }
    }

    @Test("a busy server is tried again with the same mail, and a refused address gets no more")
    func refusals() async throws {
        var busy = SMTPSink.Script()
        let calls = Notes()
        busy.data = { _ in
            calls.add("sent")
            return calls.all.count < 3 ? "451 busy" : "250 fine"
        }
        try await run(busy) { _, sink in
            #expect(sink.mails.count == 3 && Set(sink.mails.map(\.data)).count == 1)
        }
        var gone = SMTPSink.Script()
        gone.recipient = { _ in "550 gone" }
        try await run(gone) { db, _ in
            try await expect(1, db, "SELECT count(*) FROM mail_suppressions")
            try await expect(1, db, "SELECT count(*) FROM account_mails WHERE state = 'suppressed'")
            try await expect(0, db, "SELECT count(*) FROM work_dead")
        }
    }
}

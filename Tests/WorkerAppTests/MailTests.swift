import Core
import CorePostgres
import Crypto
import EventLoop
import Foundation
import Postgres
import ServiceKit
import Synchronization
import TestSupport
import Testing
import Transfer

@testable import WorkerApp

@Suite struct MailTests {
    let tokens = UnsubscribeToken(keys: try! SigningKeys([[UInt8](repeating: 7, count: 32)]))
    var writer: AlertMailWriter {
        AlertMailWriter(
            publicURL: "https://jobs.example.org", postingURL: "https://jobs.example.org/api/jobs/{id}", tokens: tokens)
    }
    let from = MailMessage.Mailbox("Martlet <martlet@example.org>")!

    func mail(_ items: [MailItem], more: Int = 0) -> Mail {
        Mail(
            id: .init(1), messageID: "abc@example.org", to: "ann@example.org", kind: "alert_daily", alertID: .init(7),
            subjectLine: "2 new postings for “Swift”", items: items, moreItems: more,
            createdAt: Date(timeIntervalSince1970: 1_790_000_000))
    }

    let two = [
        MailItem(
            postingID: .init(12), title: "Swift Engineer", company: "ACME", place: "Berlin", reason: "it has “swift”"),
        MailItem(
            postingID: .init(13), title: "<b>R&D</b> \"Lead\"", company: "", place: "", reason: "it has “R&D”; remote"),
    ]

    @Test("the text has every posting with its reason and link, and how to end the alert")
    func text() throws {
        let message = try writer.write(mail(two, more: 3), from: from, to: .init(address: "ann@example.org")!)
        #expect(
            message.text == """
                2 new postings for “Swift”

                Swift Engineer
                ACME · Berlin
                https://jobs.example.org/api/jobs/12
                Why: it has “swift”

                <b>R&D</b> "Lead"
                https://jobs.example.org/api/jobs/13
                Why: it has “R&D”; remote

                And 3 more: https://jobs.example.org

                --\u{20}
                You get this mail because you saved this search as an alert at https://jobs.example.org.
                End this alert: https://jobs.example.org/unsubscribe/\(tokens.make(alertID: 7))
                """)
        #expect(message.unsubscribeURL == "https://jobs.example.org/unsubscribe/\(tokens.make(alertID: 7))")
        #expect(message.messageID == "abc@example.org" && message.subject == "2 new postings for “Swift”")
    }

    @Test("the HTML says the same, and nothing of a posting is markup")
    func html() throws {
        let html = try writer.write(mail(two), from: from, to: .init(address: "ann@example.org")!).html
        #expect(html.contains("&lt;b&gt;R&amp;D&lt;/b&gt; &quot;Lead&quot;"))
        #expect(!html.contains("<b>R"))
        #expect(html.contains("<a href=\"https://jobs.example.org/api/jobs/12\""))
        #expect(html.contains("/unsubscribe/\(tokens.make(alertID: 7))\""))
        #expect(!html.contains(" more</a>"))
        // Opened and closed in order: every mail program lays it out the same.
        var open: [Substring] = []
        for tag in html.matches(of: /<(\/?)([a-z1-6]+)[^>]*>/) where !["meta", "br"].contains(tag.2) {
            if tag.1.isEmpty { open.append(tag.2) } else { #expect(open.popLast() == tag.2) }
        }
        #expect(open.isEmpty)
    }

    /// A mail of one posting for ann, with its work item.
    func tell(_ db: Database) async throws {
        let users = PostgresUsers(db: db)
        let company = try await users.create(
            User.Draft(username: "company", email: "company@example.org", password: "secret"), passwordHash: "h")
        let ann = try await users.create(
            User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
        _ = try await PostgresCompanies(db: db).save(Company.Draft(name: "ACME"), logo: nil, representative: company.id)
        _ = try await PostgresAlerts(db: db).create(
            JobAlert.Draft(name: "Mine", search: PostingSearch(q: "swift"), cadence: .instant), owner: ann.id)
        _ = try await PostgresPostings(db: db).create(
            JobPosting.Draft(title: "Swift Engineer", safeDescription: "", terms: JobPosting.Terms()),
            author: company.id)
    }

    func worker(
        _ db: Database, mails: any MailRepository, sink: SMTPSink, pool: OffloadPool
    ) throws -> Worker {
        let configuration = try #require(SMTPClient.Configuration(url: "smtp://127.0.0.1:\(sink.port)"))
        let client = SMTPClient(configuration, offload: pool)
        return WorkerAppTests.worker(
            db,
            [
                MatchAlerts(
                    alerts: PostgresAlerts(db: db, mailDomain: "jobs.example.org"), clock: SystemClock(),
                    metrics: Metrics()),
                SendMail(mails: mails, writer: writer, from: from, log: .silent) { from, to, message in
                    try await client.send(from: from, to: to, message: message)
                },
            ])
    }

    @Test("publishing leads to one mail, with headers for one-click unsubscribing")
    func endToEnd() async throws {
        try await withTestDatabase { db in
            let sink = SMTPSink()
            let pool = OffloadPool(name: "smtp", threads: 2, queueMax: 8)
            let worker = try worker(db, mails: PostgresMails(db: db), sink: sink, pool: pool)
            await worker.start()
            try await tell(db)
            #expect(await sink.wait(for: 1))
            try await eventually { try await number(db, "SELECT count(*) FROM mails WHERE state = 'sent'") == 1 }
            let mail = sink.mails[0]
            #expect(mail.to == ["ann@example.org"] && mail.from == "martlet@example.org")
            #expect(mail.header("Subject") == "Swift Engineer at ACME")
            #expect(mail.header("List-Unsubscribe-Post") == "List-Unsubscribe=One-Click")
            let alert = try await number(db, "SELECT id FROM job_alerts")
            let url = "<https://jobs.example.org/unsubscribe/\(tokens.make(alertID: Int64(alert)))>"
            #expect(mail.header("List-Unsubscribe") == url)
            #expect(mail.header("Message-ID")?.hasSuffix("@jobs.example.org>") == true)
            try await eventually { try await items(db) == 0 }
            #expect(sink.mails.count == 1)
            await worker.stop(graceSeconds: 5)
            pool.stop()
        }
    }

    /// Loses the connection after the server took the mail, once.
    final class Forgetful: MailRepository {
        private let mails: PostgresMails
        private let forgotten = Atomic<Bool>(false)

        init(_ mails: PostgresMails) { self.mails = mails }
        func take(_ id: Mail.ID) async throws -> Mail? { try await mails.take(id) }
        func suppress(_ address: String, reason: String) async throws {
            try await mails.suppress(address, reason: reason)
        }
        func markSent(_ id: Mail.ID) async throws {
            if !forgotten.exchange(true, ordering: .relaxed) { throw AppError.unavailable }
            try await mails.markSent(id)
        }
    }

    @Test("a mail whose sending could not be recorded goes out again with the same Message-ID, and nothing else does")
    func repeats() async throws {
        try await withTestDatabase { db in
            let sink = SMTPSink()
            let pool = OffloadPool(name: "smtp", threads: 2, queueMax: 8)
            let worker = try worker(db, mails: Forgetful(PostgresMails(db: db)), sink: sink, pool: pool)
            await worker.start()
            try await tell(db)
            try await eventually { try await number(db, "SELECT count(*) FROM mails WHERE state = 'sent'") == 1 }
            try await eventually { try await items(db) == 0 }
            #expect(sink.mails.count == 2)
            #expect(Set(sink.mails.map { $0.header("Message-ID") }).count == 1)
            #expect(sink.mails[0].data == sink.mails[1].data)
            await worker.stop(graceSeconds: 5)
            pool.stop()
        }
    }

    @Test("a refused recipient ends the address, a busy server is tried again, a refused mail is a dead letter")
    func refusals() async throws {
        for (code, mailState, dead) in [
            ("550 gone", "suppressed", 0), ("554 spam", "queued", 1), ("451 busy", "sent", 0),
        ] {
            try await withTestDatabase { db in
                var script = SMTPSink.Script()
                let calls = Notes()
                switch code {
                case "550 gone": script.recipient = { _ in code }
                case "554 spam": script.data = { _ in code }
                default:
                    script.recipient = { _ in
                        calls.add("asked")
                        return calls.all.count < 3 ? code : "250 fine"
                    }
                }
                let sink = SMTPSink(script)
                let pool = OffloadPool(name: "smtp", threads: 2, queueMax: 8)
                let worker = try worker(db, mails: PostgresMails(db: db), sink: sink, pool: pool)
                await worker.start()
                try await tell(db)
                try await eventually {
                    try await number(db, "SELECT count(*) FROM mails WHERE state = \(mailState)") == 1
                }
                try await eventually { try await items(db) == 0 }
                #expect(try await number(db, "SELECT count(*) FROM work_dead") == dead)
                await worker.stop(graceSeconds: 5)
                pool.stop()
            }
        }
    }
}

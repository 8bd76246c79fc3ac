import Core
import Crypto
import Foundation
import ServiceKit
import Transfer

/// Sends a mail once. When a worker dies between the server's 250 and the mark in the database, the mail goes out again
/// with the same Message-ID, by which servers and programs know it; nothing else repeats.
public struct SendMail: WorkHandler {
    private struct Payload: Decodable {
        let mail_id: Int64
    }

    public let kind = WorkItem.Kind.sendMail
    private let mails: any MailRepository
    private let writer: AlertMailWriter
    private let delivery: MailDelivery

    /// - Parameter send: as `SMTPClient.send`.
    public init(
        mails: any MailRepository, writer: AlertMailWriter, from: MailMessage.Mailbox, log: Log,
        send: @escaping @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void
    ) {
        self.mails = mails
        self.writer = writer
        delivery = MailDelivery(from: from, log: log, send: send)
    }

    public func run(_ item: WorkItem) async throws {
        let id = Mail.ID(try item.decode(Payload.self).mail_id)
        guard let mail = try await mails.take(id) else { return }
        let isSent = try await delivery.deliver(
            to: mail.to, id: id.value, write: { try writer.write(mail, from: delivery.from, to: $0) },
            suppress: { try await mails.suppress(mail.to, reason: $0) })
        if isSent { try await mails.markSent(id) }
    }
}

/// Sends a mail about an account, likewise. Taking it makes its token good.
public struct SendAccountMail: WorkHandler {
    private struct Payload: Decodable {
        let mail_id: Int64
    }

    public let kind = WorkItem.Kind.sendAccountMail
    private let mails: any AccountMailRepository
    private let writer: AccountMailWriter
    private let delivery: MailDelivery
    private let clock: any ServiceClock

    /// - Parameter send: as `SMTPClient.send`.
    public init(
        mails: any AccountMailRepository, writer: AccountMailWriter, from: MailMessage.Mailbox,
        clock: any ServiceClock, log: Log,
        send: @escaping @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void
    ) {
        self.mails = mails
        self.writer = writer
        self.clock = clock
        delivery = MailDelivery(from: from, log: log, send: send)
    }

    public func run(_ item: WorkItem) async throws {
        let id = AccountMail.ID(try item.decode(Payload.self).mail_id)
        guard let mail = try await mails.take(id, now: clock.now()) else { return }
        let isSent = try await delivery.deliver(
            to: mail.to, id: id.value, write: { try writer.write(mail, from: delivery.from, to: $0) },
            suppress: { try await mails.suppress(mail.to, reason: $0) })
        if isSent { try await mails.markSent(id) }
    }
}

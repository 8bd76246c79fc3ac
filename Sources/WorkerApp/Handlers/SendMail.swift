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
    private let from: MailMessage.Mailbox
    private let send: @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void
    private let log: Log

    /// - Parameter send: as `SMTPClient.send`.
    public init(
        mails: any MailRepository, writer: AlertMailWriter, from: MailMessage.Mailbox, log: Log,
        send: @escaping @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void
    ) {
        self.mails = mails
        self.writer = writer
        self.from = from
        self.log = log
        self.send = send
    }

    public func run(_ item: WorkItem) async throws {
        let id = Mail.ID(try item.decode(Payload.self).mail_id)
        guard let mail = try await mails.take(id) else { return }
        guard let to = MailMessage.Mailbox(address: mail.to) else {
            // Our form of an address is wider than that of SMTP without extensions.
            try await mails.suppress(mail.to, reason: "not an SMTP address")
            return
        }
        let message = try writer.write(mail, from: from, to: to)
        do {
            try await send(from.address, to.address, message.encoded())
        } catch let error as SMTPError {
            switch error {
            case .recipientRefused:
                log.warning("a mail address was refused", ["mail": .int(id.value), "error": .string("\(error)")])
                try await mails.suppress(mail.to, reason: "\(error)")
                return
            case .refused, .malformed: throw WorkFailure.permanent("\(error)")
            case .temporary: throw error
            }
        }
        try await mails.markSent(id)
    }
}

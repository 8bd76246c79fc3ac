import Core
import ServiceKit
import Transfer

/// What all mails have in common: the way to the server, and what its answers mean.
struct MailDelivery: Sendable {
    let from: MailMessage.Mailbox
    let log: Log
    /// As `SMTPClient.send`; may throw `WorkFailure.waiting`.
    let send: @Sendable (_ from: String, _ to: String, _ message: [UInt8]) async throws -> Void

    /// - Parameters:
    ///   - write: makes the message, for a recipient that SMTP takes.
    ///   - suppress: called with the reason when the address takes no mail, now and in future.
    /// - Returns: whether it was sent.
    /// - Throws: `WorkFailure.permanent` for a message that the server refuses, `.waiting` while it is away,
    ///   `SMTPError` when it is to be tried again.
    func deliver(
        to address: String, id: Int64, write: (MailMessage.Mailbox) throws -> MailMessage,
        suppress: (_ reason: String) async throws -> Void
    ) async throws -> Bool {
        guard let to = MailMessage.Mailbox(address: address) else {
            // Our form of an address is wider than that of SMTP without extensions.
            try await suppress("not an SMTP address")
            return false
        }
        let message = try write(to)
        do {
            try await send(from.address, to.address, message.encoded())
        } catch let error as SMTPError {
            switch error {
            case .recipientRefused:
                log.warning("a mail address was refused", ["mail": .int(id), "error": .string("\(error)")])
                try await suppress("\(error)")
                return false
            case .refused, .malformed: throw WorkFailure.permanent("\(error)")
            case .temporary, .recipientDeferred: throw error
            }
        }
        return true
    }
}

import Foundation

/// What people do with their account by mail. None of it tells whether an address has an account.
public protocol AccountRepository: Sendable {
    /// Asks for a mail with a token to reset the password, or to confirm an address. Nothing is looked up here: the
    /// worker finds out whether the address is anybody's, so that neither the answer nor its time tells. Beyond
    /// `AccountMail.perAddressAndHourMax` nothing is sent.
    /// - Parameter kind: `reset` or `confirm`; the others are asked for by `UserRepository.update`.
    func ask(_ kind: AccountMail.Kind, address: String, _ mailing: AccountMailing) async throws
    /// What a token could be used for now; nil when it is unknown, used or expired, or its person is blocked.
    func find(hash: [UInt8], now: Date) async throws -> AccountToken?
    /// Uses a token of `reset`: stores the password, ends every session, and voids other tokens. Whoever reads the
    /// mail of an address has confirmed it.
    /// - Throws: `invalid` when the token is not good (any more): of two uses one wins.
    func reset(hash: [UInt8], passwordHash: String, now: Date) async throws -> User
    /// Uses a token of `confirm` or `change`.
    /// - Throws: `invalid` likewise; `conflict` when somebody else has the new address by now.
    func confirm(hash: [UInt8], now: Date) async throws -> User
}

/// The worker's side of the mails about accounts.
public protocol AccountMailRepository: Sendable {
    /// Makes the mail's token good, voiding the former one for the same purpose. Nil when it is not to be sent: sent
    /// already, expired, replaced by a later one, or nobody has the address. Safe to repeat.
    func take(_ id: AccountMail.ID, now: Date) async throws -> AccountMail?
    func markSent(_ id: AccountMail.ID) async throws
    /// As `MailRepository.suppress`.
    func suppress(_ address: String, reason: String) async throws
}

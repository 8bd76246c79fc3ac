import Foundation

/// A token that is mailed and proves, when it comes back, that somebody reads the mail of an address.
public struct AccountToken: Sendable, Equatable {
    public enum Purpose: String, Sendable, CaseIterable {
        /// Sets a new password.
        case reset
        /// The address somebody registered with is theirs.
        case confirm
        /// The account's new address is theirs.
        case change
    }

    /// What the database keeps of a token: neither part is the token, nor leads to it without the installation's
    /// secret.
    public struct Stored: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        /// Random; with the secret it makes the token, so that a mail sent again says the same.
        public let seed: [UInt8]
        /// SHA-256 of the token, by which it is found.
        public let hash: [UInt8]

        public init(seed: [UInt8], hash: [UInt8]) {
            self.seed = seed
            self.hash = hash
        }

        public var description: String { "•••" }
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    public let purpose: Purpose
    public let username: String
    /// Where it was sent.
    public let email: String

    public init(purpose: Purpose, username: String, email: String) {
        self.purpose = purpose
        self.username = username
        self.email = email
    }
}

extension AppError {
    /// Strapi's words for a token that is wrong, used or too old, of a reset and of a confirmation.
    public static let wrongResetCode = AppError(.invalid, "Incorrect code provided")
    public static let wrongConfirmation = AppError(.invalid, "Invalid token")
}

/// A mail about an account that is to be sent once. The Message-ID is fixed when it is asked for.
public struct AccountMail: Sendable, Equatable {
    public typealias ID = Identifier<AccountMail>

    /// Mails of one kind to one address within an hour: whoever fills in forms with somebody else's address is a
    /// nuisance to them five times.
    public static let perAddressAndHourMax = 5
    public static let limitSeconds = 3600

    public enum Kind: String, Sendable, CaseIterable {
        case reset, confirm, change
        /// To the former address, when another one is asked for.
        case changeNotice = "change_notice"

        /// How long a token is good, and how late a mail is still sent. A reset opens the account to whoever finds the
        /// mail, so its time is short; the others only confirm or tell.
        public var secondsMax: TimeInterval {
            switch self {
            case .reset: 3600
            case .confirm, .change, .changeNotice: 86_400
            }
        }
    }

    public enum Content: Sendable, Equatable {
        case reset(AccountToken.Stored)
        case confirm(AccountToken.Stored)
        case change(AccountToken.Stored)
        /// Somebody wants to move to an address that has an account: only its owner is told.
        case addressTaken
        case changeNotice(newAddress: String)
    }

    public let id: ID
    public let messageID: String
    public let to: String
    public let username: String
    public let content: Content
    public let createdAt: Date

    public init(id: ID, messageID: String, to: String, username: String, content: Content, createdAt: Date) {
        self.id = id
        self.messageID = messageID
        self.to = to
        self.username = username
        self.content = content
        self.createdAt = createdAt
    }
}

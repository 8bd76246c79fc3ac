import Core
import Crypto
import ServiceKit

/// How accounts are made and recovered here.
public struct AccountSettings: Sendable {
    /// A registration is good once a token mailed to its address has come back; until then nobody signs in to it.
    public let emailConfirmation: Bool
    /// Where a browser goes after an address was confirmed; nil for a page of ours.
    public let confirmedURL: String?
    /// Requests from one client address for mails about accounts, and uses of their tokens.
    public let requestsPerMinute: Int

    public init(emailConfirmation: Bool = false, confirmedURL: String? = nil, requestsPerMinute: Int = 10) {
        self.emailConfirmation = emailConfirmation
        self.confirmedURL = confirmedURL
        self.requestsPerMinute = requestsPerMinute
    }

    init(_ environment: inout Environment) {
        emailConfirmation = environment.bool("MARTLET_EMAIL_CONFIRMATION", default: false)
        let isSet = environment.value("MARTLET_CONFIRMED_URL") != nil
        confirmedURL = isSet ? environment.webURL("MARTLET_CONFIRMED_URL") : nil
        requestsPerMinute = environment.int("MARTLET_ACCOUNT_REQUESTS_PER_MINUTE", default: 10, in: 1...100_000)
    }
}

extension MailedToken {
    /// A new token, for a mail asked for now.
    func mailing(_ parts: GatewayParts) -> AccountMailing {
        let (seed, hash) = make(random: parts.random)
        return AccountMailing(token: AccountToken.Stored(seed: seed, hash: hash), now: parts.clock.now())
    }
}

import Clamd
import Crypto
import Foundation
import MediaTools
import ServiceKit
import Transfer

/// The worker's settings, read once.
public struct WorkerConfiguration: Sendable {
    public static let mailsAtOnceMax = 64
    /// Matching that died may be tried again for 30 days, and must find what it has told.
    public static let alertLedgerDaysMin = 31
    /// Ten years: as good as for ever.
    public static let alertLedgerDaysMax = 3650

    /// What becomes of an SVG: it can hold programs, so it is never served as it is.
    public enum SVG: String, CaseIterable, Sendable {
        case refuse, rasterize
    }

    public let database: DatabaseSettings
    public let keys: SigningKeys
    public let publicURL: String
    /// Where mails send people; `{id}` stands for the posting's number.
    public let postingURL: String
    /// Where a mail about a forgotten password sends people, with the token as `code`.
    public let resetURL: String
    /// Nil: mails wait in the queue.
    public let smtp: SMTPClient.Configuration?
    public let from: MailMessage.Mailbox
    /// The right side of Message-IDs: the sender's domain.
    public let mailDomain: String
    /// Shown in the queue as the holder of leases.
    public let name: String
    public let mediaChildren: Int
    public let svg: SVG
    /// By tesseract's names, whether installed or not. Empty: scans are not read.
    public let scanLanguages: [String]
    public let mailsAtOnce: Int
    /// Nil: uploads are not scanned.
    public let clamd: ClamdAddress?
    /// Of one scan.
    public let clamdSecondsMax: Int
    /// How long the ledger of what alerts have told is kept.
    public let alertLedgerDays: Int

    public init(_ environment: inout Environment) throws {
        database = DatabaseSettings(&environment)
        publicURL = environment.webURL("MARTLET_PUBLIC_URL")
        postingURL = environment.postingURL(publicURL: publicURL)
        // Of a site that has no address there are none of its pages, and one mistake is enough to say.
        resetURL =
            environment.value("MARTLET_RESET_URL") == nil
            ? publicURL + "/reset-password" : environment.webURL("MARTLET_RESET_URL")
        name = environment.string("MARTLET_INSTANCE", default: "worker-\(ProcessInfo.processInfo.processIdentifier)")
        mediaChildren = environment.int("MARTLET_MEDIA_CHILDREN", default: 2, in: 1...64)
        svg = environment.choice("MARTLET_SVG", default: .refuse)
        scanLanguages = Self.scanLanguages(&environment)
        mailsAtOnce = environment.int("MARTLET_MAILS_AT_ONCE", default: 8, in: 1...Self.mailsAtOnceMax)
        smtp = environment.mailServer()
        clamd = Self.clamd(&environment)
        clamdSecondsMax = environment.int(
            "MARTLET_CLAMD_SECONDS", default: ClamdClient.scanSecondsDefault, in: 1...3600)
        alertLedgerDays = environment.int(
            "MARTLET_ALERT_LEDGER_DAYS", default: 180, in: Self.alertLedgerDaysMin...Self.alertLedgerDaysMax)
        let sender = environment.mailSender()
        let secrets = environment.sessionSecrets(bytesMin: SigningKeys.keyBytesMin)
        try environment.check()
        guard let sender else { throw ConfigurationError(["MARTLET_MAIL_FROM is not an address"]) }
        (from, mailDomain) = (sender.mailbox, sender.domain)
        keys = try SigningKeys(secrets: secrets)
    }

    private static func scanLanguages(_ environment: inout Environment) -> [String] {
        let text = environment.string("MARTLET_OCR_LANGUAGES", default: "eng")
        guard text != "off" else { return [] }
        if let languages = ScanLanguages.list(text) { return languages }
        environment.mistake(
            "MARTLET_OCR_LANGUAGES is \"\(text)\"; it must be off, or at most \(ScanLanguages.countMax) of "
                + "tesseract's languages, such as eng+deu")
        return []
    }

    private static func clamd(_ environment: inout Environment) -> ClamdAddress? {
        var address: ClamdAddress?
        environment.verify("MARTLET_CLAMD") { address = try ClamdAddress($0) }
        return address
    }
}

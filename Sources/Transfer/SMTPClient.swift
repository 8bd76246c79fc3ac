import Ccurl
import EventLoop
import Foundation

/// Why a mail was not taken. The text is the server's or libcurl's and goes to the log, never to a client.
public enum SMTPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Try again later: no connection, a time-out, or a 4xx reply (RFC 5321 section 4.2.1).
    case temporary(code: Int, String)
    /// Try again later: a 4xx reply to RCPT, which is about the recipient alone.
    case recipientDeferred(code: Int, String)
    /// The server will not take this mail, ever: a 5xx reply to anything but the recipient.
    case refused(code: Int, String)
    /// The server knows no such recipient, or takes nothing for it: a 5xx reply to RCPT.
    case recipientRefused(code: Int, String)
    /// An address or a message that cannot be sent as SMTP.
    case malformed(String)

    public var description: String {
        switch self {
        case .temporary(let code, let text): "SMTP: for now \(code) \(text)"
        case .recipientDeferred(let code, let text): "SMTP: recipient for now \(code) \(text)"
        case .refused(let code, let text): "SMTP: refused \(code) \(text)"
        case .recipientRefused(let code, let text): "SMTP: recipient refused \(code) \(text)"
        case .malformed(let text): "SMTP: \(text)"
        }
    }
}

/// Sends mail to one server. The transfer runs on a thread of the pool; connections are kept for the next mail.
public struct SMTPClient: Sendable {
    /// A server that does not answer a greeting for so long is treated as away.
    public static let connectSecondsMax = 10
    /// For a whole mail: RFC 5321 section 4.5.3.2 allows minutes, but a work item's lease must outlive it.
    public static let sendSecondsMax = 45
    /// Servers close idle connections; an older one is not tried.
    public static let idleSecondsMax = 20
    /// RFC 5321 section 4.5.3.1.6.
    static let lineBytesMax = 998

    public enum Security: Sendable {
        /// `smtp://` may talk in the clear (a server on this machine), `smtps://` never does.
        case asURLSays
        /// STARTTLS must work, or nothing is sent.
        case startTLS
    }

    public struct Configuration: Sendable {
        public let url: String
        public let host: String
        public let port: Int
        public let security: Security
        public let username: String?
        public let password: String?
        /// What EHLO says.
        public let name: String
        /// Path of a file with certificates of authorities (PEM) that the server's is checked by; nil: the system's.
        public let authorities: String?

        /// - Parameter url: `smtp://host:port` or `smtps://host:port`; a user and password may stand in it, and
        ///   `?starttls=required` after it.
        public init?(url: String, name: String = "localhost", authorities: String? = nil) {
            guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
                scheme == "smtp" || scheme == "smtps", let host = parts.host, !host.isEmpty,
                parts.path.isEmpty || parts.path == "/", SMTPClient.isWord(name)
            else { return nil }
            var plain = URLComponents()
            plain.scheme = scheme
            plain.host = host
            plain.port = parts.port
            // libcurl sends the path as the name of EHLO.
            plain.path = "/" + name
            guard let url = plain.string else { return nil }
            switch parts.queryItems ?? [] {
            case []: security = .asURLSays
            case [URLQueryItem(name: "starttls", value: "required")] where scheme == "smtp": security = .startTLS
            default: return nil
            }
            self.url = url
            self.host = host
            self.port = parts.port ?? (scheme == "smtps" ? 465 : 25)
            self.name = name
            self.authorities = authorities
            username = parts.user
            password = parts.password
        }
    }

    private let configuration: Configuration
    private let offload: OffloadPool
    private let handles: CurlHandles
    private let sendSecondsMax: Int
    private let idleSecondsMax: Int

    /// - Parameter offload: one thread is taken for each mail on its way.
    public init(
        _ configuration: Configuration, offload: OffloadPool, connectionsMax: Int = 8,
        sendSecondsMax: Int = Self.sendSecondsMax, idleSecondsMax: Int = Self.idleSecondsMax
    ) {
        self.configuration = configuration
        self.offload = offload
        self.sendSecondsMax = sendSecondsMax
        self.idleSecondsMax = idleSecondsMax
        handles = CurlHandles(idleMax: connectionsMax)
    }

    /// Returns when the server has taken the mail (250 after the data).
    /// - Parameter message: lines end in CRLF and have at most 998 bytes, as `MailMessage` makes them.
    /// - Throws: `SMTPError`.
    public func send(from: String, to: String, message: [UInt8]) async throws {
        for address in [from, to] where !Self.isAddress(address) { throw SMTPError.malformed("not an address") }
        guard Self.hasGoodLines(message) else { throw SMTPError.malformed("lines must end in CRLF and be short") }
        try await offload.run { [self] in
            try handles.with { handle in
                prepare(handle, from: from, to: to, message: message)
                let code = handle.perform()
                if let error = Self.error(code, reply: handle.responseCode, text: handle.message(code)) { throw error }
            }
        }
    }

    /// Greets the server as for a mail, with TLS and the password as they are configured, and sends none.
    /// - Throws: `SMTPFault`.
    public func probe() async throws {
        try await offload.run { [self] in
            try handles.with { handle in
                connect(handle)
                handle.set(CURLOPT_CUSTOMREQUEST, "NOOP")
                handle.set(CURLOPT_NOBODY, 1)
                // Some servers say more than a line.
                handle.receiveBytes(max: Self.lineBytesMax * 10)
                let code = handle.perform()
                if let fault = SMTPFault(code, text: handle.message(code)) { throw fault }
            }
        }
    }

    /// What every transfer begins with.
    private func connect(_ handle: CurlHandle) {
        handle.set(CURLOPT_URL, configuration.url)
        handle.set(CURLOPT_PROTOCOLS_STR, "smtp,smtps")
        handle.set(CURLOPT_CONNECTTIMEOUT, Self.connectSecondsMax)
        handle.set(CURLOPT_TIMEOUT, sendSecondsMax)
        handle.set(CURLOPT_MAXAGE_CONN, idleSecondsMax)
        if let authorities = configuration.authorities { handle.set(CURLOPT_CAINFO, authorities) }
        if configuration.security == .startTLS { handle.set(CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)) }
        if let username = configuration.username, let password = configuration.password {
            handle.set(CURLOPT_USERNAME, username)
            handle.set(CURLOPT_PASSWORD, password)
        }
    }

    private func prepare(_ handle: CurlHandle, from: String, to: String, message: [UInt8]) {
        connect(handle)
        handle.set(CURLOPT_MAIL_FROM, "<\(from)>")
        handle.set(CURLOPT_MAIL_RCPT, ["<\(to)>"])
        handle.set(CURLOPT_UPLOAD, 1)
        handle.sendBytes(message)
        // Nothing comes back as a body, and nothing may be printed.
        handle.receiveBytes(max: 0)
    }

    /// What a transfer's end means. libcurl names the stage in its text ("RCPT failed: 550") and nowhere else.
    static func error(_ code: CURLcode, reply: Int, text: String) -> SMTPError? {
        guard code != CURLE_OK else { return nil }
        // A reply decides only where the server spoke last: a lost connection after a 354 is a matter of later.
        let spoken =
            code == CURLE_SEND_ERROR || code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_LOGIN_DENIED
            || code == CURLE_REMOTE_ACCESS_DENIED
        let isOfRecipient = spoken && text.hasPrefix("RCPT failed")
        guard spoken, (500...599).contains(reply) else {
            return isOfRecipient ? .recipientDeferred(code: reply, text) : .temporary(code: reply, text)
        }
        if isOfRecipient { return .recipientRefused(code: reply, text) }
        // A wrong password is a mistake of ours, which an operator mends while the mails wait.
        return code == CURLE_LOGIN_DENIED ? .temporary(code: reply, text) : .refused(code: reply, text)
    }

    /// No space, no control character, no bracket: nothing that could end a command line or begin another.
    static func isAddress(_ address: String) -> Bool {
        let parts = address.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty && address.utf8.count <= 254
            && address.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") }
    }

    static func isWord(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    private static func hasGoodLines(_ message: [UInt8]) -> Bool {
        var length = 0
        var before: UInt8 = 0
        for byte in message {
            if (byte == 0x0A) != (before == 0x0D) || byte == 0 { return false }
            length = byte == 0x0A ? 0 : length + 1
            if length > lineBytesMax + 1 { return false }
            before = byte
        }
        return before == 0x0A
    }
}

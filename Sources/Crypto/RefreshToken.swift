/// A refresh token: 256 random bits that mean nothing by themselves. The client holds the text, the database its
/// SHA-256, so that a stolen copy of the database opens no session.
public struct RefreshToken: Sendable {
    public static let randomBytes = 32
    /// 32 bytes in base64url.
    public static let textBytes = 43

    /// What the client is given, once.
    public let text: String
    /// What is stored: 32 bytes.
    public let digest: [UInt8]

    /// A new token.
    public init(random: some RandomSource) {
        text = Base64URL.encode(random.bytes(Self.randomBytes))
        digest = SHA256.hash(text)
    }

    /// The token a client sent, or nil when it cannot be one of ours.
    public init?(_ text: String) {
        guard text.utf8.count == Self.textBytes, Base64URL.decode(text) != nil else { return nil }
        self.text = text
        digest = SHA256.hash(text)
    }
}

extension RefreshToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "•••" }
    public var debugDescription: String { "•••" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

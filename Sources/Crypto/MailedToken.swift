/// The word in a mail's link about an account: 256 bits that nobody can foretell, in base64url.
///
/// It is the HMAC-SHA256 of a random seed by the installation's secret. The database keeps the seed, so that a mail
/// sent again has the same link, and the SHA-256 of the word, by which it is found when it comes back. A stolen copy of
/// the database gives no word away.
public struct MailedToken: Sendable {
    public static let seedBytes = 32
    /// 32 bytes in base64url.
    public static let characters = 43

    private let keys: SigningKeys

    public init(keys: SigningKeys) { self.keys = keys }

    /// A new seed, and the hash of the token that it makes.
    public func make(random: some RandomSource) -> (seed: [UInt8], hash: [UInt8]) {
        let seed = random.bytes(Self.seedBytes)
        return (seed, SHA256.hash(Base64URL.encode(keys.code(for: Self.message(seed)))))
    }

    /// The token of a seed, by whichever key it was made with; nil when the hash is of none of them.
    public func text(seed: [UInt8], hash: [UInt8]) -> String? {
        for key in keys.all {
            let text = Base64URL.encode(HMACSHA256.code(for: Self.message(seed), key: key))
            if constantTimeEquals(SHA256.hash(text), hash) { return text }
        }
        return nil
    }

    /// By which a token that came back is found, or nil when it cannot be one of ours.
    public static func hash(of text: String) -> [UInt8]? {
        guard text.utf8.count == characters, Base64URL.decode(text.utf8) != nil else { return nil }
        return SHA256.hash(text)
    }

    /// Begins with a zero byte, as no JWT does, and with another word than the unsubscribe link's: a key that all share
    /// makes none from the other.
    private static func message(_ seed: [UInt8]) -> [UInt8] { [0] + Array("mailed".utf8) + seed }
}

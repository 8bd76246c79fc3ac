/// The word in a mail's unsubscribe link: who has it may end that alert, and nothing else. It does not expire (RFC 8058
/// wants it to work as long as the mail lies somewhere), so old signing keys stay in the configuration for a while.
///
/// base64url of the alert's number (8 bytes, big-endian) and its HMAC-SHA256: 54 characters.
public struct UnsubscribeToken: Sendable {
    public static let characters = 54
    private static let numberBytes = 8

    private let keys: SigningKeys

    public init(keys: SigningKeys) { self.keys = keys }

    public func make(alertID: Int64) -> String {
        let number = withUnsafeBytes(of: alertID.bigEndian) { Array($0) }
        return Base64URL.encode(number + keys.code(for: message(number)))
    }

    /// The alert's number, or nil for anything `make` does not give.
    public func check(_ token: String) -> Int64? {
        guard token.utf8.count == Self.characters, let bytes = Base64URL.decode(token.utf8) else { return nil }
        let number = Array(bytes.prefix(Self.numberBytes))
        guard keys.verify(Array(bytes.dropFirst(Self.numberBytes)), for: message(number)) else { return nil }
        return number.reduce(0) { $0 << 8 | Int64($1) }
    }

    /// Begins with a zero byte, as no JWT does, and is shorter than any message of `CapabilitySigner`: a key that all
    /// three share makes none from the other.
    private func message(_ number: [UInt8]) -> [UInt8] { [0] + Array("unsubscribe".utf8) + number }
}

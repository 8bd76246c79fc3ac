/// Why a capability is refused.
public enum CapabilityError: Error, Equatable, Sendable {
    case malformed, badSignature, expired
}

/// Links that carry their own permission until they expire: a CV's address, a word that ends an alert.
///
/// The value is `exp.sig`: decimal seconds since 1970, and the base64url HMAC of purpose, path, subject and expiry. Who
/// has the link may use it, so callers bind it to what can be taken back, such as a revision in `subject`.
public struct CapabilitySigner: Sendable {
    /// Twelve digits reach the year 33658; a longer expiry is not one of ours.
    private static let expiryDigitsMax = 12
    private static let valueBytesMax = expiryDigitsMax + 1 + 43

    private let keys: SigningKeys
    private let purpose: String

    /// - Parameter purpose: What these links are for. One made for another purpose does not verify here.
    public init(keys: SigningKeys, purpose: String) {
        self.keys = keys
        self.purpose = purpose
    }

    /// The value of a query parameter that permits `path` for `subject` before the second `expires`.
    public func sign(path: String, subject: String, expires: Int64) -> String {
        let code = keys.code(for: message(path: path, subject: subject, expires: expires))
        return "\(expires).\(Base64URL.encode(code))"
    }

    /// Returns when `value` permits `path` for `subject` at `now`, in seconds since 1970.
    public func verify(_ value: String, path: String, subject: String, now: Int64) throws(CapabilityError) {
        guard value.utf8.count <= Self.valueBytesMax else { throw .malformed }
        let parts = value.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let expires = Int64(parts[0]), String(expires) == parts[0], expires >= 0,
            let code = Base64URL.decode(parts[1].utf8)
        else { throw .malformed }
        let message = message(path: path, subject: subject, expires: expires)
        guard keys.verify(code, for: message) else { throw .badSignature }
        guard now < expires else { throw .expired }
    }

    /// Every part is preceded by its length, so that no two different triples make the same bytes. It begins with a
    /// zero byte, which no JWT has, so that a key shared with a `TokenSigner` cannot make one from the other.
    private func message(path: String, subject: String, expires: Int64) -> [UInt8] {
        var message: [UInt8] = [0]
        for part in [purpose, path, subject] {
            withUnsafeBytes(of: UInt64(part.utf8.count).bigEndian) { message.append(contentsOf: $0) }
            message.append(contentsOf: part.utf8)
        }
        withUnsafeBytes(of: expires.bigEndian) { message.append(contentsOf: $0) }
        return message
    }
}

import Crypto
import HTTPServer

/// How instances know each other's requests: an HMAC keyed by the secret they share, over the time, the method, the
/// target, the digest of the body and the name of the instance that is meant.
///
/// One header, `instance;SHA-256 of the body in hex;expiry.code`. It is never logged: who has it may send the same
/// request again until it expires.
struct PassOnSeal: Sendable {
    static let header = "Martlet-Pass-On"
    /// How far the clocks of two instances may differ, and how long a request may take to arrive.
    static let secondsMax: Int64 = 30
    /// A name, a digest and a capability; more is not one of ours.
    static let bytesMax = 256

    enum Refusal: Error, Equatable {
        /// No header, or one of nobody's making.
        case unsealed
        /// Made by another instance for a third one: the address is out of date.
        case misdirected
    }

    private let signer: CapabilitySigner

    init(keys: SigningKeys) {
        signer = CapabilitySigner(keys: keys, purpose: "pass-on")
    }

    /// - Parameters:
    ///   - instance: letters, digits, `.`, `_` and `-`.
    ///   - now: seconds since 1970.
    func make(method: HTTPMethod, target: String, body: [UInt8], instance: String, now: Int64) -> String {
        let digest = Hex.encode(SHA256.hash(body))
        let code = signer.sign(
            path: target, subject: Self.subject(method, digest, instance), expires: now + Self.secondsMax)
        return "\(instance);\(digest);\(code)"
    }

    /// Checks everything but the body, which is not worth reading before.
    /// - Returns: the digest that the body must have, see `matches`.
    func check(_ request: HTTPRequest, instance: String, now: Int64) throws(Refusal) -> String {
        let values = request.headers.all(Self.header)
        guard values.count == 1, values[0].utf8.count <= Self.bytesMax else { throw .unsealed }
        let parts = values[0].split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { throw .unsealed }
        do {
            try signer.verify(
                parts[2], path: request.target, subject: Self.subject(request.method, parts[1], parts[0]), now: now)
        } catch {
            throw .unsealed
        }
        // The signer bounds the past; a clock that is far ahead of ours would make codes that live too long.
        guard let expires = parts[2].split(separator: ".").first.flatMap({ Int64($0) }),
            expires <= now + 2 * Self.secondsMax
        else { throw .unsealed }
        guard parts[0] == instance else { throw .misdirected }
        return parts[1]
    }

    static func matches(_ body: [UInt8], _ digest: String) -> Bool {
        constantTimeEquals(Array(Hex.encode(SHA256.hash(body)).utf8), Array(digest.utf8))
    }

    /// None of the three has a space, so no two make the same text.
    private static func subject(_ method: HTTPMethod, _ digest: String, _ instance: String) -> String {
        "\(method) \(digest) \(instance)"
    }
}

import Foundation

/// What a token of ours says. The contract of Strapi clients wants `id`, `iat` and `exp` by these names.
public struct Claims: Codable, Equatable, Sendable {
    public enum Kind: String, Codable, Sendable {
        /// The 30-day token of the stock sign-in, for clients that cannot refresh.
        case long
        /// The 15-minute token of clients that hold a refresh token.
        case access
    }

    /// The user's id.
    public let id: Int64
    /// The session's id.
    public let sid: Int64
    /// The session's generation when the token was made.
    public let gen: Int
    public let typ: Kind
    /// Seconds since 1970.
    public let iat: Int64
    /// Seconds since 1970; the token is void from this second on.
    public let exp: Int64

    public init(id: Int64, sid: Int64, gen: Int, typ: Kind, iat: Int64, exp: Int64) {
        self.id = id
        self.sid = sid
        self.gen = gen
        self.typ = typ
        self.iat = iat
        self.exp = exp
    }
}

/// Why a token is refused. The client is told none of this; it is for logs and tests.
public enum TokenError: Error, Equatable, Sendable {
    case tooLong, malformed, wrongAlgorithm, badSignature, expired
}

/// JSON Web Tokens (RFC 7519) with HS256 and nothing else, so that no header can choose how it is verified.
public struct TokenSigner: Sendable {
    /// Ours have about 200 bytes; more is refused before any work is done on it.
    public static let tokenBytesMax = 4096

    private static let header = Base64URL.encode(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

    private let keys: SigningKeys

    public init(keys: SigningKeys) { self.keys = keys }

    /// - Throws: `SigningKeyError` when there is no key or one is shorter than 32 bytes.
    public init(keys: [[UInt8]]) throws(SigningKeyError) { self.init(keys: try SigningKeys(keys)) }

    public func sign(_ claims: Claims) -> String {
        // Numbers and one of two words: nothing here needs escaping, and the order of the members stays put.
        let payload =
            #"{"id":\#(claims.id),"sid":\#(claims.sid),"gen":\#(claims.gen),"typ":"\#(claims.typ.rawValue)","#
            + #""iat":\#(claims.iat),"exp":\#(claims.exp)}"#
        let signed = Self.header + "." + Base64URL.encode(Array(payload.utf8))
        return signed + "." + Base64URL.encode(keys.code(for: Array(signed.utf8)))
    }

    /// The claims of a token that one of the keys signed and that has not expired at `now`, in seconds since 1970.
    /// Whether the session still stands is for the caller to ask.
    public func verify(_ token: String, now: Int64) throws(TokenError) -> Claims {
        guard token.utf8.count <= Self.tokenBytesMax else { throw .tooLong }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .malformed }
        try verifyHeader(parts[0])
        guard let code = Base64URL.decode(parts[2]) else { throw .malformed }
        // The signature comes before the payload: what a stranger wrote is not parsed.
        let signed = Array(token.utf8[..<parts[1].endIndex])
        guard keys.verify(code, for: signed) else { throw .badSignature }
        guard let payload = Base64URL.decode(parts[1]),
            let claims = try? JSONDecoder().decode(Claims.self, from: Data(payload))
        else { throw .malformed }
        guard now < claims.exp else { throw .expired }
        return claims
    }

    private struct Header: Decodable {
        let alg: String
        let typ: String?
        /// Extensions that must be understood (RFC 7515 section 4.1.11). We understand none.
        let crit: [String]?
    }

    private func verifyHeader(_ part: Substring.UTF8View) throws(TokenError) {
        if part.elementsEqual(Self.header.utf8) { return }
        guard let bytes = Base64URL.decode(part),
            let header = try? JSONDecoder().decode(Header.self, from: Data(bytes))
        else { throw .malformed }
        guard header.alg == "HS256" else { throw .wrongAlgorithm }
        guard header.crit == nil, header.typ == nil || header.typ?.uppercased() == "JWT" else { throw .malformed }
    }
}

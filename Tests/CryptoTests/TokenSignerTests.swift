import Foundation
import Seeded
import Testing

@testable import Crypto

@Suite struct TokenSignerTests {
    static let claims = Claims(id: 42, sid: 7, gen: 3, typ: .long, iat: 1_000, exp: 2_000)
    let signer: TokenSigner
    init() throws { signer = try TokenSigner(keys: [key]) }

    /// A token with any header and payload, correctly signed with `key`.
    static func forge(header: String, payload: String) -> String {
        let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        return signed + "." + Base64URL.encode(HMACSHA256.code(for: Array(signed.utf8), key: key))
    }

    @Test("the HMAC of RFC 7515 appendix A.1 is the one we compute over the same text")
    func rfc7515() {
        let secret = Base64URL.decode(
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")!
        let signed =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
            + ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let code = HMACSHA256.code(for: Array(signed.utf8), key: secret)
        #expect(Base64URL.encode(code) == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    }

    @Test("a signed token verifies, and holds the members Strapi's clients read")
    func roundTrip() throws {
        let token = signer.sign(Self.claims)
        #expect(try signer.verify(token, now: 1_999) == Self.claims)

        let payload = Base64URL.decode(String(token.split(separator: ".")[1]))!
        let members = try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
        #expect(members["id"] as? Int == 42)
        #expect(members["iat"] as? Int == 1_000)
        #expect(members["exp"] as? Int == 2_000)
    }

    @Test("a token is void from the second it expires on")
    func expiry() {
        let token = signer.sign(Self.claims)
        #expect(throws: TokenError.expired) { try signer.verify(token, now: 2_000) }
    }

    @Test("a header with white space or another order of members is still HS256")
    func otherHeader() throws {
        let payload = #"{"id":42,"sid":7,"gen":3,"typ":"long","iat":1000,"exp":2000}"#
        let token = Self.forge(header: #"{ "typ":"JWT", "alg" : "HS256" }"#, payload: payload)
        #expect(try signer.verify(token, now: 1_999) == Self.claims)
    }

    @Test(
        "every algorithm but HS256 is refused, none first, though the signature is right",
        arguments: ["none", "None", "NONE", "hs256", "HS384", "HS512", "RS256", "ES256", ""])
    func algorithms(algorithm: String) {
        let payload = #"{"id":42,"sid":7,"gen":3,"typ":"long","iat":1000,"exp":2000}"#
        let token = Self.forge(header: #"{"alg":"\#(algorithm)","typ":"JWT"}"#, payload: payload)
        #expect(throws: TokenError.wrongAlgorithm) { try signer.verify(token, now: 1_000) }
    }

    @Test("alg none without a signature is refused")
    func unsigned() {
        let parts = signer.sign(Self.claims).split(separator: ".")
        let header = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8))
        #expect(throws: TokenError.wrongAlgorithm) { try signer.verify("\(header).\(parts[1]).", now: 1_000) }
        #expect(throws: TokenError.badSignature) { try signer.verify("\(parts[0]).\(parts[1]).", now: 1_000) }
    }

    @Test("another key does not verify")
    func wrongKey() throws {
        let other = try TokenSigner(keys: [otherKey])
        #expect(throws: TokenError.badSignature) { try other.verify(signer.sign(Self.claims), now: 1_000) }
    }

    @Test("after a rotation the old key verifies and the new one signs; dropped, it verifies no more")
    func rotation() throws {
        let rotated = try TokenSigner(keys: [otherKey, key])
        #expect(try rotated.verify(signer.sign(Self.claims), now: 1_000) == Self.claims)
        let new = rotated.sign(Self.claims)
        #expect(throws: TokenError.badSignature) { try signer.verify(new, now: 1_000) }
        let finished = try TokenSigner(keys: [otherKey])
        #expect(try finished.verify(new, now: 1_000) == Self.claims)
        #expect(throws: TokenError.badSignature) { try finished.verify(signer.sign(Self.claims), now: 1_000) }
    }

    @Test("no key and short keys are refused at the start, the second one too")
    func keys() {
        #expect(throws: SigningKeyError.none) { try TokenSigner(keys: []) }
        let short = [UInt8](repeating: 1, count: 31)
        #expect(throws: SigningKeyError.tooShort(bytes: 31)) { try TokenSigner(keys: [short]) }
        #expect(throws: SigningKeyError.tooShort(bytes: 0)) { try TokenSigner(keys: [key, []]) }
        #expect(throws: Never.self) { try TokenSigner(keys: [[UInt8](repeating: 1, count: 32)]) }
    }

    @Test("printing keys and signers shows no key")
    func printing() throws {
        let keys = try SigningKeys([key])
        for text in ["\(keys)", String(reflecting: keys), "\(signer)", String(reflecting: signer)] {
            #expect(!text.contains("7, 7"))
        }
    }

    @Test("changing any one character of a token makes it invalid")
    func tampering() {
        let token = Array(signer.sign(Self.claims).utf8)
        for index in token.indices {
            var changed = token
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(throws: TokenError.self) {
                try signer.verify(String(decoding: changed, as: UTF8.self), now: 1_000)
            }
        }
    }

    @Test(
        "what is not three base64url parts is malformed",
        arguments: ["", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", " ", "\0", "ÄÖÜ.ÄÖÜ.ÄÖÜ", "e30.e30.e30"])
    func malformed(token: String) {
        #expect(throws: TokenError.malformed) { try signer.verify(token, now: 1_000) }
    }

    @Test(
        "a signed payload that is not our claims is malformed",
        arguments: [
            "", "{}", "[]", "null", #"{"id":42}"#,
            #"{"id":"42","sid":7,"gen":3,"typ":"long","iat":1000,"exp":2000}"#,
            #"{"id":42,"sid":7,"gen":3,"typ":"other","iat":1000,"exp":2000}"#,
            #"{"id":42,"sid":7,"gen":3,"typ":"long","iat":1000}"#,
            #"{"id":42,"sid":7,"gen":3,"typ":"long","iat":1000,"exp":1e400}"#,
            #"{"id":92233720368547758070,"sid":7,"gen":3,"typ":"long","iat":1000,"exp":2000}"#,
        ])
    func payloads(payload: String) {
        let token = Self.forge(header: #"{"alg":"HS256","typ":"JWT"}"#, payload: payload)
        #expect(throws: TokenError.malformed) { try signer.verify(token, now: 1_000) }
    }

    @Test(
        "a signed header with extensions, another type or no algorithm is malformed",
        arguments: [
            #"{"alg":"HS256","crit":["b64"]}"#, #"{"alg":"HS256","typ":"JWE"}"#, "{}", "[]", #"{"alg":null}"#,
            #"{"alg":["HS256"]}"#,
        ])
    func headers(header: String) {
        let payload = #"{"id":42,"sid":7,"gen":3,"typ":"long","iat":1000,"exp":2000}"#
        #expect(throws: TokenError.malformed) {
            try signer.verify(Self.forge(header: header, payload: payload), now: 1_000)
        }
    }

    @Test("a token of 4097 bytes is refused unread, one of 4096 is looked at")
    func size() {
        let text = String(repeating: "a", count: TokenSigner.tokenBytesMax)
        #expect(throws: TokenError.malformed) { try signer.verify(text, now: 0) }
        #expect(throws: TokenError.tooLong) { try signer.verify(text + "a", now: 0) }
    }

    @Test("verifying 20,000 mutilated tokens never accepts one and never crashes")
    func fuzz() {
        var generator = SeededGenerator(seed: 20_261_201)
        let valid = Array(signer.sign(Self.claims).utf8)
        for _ in 0..<20_000 {
            var bytes = valid
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<max(bytes.count, 1), using: &generator)
                switch Int.random(in: 0...3, using: &generator) {
                case 0 where !bytes.isEmpty: bytes[index] = UInt8.random(in: .min ... .max, using: &generator)
                case 1 where !bytes.isEmpty: bytes.remove(at: index)
                case 2: bytes.insert(UInt8.random(in: .min ... .max, using: &generator), at: index)
                default: bytes = Array(bytes.prefix(index))
                }
            }
            if bytes == valid { continue }
            let token = String(decoding: bytes, as: UTF8.self)
            #expect(throws: TokenError.self) { try signer.verify(token, now: 1_000) }
        }
    }
}

import Seeded
import Testing

@testable import Crypto

@Suite struct CapabilityTests {
    let signer: CapabilitySigner
    init() throws { signer = CapabilitySigner(keys: try SigningKeys([key]), purpose: "media") }

    @Test("a capability permits its path for its subject until it expires")
    func roundTrip() throws {
        let value = signer.sign(path: "/media/1", subject: "3", expires: 2_000)
        #expect(value.hasPrefix("2000."))
        #expect(throws: Never.self) { try signer.verify(value, path: "/media/1", subject: "3", now: 1_999) }
        #expect(throws: CapabilityError.expired) {
            try signer.verify(value, path: "/media/1", subject: "3", now: 2_000)
        }
    }

    @Test("another path, subject, purpose, key or a shifted border between them does not verify")
    func bindings() throws {
        let value = signer.sign(path: "/media/1", subject: "3", expires: 2_000)
        for (path, subject) in [("/media/2", "3"), ("/media/1", "4"), ("/media/", "13"), ("/media/13", "")] {
            #expect(throws: CapabilityError.badSignature) {
                try signer.verify(value, path: path, subject: subject, now: 1_000)
            }
        }
        let others = [
            CapabilitySigner(keys: try SigningKeys([key]), purpose: "unsubscribe"),
            CapabilitySigner(keys: try SigningKeys([otherKey]), purpose: "media"),
        ]
        for other in others {
            #expect(throws: CapabilityError.badSignature) {
                try other.verify(value, path: "/media/1", subject: "3", now: 1_000)
            }
        }
        let rotated = CapabilitySigner(keys: try SigningKeys([otherKey, key]), purpose: "media")
        #expect(throws: Never.self) { try rotated.verify(value, path: "/media/1", subject: "3", now: 1_000) }
    }

    @Test("the expiry cannot be moved without the key")
    func movedExpiry() {
        let value = signer.sign(path: "/media/1", subject: "3", expires: 2_000)
        let moved = "3000" + value.dropFirst(4)
        #expect(throws: CapabilityError.badSignature) {
            try signer.verify(moved, path: "/media/1", subject: "3", now: 1_000)
        }
    }

    @Test(
        "what is not a number, a dot and a code is malformed",
        arguments: [
            "", ".", "2000", "2000.", "2000.*", ".abcd", "2000.a.b", "+2000.YWJj", "02000.YWJj", "-1.YWJj",
            " 2000.YWJj", "99999999999999999999.YWJj", String(repeating: "9", count: 4_000),
        ])
    func malformed(value: String) {
        #expect(throws: CapabilityError.self) { try signer.verify(value, path: "/media/1", subject: "3", now: 1_000) }
    }

    @Test("10,000 mutilated capabilities are refused without a crash")
    func fuzz() {
        var generator = SeededGenerator(seed: 5)
        let valid = Array(signer.sign(path: "/media/1", subject: "3", expires: 2_000).utf8)
        for _ in 0..<10_000 {
            var bytes = valid
            let index = Int.random(in: 0..<bytes.count, using: &generator)
            if Bool.random(using: &generator) {
                bytes[index] = UInt8.random(in: .min ... .max, using: &generator)
            } else {
                bytes.remove(at: index)
            }
            if bytes == valid { continue }
            let value = String(decoding: bytes, as: UTF8.self)
            #expect(throws: CapabilityError.self) {
                try signer.verify(value, path: "/media/1", subject: "3", now: 1_000)
            }
        }
    }

    @Test("a refresh token is 256 random bits, known by its digest")
    func refreshToken() throws {
        let token = RefreshToken(random: CountingRandom())
        #expect(token.text == "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
        #expect(token.digest == SHA256.hash(token.text))
        #expect(RefreshToken(token.text)?.digest == token.digest)
        #expect(RefreshToken(random: SystemRandom()).text != RefreshToken(random: SystemRandom()).text)
        #expect("\(token)" == "•••")
    }

    @Test(
        "a text that cannot be a refresh token is none",
        arguments: ["", "a", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9"])
    func notARefreshToken(text: String) {
        #expect(RefreshToken(text) == nil)
    }
}

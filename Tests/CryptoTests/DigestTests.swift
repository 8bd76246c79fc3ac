import Testing

@testable import Crypto

@Suite struct DigestTests {
    @Test("SHA-256 gives the digests of FIPS 180-4, in one piece and in many")
    func sha256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(Hex.encode(SHA256.hash("abc")) == abc)
        #expect(
            Hex.encode(SHA256.hash([UInt8]())) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

        let hasher = SHA256.Hasher()
        for _ in 0..<1000 { hasher.update([UInt8](repeating: UInt8(ascii: "a"), count: 1000)) }
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(Hex.encode(hasher.finish()) == million)

        hasher.update(Array("ab".utf8))
        hasher.update([])
        hasher.update(Array("c".utf8))
        #expect(Hex.encode(hasher.finish()) == abc)
    }

    @Test(
        "HMAC-SHA256 gives the codes of RFC 4231",
        arguments: [
            (
                [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xaa, count: 20), [UInt8](repeating: 0xdd, count: 50),
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
            ),
            (
                [UInt8](repeating: 0xaa, count: 131),
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ])
    func hmac(key: [UInt8], message: [UInt8], code: String) {
        #expect(Hex.encode(HMACSHA256.code(for: message, key: key)) == code)
    }

    @Test("constant-time comparison tells equal from unequal, and lengths apart")
    func comparison() {
        #expect(constantTimeEquals([1, 2, 3], [1, 2, 3]))
        #expect(constantTimeEquals([], []))
        #expect(!constantTimeEquals([1, 2, 3], [1, 2, 4]))
        #expect(!constantTimeEquals([1, 2, 3], [1, 2]))
    }

    @Test("the system's randomness gives as many bytes as asked, and not the same twice")
    func random() {
        let first = SystemRandom().bytes(32)
        #expect(first.count == 32)
        #expect(first != SystemRandom().bytes(32))
        #expect(SystemRandom().bytes(0) == [])
    }
}

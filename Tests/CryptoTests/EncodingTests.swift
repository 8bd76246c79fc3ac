import Foundation
import Seeded
import Testing

@testable import Crypto

@Suite struct EncodingTests {
    @Test(
        "base64url writes and reads the vectors of RFC 4648, without padding",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ])
    func vectors(plain: String, encoded: String) {
        #expect(Base64URL.encode(Array(plain.utf8)) == encoded)
        #expect(Base64URL.decode(encoded) == Array(plain.utf8))
    }

    @Test("base64url agrees with Foundation's base64 for every length and byte")
    func foundation() {
        var generator = SeededGenerator(seed: 1)
        for count in 0..<300 {
            let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            let expected = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
            #expect(Base64URL.encode(bytes) == expected)
            #expect(Base64URL.decode(expected) == bytes)
        }
    }

    @Test(
        "base64url refuses padding, the other alphabet, white space, a lone character and spare bits",
        arguments: ["Zg==", "+/8", "Zm 8", "Zm9v\n", "Z", "Zm9vY", "Zh", "Zm9", "Ü", "Zm9v\0"])
    func refused(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test("hex writes lower case, reads both, and refuses odd lengths and other letters")
    func hex() {
        #expect(Hex.encode([0, 0x7f, 0xff]) == "007fff")
        #expect(Hex.decode("007FfF") == [0, 0x7f, 0xff])
        #expect(Hex.decode("007") == nil)
        #expect(Hex.decode("0g") == nil)
        #expect(Hex.decode("0x") == nil)
    }
}

import Testing

@testable import Crypto

@Suite("Tokens in mails")
struct MailedTokenTests {
    let key = [UInt8](repeating: 7, count: 32)
    let other = [UInt8](repeating: 8, count: 32)

    @Test("a seed gives its token again, and the token the hash it is found by")
    func roundTrip() throws {
        let tokens = MailedToken(keys: try SigningKeys([key]))
        let (seed, hash) = tokens.make(random: SystemRandom())
        let text = try #require(tokens.text(seed: seed, hash: hash))
        #expect(text.utf8.count == MailedToken.characters && tokens.text(seed: seed, hash: hash) == text)
        #expect(MailedToken.hash(of: text) == hash)
        #expect(seed.count == 32 && tokens.make(random: SystemRandom()).seed != seed)
        // 43 characters have two bits to spare; another spelling of the same bytes is another token.
        #expect(Base64URL.decode(text)?.count == 32)
    }

    @Test("a former secret still makes the tokens it made, another one none of them")
    func rotation() throws {
        let (seed, hash) = MailedToken(keys: try SigningKeys([key])).make(random: SystemRandom())
        #expect(MailedToken(keys: try SigningKeys([other, key])).text(seed: seed, hash: hash) != nil)
        #expect(MailedToken(keys: try SigningKeys([other])).text(seed: seed, hash: hash) == nil)
        #expect(MailedToken(keys: try SigningKeys([key])).text(seed: Array(seed.reversed()), hash: hash) == nil)
    }

    @Test("what cannot be a token has no hash", arguments: ["", "x", String(repeating: "A", count: 42), "é"])
    func refused(text: String) {
        #expect(MailedToken.hash(of: text) == nil)
        #expect(MailedToken.hash(of: String(repeating: "A", count: 42) + "=") == nil)
        #expect(MailedToken.hash(of: String(repeating: "A", count: 44)) == nil)
    }
}

import Testing

@testable import Crypto

@Suite struct PasswordHasherTests {
    /// Cheap, so that the tests are quick.
    static let cheap = PasswordHasher.Parameters(memoryKiB: 64, iterations: 1, lanes: 1)
    let hasher = PasswordHasher(parameters: cheap)

    @Test("the reference implementation's own vector verifies")
    func vector() throws {
        let stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
        #expect(try hasher.verify("password", against: stored))
        #expect(try !hasher.verify("passwore", against: stored))
    }

    @Test("a hash verifies its password and no other, and two hashes of one password differ")
    func roundTrip() throws {
        let stored = try hasher.hash("correct horse")
        #expect(stored.hasPrefix("$argon2id$v=19$m=64,t=1,p=1$"))
        #expect(try hasher.verify("correct horse", against: stored))
        #expect(try !hasher.verify("correct horsf", against: stored))
        #expect(try !hasher.verify("", against: stored))
        #expect(try hasher.hash("correct horse") != stored)
    }

    @Test("the standard is 19 MiB, two passes, one lane, and works")
    func standard() throws {
        let standard = PasswordHasher()
        let stored = try standard.hash("password")
        #expect(stored.hasPrefix("$argon2id$v=19$m=19456,t=2,p=1$"))
        #expect(try standard.verify("password", against: stored))
        #expect(!standard.needsRehash(stored))
        #expect(hasher.needsRehash(stored))
        try standard.verifyUnknown("password")
    }

    @Test("bytes after a zero count, and one letter typed in two ways is one password")
    func bytes() throws {
        let zero = try hasher.hash("pass\0word")
        #expect(try !hasher.verify("pass\0worse", against: zero))
        let composed = try hasher.hash("caf\u{E9}")
        #expect(try hasher.verify("cafe\u{301}", against: composed))
    }

    @Test("a password of 1024 bytes is taken, one of 1025 is refused and verifies nothing")
    func length() throws {
        let longest = String(repeating: "x", count: 1024)
        let stored = try hasher.hash(longest)
        #expect(try hasher.verify(longest, against: stored))
        #expect(throws: PasswordError.tooLong) { try hasher.hash(longest + "x") }
        #expect(try !hasher.verify(longest + "x", against: stored))
    }

    @Test(
        "a stored text that is no argon2id hash of ours is a fault, not a wrong password",
        arguments: [
            "", "password", "$argon2id$", "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=999999,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=256,t=2,p=1$$",
            "$argon2id$v=19$m=256,t=2,p=1$!!!!$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
        ])
    func malformed(stored: String) {
        #expect(throws: PasswordError.malformedHash) { try hasher.verify("password", against: stored) }
        #expect(hasher.needsRehash(stored))
    }
}

import Testing

@testable import Crypto

@Suite struct UnsubscribeTokenTests {
    let tokens = UnsubscribeToken(keys: try! SigningKeys([key]))

    @Test("a token names its alert", arguments: [1, 7, 1_000_000, Int64.max])
    func roundTrip(alert: Int64) {
        let token = tokens.make(alertID: alert)
        #expect(token.utf8.count == UnsubscribeToken.characters)
        #expect(tokens.check(token) == alert)
    }

    @Test("a token of a former key is taken, one of a foreign key is not")
    func keys() throws {
        let rotated = UnsubscribeToken(keys: try SigningKeys([otherKey, key]))
        #expect(rotated.check(tokens.make(alertID: 7)) == 7)
        #expect(tokens.check(rotated.make(alertID: 7)) == nil)
    }

    @Test("every changed character is refused, and so is every other length")
    func forged() {
        let token = tokens.make(alertID: 7)
        for index in token.indices {
            var changed = token
            changed.replaceSubrange(index...index, with: token[index] == "A" ? "B" : "A")
            #expect(tokens.check(changed) == nil)
        }
        for bad in ["", "A", token + "A", String(token.dropLast()), token + "=", " " + token.dropFirst()] {
            #expect(tokens.check(bad) == nil)
        }
    }

    @Test("another alert's number with this one's code is refused")
    func swapped() {
        let seven = tokens.make(alertID: 7)
        let eight = tokens.make(alertID: 8)
        #expect(tokens.check(String(eight.prefix(11)) + seven.dropFirst(11)) == nil)
    }
}

import Core
import Testing

@Suite("Accounts")
struct UserTests {
    @Test("e-mail addresses are lower-cased, and checked for their shape")
    func emails() throws {
        #expect(try User.acceptEmail(" Jane.Doe+jobs@Example.ORG ") == "jane.doe+jobs@example.org")
        #expect(try User.acceptEmail("a@b.co") == "a@b.co")
        #expect(try User.acceptEmail("grüße@exämple.de") == "grüße@exämple.de")
        for bad in [
            "", "a", "@example.org", "a@", "a@b", "a@@b.org", "a@b@c.org", "a@.org", "a@org.", "a@b..org",
            "a b@c.org", "a@b.org\r\nBcc: x@y.org", "<a@b.org>", "a,b@c.org", "a;b@c.org", "a@b.o\u{0}rg",
            "a\u{200B}b@c.org", "a\u{202E}b@c.org", "a\u{A0}b@c.org", "\"a b\"@c.org", "a@[127.0.0.1]",
        ] {
            #expect(refusal { try User.acceptEmail(bad) }?.message == "email must be a valid email", "\(bad)")
        }
    }

    @Test("the ends of an e-mail address's length are those of the schema")
    func emailLengths() {
        let longest = String(repeating: "a", count: 64) + "@" + String(repeating: "b", count: 185) + ".org"
        #expect(longest.utf8.count == 254)
        #expect(refusal { try User.acceptEmail(longest) } == nil)
        #expect(refusal { try User.acceptEmail("a" + longest) } != nil)
        // Six octets, but five characters: the CHECK counts characters.
        #expect(refusal { try User.acceptEmail("é@b.c") } != nil)
        // The schema would take 254 characters; a mail server counts octets.
        let wide = "a@" + String(repeating: "ä", count: 200) + ".org"
        #expect(refusal { try User.acceptEmail(wide) } != nil)
    }

    @Test("names have something to see, no @, and 3 to 50 characters")
    func usernames() throws {
        #expect(try User.acceptUsername("jane_doe") == "jane_doe")
        #expect(try User.acceptUsername("Ян Ковач") == "Ян Ковач")
        for bad in [
            "ab", "a@b", "jane\u{200B}doe", "jane\u{202E}doe", "jane\u{A0}doe", "jane\u{3000}doe", "jane\ndoe",
            "\u{2066}jane", "jane\u{E0001}", String(repeating: "a", count: 51),
        ] {
            #expect(refusal { try User.acceptUsername(bad) }?.code == .invalid, "\(bad)")
        }
    }

    @Test("passwords have 6 characters to 1024 bytes, and are not trimmed")
    func passwords() throws {
        #expect(try User.acceptPassword(" 12345") == " 12345")
        #expect(refusal { try User.acceptPassword("12345") }?.issues.first?.path == ["password"])
        #expect(refusal { try User.acceptPassword(String(repeating: "a", count: 1024)) } == nil)
        #expect(refusal { try User.acceptPassword(String(repeating: "a", count: 1025)) } != nil)
        #expect(refusal { try User.acceptPassword("12345\u{0}7") } != nil)
    }

    @Test("time zones are IANA names, whose sign nobody reads the other way round")
    func timeZones() throws {
        for good in ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia", "America/Argentina/Buenos_Aires"] {
            #expect(try User.acceptTimeZone(good) == good)
        }
        for bad in [
            "", "Europe/Nowhere", "GMT+5", "Etc/GMT+5", "+05:00", "PST8PDT", "../etc/passwd", "Europe/Ber\u{0}",
        ] {
            #expect(refusal { try User.acceptTimeZone(bad) }?.issues.first?.path == ["time_zone"], "\(bad)")
        }
    }

    @Test("a draft and a change pass the same rules")
    func draftAndChange() throws {
        let draft = try User.Draft(username: " jane ", email: "J@Example.org", password: "secret", firstName: " Jane ")
        #expect(draft.username == "jane" && draft.email == "j@example.org" && draft.firstName == "Jane")
        let change = try User.Change(username: " jane ", email: "J@Example.org")
        #expect(change.username == "jane" && change.email == "j@example.org" && change.firstName == nil)
        let long = String(repeating: "a", count: 256)
        #expect(
            refusal { try User.Draft(username: "jane", email: "j@example.org", password: "secret", lastName: long) }
                != nil)
        #expect(refusal { try User.Change(lastName: long) }?.issues.first?.path == ["last_name"])
        #expect(refusal { try User.Change(phoneNumber: "1\n2") }?.issues.first?.path == ["phone_number"])
        #expect(refusal { try User.Change(username: "a@b") } != nil)
        #expect(refusal { try User.Change(email: "a@b") } != nil)
    }
}

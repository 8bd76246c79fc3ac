import Core
import Testing

@Suite("Applications, companies, rooms and files")
struct ApplicationTests {
    @Test("of all moves these are allowed, and no other")
    func moves() {
        var allowed: Set<String> = []
        for from in Application.Status.allCases {
            for to in Application.Status.allCases where Application.mayMove(from: from, to: to) {
                allowed.insert("\(from) \(to)")
            }
        }
        #expect(
            allowed == [
                "initiated accepted", "initiated declined", "declined accepted", "initiated withdrawn",
                "accepted withdrawn",
            ])
    }

    @Test("the company decides, the applicant withdraws, and nobody does the other's part")
    func sides() {
        for status in [Application.Status.accepted, .declined] {
            #expect(Application.mayAsk(for: status, company: true, applicant: false))
            #expect(!Application.mayAsk(for: status, company: false, applicant: true))
        }
        #expect(Application.mayAsk(for: .withdrawn, company: false, applicant: true))
        #expect(!Application.mayAsk(for: .withdrawn, company: true, applicant: false))
        #expect(!Application.mayAsk(for: .initiated, company: true, applicant: true))
    }

    @Test("a company's card passes the rules of its fields")
    func companies() throws {
        let draft = try Company.Draft(
            name: " Acme ", email: "Jobs@Acme.example", bio: "One\nTwo", website: "https://acme.example")
        #expect(draft.name == "Acme" && draft.email == "jobs@acme.example" && draft.bio == "One\nTwo")
        #expect(refusal { try Company.Draft(name: "") }?.issues.first?.path == ["name"])
        #expect(refusal { try Company.Draft(name: "A\nB") } != nil)
        #expect(refusal { try Company.Draft(name: "A", email: "nonsense") } != nil)
        #expect(refusal { try Company.Draft(name: "A", phone: String(repeating: "1", count: 256)) } != nil)
        #expect(refusal { try Company.Draft(name: "A", bio: String(repeating: "a", count: 10_001)) } != nil)
        #expect(refusal { try Company.Draft(name: "A", website: "javascript:alert(1)") } != nil)
    }

    @Test("the parts of a room's name split by _, whatever the names have")
    func wireNames() {
        #expect(Room.wireName(representative: "bob", room: Room.ID(7), applicant: "jane") == "bob_7_jane")
        let name = Room.wireName(representative: "_b_", room: Room.ID(7), applicant: "x_jim")
        #expect(name == "\u{2010}b\u{2010}_7_x\u{2010}jim")
        #expect(name.split(separator: "_").count == 3)
        #expect(Room.id(inWireName: name) == Room.ID(7))
    }

    @Test(
        "names that would swallow the separator beside them split by characters and by bytes",
        arguments: [
            "\u{301}jane", "_\u{301}", "a_\u{301}b", "\u{20DD}", "jane\u{D4E}", "\u{D4E}", "🇩", "👩‍🚀", "\u{1F3FD}x", "ｶﾞ",
            #""\/'"#, "  _ ", "1_2", "__",
        ])
    func hostileNames(name: String) {
        let wire = Room.wireName(representative: name, room: Room.ID(7), applicant: name)
        let parts = wire.split(separator: "_", omittingEmptySubsequences: false)
        #expect(parts.count == 3 && parts[1] == "7", "\(parts)")
        #expect(wire.components(separatedBy: "_").count == 3)
        #expect(wire.utf8.count { $0 == UInt8(ascii: "_") } == 2)
        // What is shown of the name is the name.
        let shown = parts[2].filter { $0 != "\u{25CC}" }.unicodeScalars.filter { $0 != "\u{25CC}" }
        #expect(
            String(shown) == String(String.UnicodeScalarView(name.unicodeScalars.map { $0 == "_" ? "\u{2010}" : $0 })))
    }

    @Test(
        "what has not the shape of a wire name has no id",
        arguments: ["", "a_b", "a_7", "a_7_b_c", "a__b", "a_x_b", "7", "a_0_b", "a_-7_b", "a_7 _b"])
    func noWireNames(name: String) { #expect(Room.id(inWireName: name) == nil) }

    @Test("a message has a client's id and a body within bounds, and no NUL")
    func messages() throws {
        func draft(id: String = "1", body: String = "hello") throws -> Message.Draft {
            try Message.Draft(roomID: Room.ID(1), senderID: User.ID(1), clientID: id, body: body)
        }
        #expect(try draft(body: " a\nb ").body == " a\nb ")
        #expect(refusal { try draft(body: String(repeating: "a", count: 65_536)) } == nil)
        #expect(refusal { try draft(body: String(repeating: "a", count: 65_537)) } != nil)
        #expect(refusal { try draft(body: String(repeating: "€", count: 21_846)) } != nil)
        #expect(refusal { try draft(body: "a\u{0}b") } != nil)
        #expect(refusal { try draft(body: "") } != nil)
        #expect(refusal { try draft(id: "") } != nil)
        #expect(refusal { try draft(id: String(repeating: "a", count: 65)) } != nil)
        #expect(refusal { try draft(id: "a\u{0}") } != nil)
    }

    @Test("a file needs no words, a deletion has none, and an edit is one; numbers are above 0")
    func contents() throws {
        func refused(_ content: Message.Draft.Content) -> Bool {
            refusal {
                try Message.Draft(roomID: Room.ID(1), senderID: User.ID(1), clientID: "i", content: content)
            } != nil
        }
        #expect(!refused(.text("", media: Media.ID(1))) && !refused(.edit(1, "a")) && !refused(.delete(1)))
        #expect(refused(.text("", media: nil)) && refused(.text("a", media: Media.ID(0))))
        #expect(refused(.edit(1, "")) && refused(.edit(0, "a")) && refused(.delete(0)) && refused(.delete(-1)))
        #expect(refused(.edit(1, "a\u{0}")) && refused(.edit(1, String(repeating: "a", count: 65_537))))
    }

    @Test(
        "names of files lose folders, what cannot be seen, and what is too long, and are never refused",
        arguments: [
            ("cv.pdf", "cv.pdf"), ("../../etc/passwd", "passwd"), (#"C:\Users\me\cv.pdf"#, "cv.pdf"), ("", "file"),
            ("..", "file"), ("a\u{0}b.pdf", "ab.pdf"), ("cv\u{202E}fdp.exe", "cvfdp.exe"), ("cv\r\n.pdf", "cv.pdf"),
            ("Lebenslauf Müller 📄.pdf", "Lebenslauf Müller 📄.pdf"), ("CON", "CON"), ("/", "file"),
            (" .pdf ", ".pdf"),
        ])
    func fileNames(sent: String, kept: String) {
        #expect(Media.Draft.clean(name: sent) == kept)
    }

    @Test("a file's name and type keep to the lengths of the schema")
    func fileLengths() {
        let draft = Media.Draft(
            kind: .cv, name: String(repeating: "a", count: 300) + ".pdf",
            declaredType: "text/\u{0}html\r\n" + String(repeating: "é", count: 9) + String(repeating: "x", count: 300),
            hash: "cv_0123456789", bytes: 1, sha256: [], storageKey: "up/00/0")
        #expect(draft.name.count == 255 && draft.name.hasSuffix("a.pdf"))
        #expect(draft.declaredType.count == 255 && draft.declaredType.hasPrefix("text/htmlxxx"))
    }
}

import Core
import Testing

@Suite("Texts from outside")
struct TextTests {
    static let line = TextField("name", min: 3, max: 5)
    static let text = TextField("bio", max: 20, multiline: true)

    @Test("lengths count Unicode scalars after trimming, at both ends")
    func lengths() throws {
        #expect(try Self.line.accept(" abc\n") == "abc")
        #expect(try Self.line.accept("äöü€𝄞") == "äöü€𝄞")
        #expect(refusal { try Self.line.accept("ab") }?.message == "name must have at least 3 characters.")
        #expect(refusal { try Self.line.accept("abcdef") }?.message == "name is limited to 5 characters; this has 6.")
        #expect(refusal { try Self.line.accept("   ") }?.message == "name is required.")
        // One character for a reader, but two scalars, as PostgreSQL's char_length counts.
        #expect(refusal { try Self.line.accept("abcde\u{301}") } != nil)
    }

    @Test("control characters are refused, and ends of lines where there is one line")
    func controls() throws {
        #expect(try Self.text.accept("a\r\nb\tc\u{2028}d") == "a\r\nb\tc\u{2028}d")
        for bad in ["a\u{0}b", "a\u{1B}b", "a\u{7F}b", "a\u{9B}b"] {
            #expect(
                refusal { try Self.text.accept(bad) }?.issues == [
                    AppError.Issue(path: ["bio"], message: "bio may not have control characters.")
                ])
        }
        for bad in ["a\nb", "a\tb", "a\u{85}b", "a\u{2028}b", "a\u{2029}b"] {
            #expect(refusal { try Self.line.accept(bad) }?.code == .invalid)
        }
    }

    @Test("links are http or https with a host")
    func links() throws {
        let field = TextField("website", max: 40)
        #expect(try WebLink.accept("https://example.org/a?b=c", field: field) == "https://example.org/a?b=c")
        #expect(try WebLink.accept("", field: field) == "")
        for bad in ["javascript:alert(1)", "ftp://example.org", "https://", "example.org", "//example.org", "http:x"] {
            #expect(refusal { try WebLink.accept(bad, field: field) }?.code == .invalid, "\(bad)")
        }
    }

    @Test("ids in paths are decimal numbers above zero that fit")
    func identifiers() {
        #expect(User.ID(text: "7") == User.ID(7))
        #expect(User.ID(text: "9223372036854775807")?.value == .max)
        for bad in ["", "0", "-1", "+1", "1.0", " 1", "9223372036854775808", "１", "0x1", "1\u{0}"] {
            #expect(User.ID(text: bad) == nil, "\(bad)")
        }
    }
}

/// The error of a rule that was broken, nil when the value passed.
func refusal<T>(_ body: () throws -> T) -> AppError? {
    do {
        _ = try body()
        return nil
    } catch { return error as? AppError }
}

import Testing

@testable import SafeHTML

@Suite struct TextTests {
    @Test("text has an empty line between paragraphs, and bullets or numbers before items")
    func text() {
        let html = """
            <h1>Engineer</h1><p>We   build&nbsp;things.<br>Daily.</p><ul><li>Swift</li><li>SQL<ol><li>one</li>
            <li>two</li></ol></li></ul><p>Apply &amp; <a href="https://x.org">come</a></p><script>no</script>
            """
        #expect(
            SafeHTML.text(html) == """
                Engineer

                We build\u{A0}things.
                Daily.

                • Swift
                • SQL
                  1. one
                  2. two

                Apply & come
                """)
        #expect(SafeHTML.text("") == "")
        #expect(SafeHTML.text("just text") == "just text")
    }

    @Test("entities are decoded exactly once")
    func unescape() throws {
        #expect(SafeHTML.unescapeOnce("&lt;p&gt;a &amp;amp; b&lt;/p&gt;") == "<p>a &amp; b</p>")
        #expect(SafeHTML.unescapeOnce("&amp;lt;") == "&lt;")
        #expect(SafeHTML.unescapeOnce("&quot;&#39;&#x27;&hellip;&nbsp;&euro;") == "\"''…\u{A0}€")
        #expect(SafeHTML.unescapeOnce("AT&T &copy 2026 &unknown;") == "AT&T © 2026 &unknown;")
        #expect(SafeHTML.unescapeOnce("<b>already</b> &lt;i&gt;") == "<b>already</b> <i>")
        #expect(SafeHTML.unescapeOnce("  \n a ") == "  \n a ")
        #expect(SafeHTML.unescapeOnce("") == "")
        let large = String(repeating: "&lt;p&gt;x", count: 100_000)
        #expect(SafeHTML.unescapeOnce(large) == String(repeating: "<p>x", count: 100_000))
    }

    @Test("an escaped posting is unescaped, then sanitised")
    func greenhouse() throws {
        let content = "&lt;p&gt;R&amp;amp;D &lt;strong&gt;team&lt;/strong&gt;&lt;/p&gt;&lt;script&gt;x&lt;/script&gt;"
        #expect(try SafeHTML.sanitise(SafeHTML.unescapeOnce(content)) == "<p>R&amp;D <strong>team</strong></p>")
    }

    @Test("plain text is escaped and keeps its paragraphs and lines")
    func plainText() throws {
        let output = SafeHTML.fromPlainText("a <b> & \"c\"\r\nnext\r\n\r\n  \r\nlast\n")
        #expect(output == "<p>a &lt;b&gt; &amp; &quot;c&quot;<br>next</p><p>last</p>")
        #expect(try SafeHTML.sanitise(output) == output)
        #expect(SafeHTML.fromPlainText("") == "")
    }
}

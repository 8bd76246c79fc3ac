import Seeded
import Testing

@testable import SafeHTML

@Suite("Text of safe HTML")
struct SafeTextTests {
    @Test(
        "the words, with paragraphs, breaks, bullets and numbers",
        arguments: [
            ("<p>R&amp;D, a &lt; b</p>", "R&D, a < b"), ("<p>a<br>b</p><p>c</p>", "a\nb\n\nc"),
            ("<ul><li>one</li><li>two</li></ul><p>end</p>", "• one\n• two\n\nend"),
            ("<ol><li>one</li><li>two</li></ol>", "1. one\n2. two"),
            (
                "<p><a href=\"https://x.example/?a=1&amp;b=&gt;\" rel=\"ugc\">link</a> &amp;lt; &quot;q&quot;</p>",
                "link &lt; \"q\""
            ),
            ("<p>a </p><p>b</p>", "a \n\nb"), ("<ul><li><p>a</p></li></ul>", "• a"),
            ("<h2>Title</h2><p>Text</p>", "Title\n\nText"), ("", ""),
            ("plain &", "plain &"), ("<p", ""),
            ("a<b>c</b>d", "acd"),
            ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "• a\n• b\n• c"),
        ])
    func words(html: String, text: String) {
        #expect(SafeHTML.text(ofSafe: html) == text)
    }

    @Test(
        "plain text comes back as it was",
        arguments: [
            "R&D, a < b", "one\ntwo\n\nthree", "quotes \" and ' and &amp; itself", "<p>not a tag</p>",
        ])
    func roundTrip(text: String) {
        #expect(SafeHTML.text(ofSafe: SafeHTML.fromPlainText(text)) == text)
    }

    @Test("any HTML's words are those that the parser finds, once it is safe")
    func sameWords() throws {
        var random = SeededGenerator(seed: 7)
        let pieces = [
            "<p>", "</p>", "<ul>", "<li>", "</li>", "</ul>", "<b>", "</b>", "<br>", "word ", "&amp;", "<", "é😀",
            "&lt;i>",
        ]
        for _ in 0..<500 {
            let html = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            let safe = try SafeHTML.sanitise(html)
            let fast = SafeHTML.text(ofSafe: safe).split(whereSeparator: \.isWhitespace).joined()
            let slow = SafeHTML.text(safe).split(whereSeparator: \.isWhitespace).joined()
            #expect(fast.filter { $0 != "•" } == slow.filter { $0 != "•" && $0 != "-" }, "\(safe)")
        }
    }
}

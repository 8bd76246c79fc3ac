import Foundation
import Seeded
import Testing

@testable import SafeHTML

@Suite struct AttackTests {
    @Test(
        "known attacks come out as plain allowed HTML",
        arguments: [
            "<script>alert(1)</script>", "<SCRIPT SRC=//x></SCRIPT>", "<scr<script>ipt>alert(1)</scr</script>ipt>",
            "<img src=x onerror=alert(1)>", "<img src=`javascript:alert(1)`>",
            "<IMG \"\"\"><SCRIPT>alert(1)</SCRIPT>\">",
            "<svg onload=alert(1)>", "<svg><script>alert(1)</script></svg>", "<svg><style><img src=x onerror=alert(1)>",
            "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
            "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
            "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<textarea><img title=\"</textarea><img src onerror=alert(1)>\">",
            "<template><script>alert(1)</script></template>",
            "<iframe src=javascript:alert(1)></iframe>", "<iframe srcdoc='<script>alert(1)</script>'>",
            "<object data=javascript:alert(1)>", "<embed src=javascript:alert(1)>", "<base href=javascript:alert(1)//>",
            "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
            "<link rel=stylesheet href=javascript:alert(1)>",
            "<body onload=alert(1)>", "<input autofocus onfocus=alert(1)>", "<details open ontoggle=alert(1)>",
            "<div style='background:url(javascript:alert(1))'>x</div>", "<p style=\"width:expression(alert(1))\">x",
            "<a href=https://x.org onmouseover=alert(1)>x</a>", "<a href='https://x.org\"onmouseover=alert(1)'>x</a>",
            "<a href=https://x.org/><b/onclick=alert(1)>x", "<!--[if IE]><script>alert(1)</script><![endif]-->",
            "<!--><script>alert(1)</script>-->", "<!-- --!><script>alert(1)</script>",
            "<![CDATA[<script>alert(1)</script>]]>",
            "<?xml version=1?><script>alert(1)</script>", "<!DOCTYPE html [<!ENTITY x '<script>'>]>&x;",
            "&lt;script&gt;alert(1)&lt;/script&gt;", "&amp;lt;script&amp;gt;", "<<script>alert(1)//<</script>",
            "<script\0>alert(1)</script>", "<\0script>alert(1)</script>", "<script/x>alert(1)</script>",
            "</script><script>",
            "<plaintext><script>alert(1)", "<xmp><script>alert(1)</script></xmp>",
            "<frameset onload=alert(1)><frame src=x>",
            "<marquee onstart=alert(1)>x</marquee>", "<isindex action=javascript:alert(1) type=image>", "<image src=x>",
            "<p><a href=\"https://x.org/</p><script>alert(1)</script>\">x</a>", "<a", "<a href", "<a href=",
            "<a href=\"", "<",
            "<!", "<!--", "</", "&", "&#", "&#x", "&#x110000;", "&#xD800;", "&#0;",
        ])
    func attacks(html: String) throws {
        let output = try SafeHTML.sanitise(html)
        #expect(fault(in: output) == nil, "\(output)")
        #expect(try SafeHTML.sanitise(output) == output)
        _ = SafeHTML.text(html)
    }

    @Test(
        "nesting without end neither overflows the stack nor takes long: it is refused, and its words can still be had",
        arguments: [
            "<div>", "<b>", "<ul><li>", "<a href=https://x.org>", "<table><tr><td>", "<font size=1>", "</p>", "<svg>",
        ])
    func deep(unit: String) throws {
        let html = String(repeating: unit, count: 1 << 20 / unit.utf8.count) + "word"
        #expect(throws: SafeHTML.Failure.tooLarge) { try SafeHTML.sanitise(html) }
        var large = SafeHTML.Limits()
        large.bytesMax = 2 << 20
        #expect(throws: SafeHTML.Failure.tooManyTags) { try SafeHTML.sanitise(html, limits: large) }
        #expect(SafeHTML.text(html, limits: large) == "word")
    }

    @Test(
        "as deep as the limits allow is done, and stays idempotent", arguments: ["<div>", "<b>", "<ul><li>", "<p><i>"])
    func deepestAllowed(unit: String) throws {
        let html = String(repeating: unit + "x", count: 4_000)
        let output = try SafeHTML.sanitise(html)
        #expect(output.filter { $0 == "x" }.count == 4_000)
        #expect(fault(in: output) == nil)
    }

    @Test("30,000 nested elements do not overflow the stack when the limits let them in")
    func deeperThanTheStack() throws {
        var limits = SafeHTML.Limits()
        limits.bytesMax = 4 << 20
        limits.tagsMax = 100_000
        let html = String(repeating: "<b>", count: 30_000) + "x"
        #expect(try SafeHTML.sanitise(html, limits: limits) == "<p><b>x</b></p>")
    }

    @Test("misnested formatting that would make the parser copy without end is refused")
    func copies() {
        let fonts = (0..<4_000).map { "<font size=\($0)>" }.joined()
        // Each new paragraph ends the fonts, and each text opens all of them again: 16 million elements.
        let html = "<p>" + fonts + String(repeating: "<p>x", count: 4_000)
        #expect(throws: SafeHTML.Failure.tooComplex) { _ = try SafeHTML.sanitise(html) }
        #expect(SafeHTML.text(html).contains("x"))
    }

    @Test("200 attributes pass, more are refused, in quotation marks or not")
    func attributes() throws {
        let many = (0..<200).map { "a\($0)=\">\"" }.joined(separator: " ")
        #expect(try SafeHTML.sanitise("<p \(many)>x</p>") == "<p>x</p>")
        #expect(throws: SafeHTML.Failure.tooManyTags) { try SafeHTML.sanitise("<p \(many) b=1>x</p>") }
        let bare = String(repeating: "a ", count: 100_000)
        #expect(throws: SafeHTML.Failure.tooManyTags) { try SafeHTML.sanitise("<p \(bare)>x</p>") }
    }

    @Test("a picture of 200 kB in an attribute does not count as tags")
    func dataImage() throws {
        let data = String(repeating: "QUJD", count: 50_000)
        #expect(try SafeHTML.sanitise("<p>a<img src=\"data:image/png;base64,\(data)\">b</p>") == "<p>ab</p>")
    }
}

@Suite("Pages by chance") struct PageFuzz {
    private static let alphabet =
        Array("<>/=\"'&;#!-? \n\tabpi lu0x").map(String.init) + ["\0", "\u{80}", "\u{A0}", "ÿ"]

    @Test("come out allowed, well-formed and idempotent")
    func html() throws {
        try Fuzz("html", rounds: 4_000).run { fuzz in
            let isNoise = fuzz.once(in: 4)
            let html = fuzz.text(of: isNoise ? Self.alphabet : pieces, max: isNoise ? 200 : 24)
            fuzz.input = Array(html.utf8)
            let output = try SafeHTML.sanitise(html)
            try fuzz.check(fault(in: output) == nil, "\(fault(in: output) ?? "") in \(output)")
            let again = try SafeHTML.sanitise(output)
            try fuzz.checkEqual(again, output, "once more")
            _ = SafeHTML.text(html)
            try fuzz.checkEqual(SafeHTML.text(output), SafeHTML.text(again), "the words")
        }
    }
}

private let pieces: [String] =
    [
        "p", "div", "span", "b", "i", "em", "strong", "code", "pre", "ul", "ol", "li", "h1", "h3", "blockquote", "a",
        "table", "tr", "td", "th", "tbody", "caption", "form", "button", "select", "option", "svg", "math", "mtext",
        "foreignObject", "style", "script", "template", "textarea", "title", "nobr", "font", "dl", "dd", "object",
        "marquee",
        "body", "html", "head", "frameset", "ruby", "rt", "listing", "xmp", "details", "summary", "applet",
    ].flatMap { ["<\($0)>", "</\($0)>"] } + [
        "x", " ", "\n", "a b", "\u{A0}", "&nbsp;", "&lt;", "&amp;", "é", "<br>", "<hr>", "<img src=x>", "<!-- c -->",
        "<a href='https://x.org/?a=b&c'>", "<a href=mailto:a@b.c>", "<a href=javascript:x>", "<p/>", "<br/>",
        "<![CDATA[y]]>",
        "<input>", "&", "<", ">", "\"", "\u{1}", "\0", "z\u{A0}", "\u{A0}w", "<li><p>", "<ul><li>", "</ul>",
        "<pre>\n\n", "\t",
    ]

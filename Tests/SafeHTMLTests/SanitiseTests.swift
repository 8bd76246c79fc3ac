import Testing

@testable import SafeHTML

@Suite struct SanitiseTests {
    @Test(
        "what a posting is written in is kept, in one canonical form",
        arguments: [
            ("<p>Hello <b>you</b></p>", "<p>Hello <b>you</b></p>"),
            ("Hello<br>you", "<p>Hello<br>you</p>"),
            ("<h1>Title</h1><h3 class=x>Sub</h3>", "<h2>Title</h2><h3>Sub</h3>"),
            ("<ul><li>One<li>Two</ul>", "<ul><li>One</li><li>Two</li></ul>"),
            ("<ol><li><p>One</p></li></ol>", "<ol><li><p>One</p></li></ol>"),
            ("<ul><li>A<ul><li>B</li></ul>C</li></ul>", "<ul><li>A<ul><li>B</li></ul>C</li></ul>"),
            ("<ul><ul><li>B</li></ul></ul>", "<ul><li><ul><li>B</li></ul></li></ul>"),
            ("<ul>loose</ul>", "<ul><li>loose</li></ul>"),
            ("<ul><li>a<div>b</div></li></ul>", "<ul><li>a<br>b</li></ul>"),
            ("<blockquote>said</blockquote>", "<blockquote><p>said</p></blockquote>"),
            ("<pre>\n  one\n  two <b>x</b>\n</pre>", "<pre>  one\n  two <b>x</b></pre>"),
            ("<pre>a</pre><pre>b</pre>", "<pre>a</pre><pre>b</pre>"),
            ("<p>a</p><hr><p>b</p>", "<p>a</p><hr><p>b</p>"),
            ("<code>x &lt; y &amp;&amp; z</code>", "<p><code>x &lt; y &amp;&amp; z</code></p>"),
            ("<strong><em>x</em> <i>y</i></strong>", "<p><strong><em>x</em> <i>y</i></strong></p>"),
        ])
    func kept(input: String, output: String) throws {
        #expect(try SafeHTML.sanitise(input) == output)
        #expect(try SafeHTML.sanitise(output) == output)
    }

    @Test(
        "what is not on the list loses its tags and keeps its words apart",
        arguments: [
            ("<div>a</div><div>b</div>", "<p>a</p><p>b</p>"),
            ("<span style='color:red'>a</span><font>b</font>", "<p>ab</p>"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "<p>a b</p><p>c</p>"),
            ("<dl><dt>a</dt><dd>b</dd></dl>", "<p>a</p><p>b</p>"),
            ("<p class='x' onclick='y' style='z' id='w'>a</p>", "<p>a</p>"),
            ("<p>a</p><p>&nbsp;</p><p> </p><p></p><p>b</p>", "<p>a</p><p>b</p>"),
            ("<b>a<p>b</p>c</b>", "<p><b>a</b></p><p><b>b</b></p><p><b>c</b></p>"),
            ("<b></b><i> </i>a", "<p>a</p>"),
            ("a<img src=x onerror=alert(1)>b", "<p>ab</p>"),
            ("<h2><p>a</p></h2>", "<h2>a</h2>"),
            ("<li>stray</li>", "<p>stray</p>"),
            ("<br><br>a<br><br><br><br>b<br>", "<p>a<br><br>b</p>"),
            ("  a \n\t b  ", "<p>a b</p>"),
            ("<p>a<b> b</b> c</p>", "<p>a <b>b</b> c</p>"),
            ("<custom-tag>a</custom-tag>", "<p>a</p>"),
            ("a\u{200B}b\u{7}c&#x85;d", "<p>abc…d</p>"),
            ("", ""),
            ("   ", ""),
        ])
    func unwrapped(input: String, output: String) throws {
        #expect(try SafeHTML.sanitise(input) == output)
        #expect(try SafeHTML.sanitise(output) == output)
    }

    @Test(
        "active and foreign content goes with all that is in it",
        arguments: [
            "script", "style", "iframe", "object", "embed", "applet", "noscript", "noembed", "noframes", "template",
            "svg",
            "math", "title", "textarea", "select", "video", "audio", "canvas", "xmp",
        ])
    func dropped(tag: String) throws {
        #expect(try SafeHTML.sanitise("<p>a</p><\(tag)>evil</\(tag)><p>b</p>").contains("evil") == (tag == "embed"))
    }

    @Test(
        "absolute http, https and mail links are kept and marked",
        arguments: [
            ("https://example.org/?a=1&amp;b=2", "https://example.org/?a=1&amp;b=2"),
            ("HTTP://example.org", "HTTP://example.org"),
            ("  https://example.org\n/x ", "https://example.org/x"),
            ("mailto:jobs@example.org", "mailto:jobs@example.org"),
            ("https://example.org/&quot;onclick=", "https://example.org/&quot;onclick="),
        ])
    func links(href: String, written: String) throws {
        let output = try SafeHTML.sanitise("<a href=\"\(href)\" target=_top onclick=x>go</a>")
        #expect(output == "<p><a href=\"\(written)\" rel=\"noopener nofollow ugc\">go</a></p>")
        #expect(try SafeHTML.sanitise(output) == output)
    }

    @Test(
        "every other address is dropped and its words stay",
        arguments: [
            "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#10;script:alert(1)", "java\tscript:alert(1)",
            "&#x6A;avascript:alert(1)", "&#0000106avascript:alert(1)", " javascript:alert(1)",
            "\u{1}javascript:alert(1)",
            "javascript&colon;alert(1)", "jav&Tab;ascript:alert(1)", "data:text/html,<script>alert(1)</script>",
            "vbscript:msgbox(1)", "file:///etc/passwd", "//example.org", "/relative", "?q", "#top", "", "https:",
            "https://",
            "https:///x", "http:example.org", "https:\\\\example.org", "https://exa mple.org", "tel:+123", "ftp://x",
            "blob:https://example.org/x", "view-source:https://example.org",
        ])
    func refusedLinks(href: String) throws {
        let quoted = href.replacing("\"", with: "&quot;")
        #expect(try SafeHTML.sanitise("<a href=\"\(quoted)\">go</a>") == "<p>go</p>")
    }

    @Test("a link of 2048 bytes is kept, one of 2049 is dropped")
    func longLink() throws {
        let address = "https://" + String(repeating: "a", count: 2_040)
        #expect(try SafeHTML.sanitise("<a href='\(address)'>go</a>").contains("<a href"))
        #expect(try SafeHTML.sanitise("<a href='\(address)a'>go</a>") == "<p>go</p>")
    }

    @Test("links do not nest, and neighbours to one place become one")
    func nestedLinks() throws {
        let output = try SafeHTML.sanitise("<a href=https://a.org>1<table><a href=https://b.org>2</a></table></a>")
        #expect(fault(in: output) == nil)
        #expect(try SafeHTML.sanitise(output) == output)
    }

    @Test("lists deeper than the limit keep their words and lose their nesting")
    func nesting() throws {
        let deep = String(repeating: "<ul><li>x", count: 100)
        let output = try SafeHTML.sanitise(deep)
        #expect(output.components(separatedBy: "<ul>").count - 1 == 8)
        #expect(output.filter { $0 == "x" }.count == 100)
        #expect(fault(in: output) == nil)
        #expect(try SafeHTML.sanitise(output) == output)
    }
}

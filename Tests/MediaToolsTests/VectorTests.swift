import Foundation
import Testing

@testable import MediaTools

/// Which drawings are drawn.
@Suite struct VectorTests {
    private func refusal(_ svg: String) -> Rejection? {
        do throws(Rejection) {
            _ = try Vector(Array(svg.utf8))
            return nil
        } catch {
            return error
        }
    }

    private func drawing(_ content: String, before: String = "") -> String {
        before + "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
            + "width=\"10\" height=\"10\">\(content)</svg>"
    }

    @Test(
        "what a drawing program writes is taken",
        arguments: [
            "<rect width=\"10\" height=\"10\"/>", "<script>alert(1)</script><g onclick=\"x()\"/>",
            "<g id=\"a\"/><use href=\"#a\"/><use xlink:href=\" #a\"/>",
            "<linearGradient id=\"a\"/><rect fill=\"url(#a)\" style=\"stroke: url( '#a' )\"/>",
            "<style>rect { fill: url(#a); }</style><rect class=\"a\"/>",
            "<a href=\"https://example.org/\"><rect width=\"1\" height=\"1\"/></a>",
            "<image xlink:href=\"data:image/png;base64,AAAA\"/>", "<text>url(https://example.org/) @import</text>",
        ])
    func taken(content: String) {
        #expect(refusal(drawing(content)) == nil)
        let type = "<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"svg11.dtd\">"
        #expect(refusal(drawing(content, before: type)) == nil)
    }

    @Test(
        "what refers to anything else is refused, and so are entities",
        arguments: [
            "<use href=\"other.svg#a\"/>", "<image href=\"https://example.org/a.png\"/>",
            "<image xlink:href=\"file:///etc/passwd\"/>", "<image href=\"data:image/svg+xml;base64,AAAA\"/>",
            "<image href=\"data:text/html,x\"/>", "<rect fill=\"url(//example.org/a#b)\"/>",
            "<rect style=\"fill:url( 'a.svg#b' )\"/>", "<style>@import 'a.css';</style>",
            "<style><![CDATA[rect { fill: url(\"https://example.org/a\") }]]></style>",
        ])
    func refused(content: String) {
        #expect(refusal(drawing(content)) == .unsafeImage)
    }

    @Test("a document type with entities, and what is no drawing")
    func types() {
        let bomb = "<!DOCTYPE svg [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
        #expect(refusal(drawing("<text>&b;</text>", before: bomb)) == .unsafeImage)
        #expect(refusal("<svg") == .notAnImage)
        #expect(refusal("<html><svg/></html>") == .notAnImage)
        #expect(refusal("") == .notAnImage)
        #expect(refusal(drawing(String(repeating: " ", count: Vector.bytesMax))) == .unsafeImage)
    }

    @Test("parts count as often as they are drawn, and those that draw themselves not at all")
    func repeats() {
        func tower(_ levels: Int) -> String {
            (0..<levels).map { level in
                "<g id=\"g\(level)\">" + String(repeating: "<use href=\"#g\(level - 1)\"/>", count: 10) + "</g>"
            }.joined()
        }
        // 1 + 10 + 100 + … elements, each level drawn where it stands too.
        #expect(refusal(drawing(tower(4))) == nil)
        #expect(refusal(drawing(tower(5))) == .unsafeImage)
        #expect(refusal(drawing("<g id=\"a\"><use href=\"#b\"/></g><g id=\"b\"><use href=\"#a\"/></g>")) == nil)
        let chain = (0..<2000).map { "<g id=\"c\($0)\"><use href=\"#c\($0 + 1)\"/></g>" }.joined()
        #expect(refusal(drawing(chain)) == .unsafeImage)
    }

    @Test("a small drawing is drawn as large as the largest variant, a large one as it is")
    func scale() {
        #expect(Vector.scale(width: 24, height: 10) * 24 == 1000)
        #expect(Vector.scale(width: 10, height: 500) == 2)
        #expect(Vector.scale(width: 1000, height: 3000) == 1)
    }
}

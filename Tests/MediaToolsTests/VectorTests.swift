import Foundation
import Seeded
import Synchronization
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

    @Test("filters count for more, and lengths that nobody can draw are too many pixels")
    func costs() {
        func filter(_ steps: Int) -> String {
            drawing("<filter id=\"f\">" + String(repeating: "<feOffset/>", count: steps) + "</filter>")
        }
        #expect(refusal(filter(99)) == nil)
        #expect(refusal(filter(100)) == .unsafeImage)
        for (size, result) in [
            ("width='1000000'", nil), ("width='1000001'", Rejection.tooManyPixels),
            ("height='1e9mm'", .tooManyPixels), ("height='10em'", nil), ("viewBox='0 0 10,10'", nil),
            ("viewBox='0 0 10 1e30'", .tooManyPixels), ("width='100%' height='auto'", nil),
        ] {
            #expect(refusal("<svg xmlns='http://www.w3.org/2000/svg' \(size)/>") == result, "\(size)")
        }
    }

    @Test("150 mutilated drawings get an answer each, and the child stays within 256 MiB")
    func fuzz() async throws {
        let scratch = try Scratch()
        let peak = Mutex(0)
        var probe = MediaChildPool.Probe()
        probe.peakKiB = { kib in peak.withLock { $0 = max($0, kib) } }
        var configuration = MediaChildPool.Configuration(executable: workerProgram, roots: [scratch.path])
        configuration.children = 1
        configuration.rasterizesSVG = true
        let pool = MediaChildPool(configuration, probe: probe)
        var generator = SeededGenerator(seed: 27)
        let seeds = [
            "<g id=\"a\"><path d=\"M0 0 L9 9 C1 2 3 4 5 6z\" stroke-width=\"2\"/></g><use href=\"#a\" x=\"3\"/>",
            "<filter id=\"f\"><feOffset dx=\"2\"/></filter><text filter=\"url(#f)\" y=\"9\">Jane &amp;</text>",
            "<mask id=\"m\"><rect width=\"5\" height=\"5\"/></mask><circle r=\"4\" mask=\"url(#m)\" opacity=\".5\"/>",
        ].map { Array(drawing($0).utf8) }
        var drawn = 0
        for round in 0..<150 {
            var bytes = seeds[round % seeds.count]
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                // Mostly numbers, so that most stay well-formed.
                let digits = bytes.indices.filter { (0x30...0x39).contains(bytes[$0]) }
                let index =
                    Int.random(in: 0..<4, using: &generator) == 0
                    ? bytes.indices.randomElement(using: &generator) : digits.randomElement(using: &generator)
                bytes[index ?? 0] = UInt8.random(in: 0x2D...0x39, using: &generator)
            }
            let answer = try await pool.process(scratch.request(scratch.file("fuzz", bytes), kind: .image))
            drawn += answer.image == nil ? 0 : 1
            if answer.image == nil, answer.rejection == nil || answer.rejection == .crashed {
                Issue.record("round \(round): \(answer)")
            }
        }
        await pool.shutdown()
        #expect(drawn > 20 && peak.withLock { $0 } <= 256 << 10, "\(drawn)")
    }

    @Test("a small drawing is drawn as large as the largest variant, a large one as it is")
    func scale() {
        #expect(Vector.scale(width: 24, height: 10) * 24 == 1000)
        #expect(Vector.scale(width: 10, height: 500) == 2)
        #expect(Vector.scale(width: 1000, height: 3000) == 1)
    }
}

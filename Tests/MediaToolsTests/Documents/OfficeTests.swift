import Foundation
import Testing

@testable import MediaTools

@Suite("The text of DOCX and ODT", .serialized) struct OfficeTests {
    let reader: DocumentReader
    private var scratch: Scratch { reader.scratch }

    init() throws { reader = try DocumentReader() }

    private func process(_ bytes: [UInt8]) throws -> MediaAnswer { try reader.process(bytes) }

    private func word(_ file: WordFile) throws -> MediaDocument {
        let answer = try process(file.bytes(in: scratch))
        return try #require(answer.document, "\(answer)")
    }

    @Test("a DOCX gives its header, then its paragraphs, tabs, breaks and table rows")
    func docx() throws {
        let table =
            "<w:tbl>" + WordFile.row(["2018", "Engineer & more"]) + WordFile.row(["2020", "Lead"]) + "</w:tbl>"
        let broken = "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t></w:r></w:p>"
        let tabStops = "<w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr><w:r><w:t>d</w:t></w:r></w:p>"
        let document = try word(
            WordFile(
                body: WordFile.paragraph("Zoë\tPéter") + table + broken + tabStops,
                header: WordFile.paragraph("zoe@example.org")))
        #expect(document.type == .docx && document.textOutcome == .extracted && document.pages == nil)
        #expect(document.text == "zoe@example.org\nZoë\tPéter\n2018\tEngineer & more\n2020\tLead\na\nb-c\nd\n")
        #expect(document.pageOffsets == [0])
    }

    @Test("pages of a DOCX are those its program drew; a break asked for and drawn is one")
    func docxPages() throws {
        let asked = "<w:p><w:r><w:t>one</w:t><w:br w:type=\"page\"/></w:r></w:p>"
        let drawn = "<w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p>"
        let document = try word(WordFile(body: asked + drawn + drawn))
        #expect(document.pageOffsets.count == 3)
        let text = Array(document.text.utf8)
        #expect(String(decoding: text[document.pageOffsets[1]...], as: UTF8.self).hasPrefix("\ntwo\n"))
        #expect(String(decoding: text[document.pageOffsets[2]...], as: UTF8.self) == "two\n")
    }

    @Test("what was deleted, moved away, or is drawn a second time for older programs is left out")
    func docxLeftOut() throws {
        let run = { (text: String) in "<w:r><w:t>\(text)</w:t></w:r>" }
        let body =
            "<w:p><w:del>\(run("no"))</w:del><w:moveFrom>\(run("no"))</w:moveFrom><w:ins>\(run("yes"))</w:ins></w:p>"
            + "<w:p><w:r><mc:AlternateContent><mc:Choice Requires=\"wps\"><w:txbxContent>"
            + WordFile.paragraph("box") + "</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>"
            + WordFile.paragraph("box") + "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"
        #expect(try word(WordFile(body: body)).text.split(separator: "\n") == ["yes", "box"])
    }

    @Test("an address behind a word is kept with the word's place, if a person can follow it")
    func docxLinks() throws {
        let link = { (id: String, text: String) in
            "<w:p><w:hyperlink r:id=\"\(id)\"><w:r><w:t>\(text)</w:t></w:r></w:hyperlink></w:p>"
        }
        var file = WordFile(body: link("a", "Profile") + link("b", "Mail") + link("c", "Bad") + link("d", "None"))
        file.links = ["a": "https://example.org/zoe", "b": "mailto:zoe@example.org", "c": "javascript:alert(1)"]
        let document = try word(file)
        #expect(
            document.links == [
                MediaLink(offset: 0, target: "https://example.org/zoe"),
                MediaLink(offset: 8, target: "mailto:zoe@example.org"),
            ])
    }

    @Test("a DOCX that could harm who opens it is refused with the reason, its nearest neighbour is read")
    func docxRefused() throws {
        let body = WordFile.paragraph("Curriculum")
        let entity = "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]>"
        #expect(
            try process(WordFile(body: body + "<w:p/>", prolog: entity).bytes(in: scratch)).rejection == .unsafeDocument
        )
        #expect(try process(WordFile(body: body, prolog: "<!-- a -->").bytes(in: scratch)).document != nil)
        for name in ["../../etc/cron.d/x", "/etc/x", "word\\..\\..\\x", "C:/x"] {
            let file = WordFile(body: body, more: [(name, [1])])
            #expect(try process(file.bytes(in: scratch)).rejection == .unsafeDocument, "\(name)")
        }
        #expect(try process(WordFile(body: body, more: [("word/..x", [1])]).bytes(in: scratch)).document != nil)
        let nested = { (depth: Int) in
            WordFile(body: String(repeating: "<w:p>", count: depth) + String(repeating: "</w:p>", count: depth))
        }
        #expect(try process(nested(XMLReader.depthMax - 2).bytes(in: scratch)).document != nil)
        #expect(try process(nested(XMLReader.depthMax - 1).bytes(in: scratch)).rejection == .broken)
        #expect(try process(WordFile(body: "<w:p>").bytes(in: scratch)).rejection == .broken)
    }

    @Test("a DOCX that unpacks to too much is refused, by its directory and by what really comes")
    func docxInflates() throws {
        let body = WordFile.paragraph("Curriculum")
        let zeros = [UInt8](repeating: 0, count: 45 << 20)
        let three = WordFile(body: body, more: [("a", zeros), ("b", zeros), ("c", zeros)])
        #expect(try process(three.bytes(in: scratch)).rejection == .inflates)
        #expect(try process(WordFile(body: body, more: [("a", zeros)]).bytes(in: scratch)).document != nil)
        let spaces = String(repeating: " ", count: Archive.partBytesMax)
        #expect(try process(WordFile(body: body + spaces).bytes(in: scratch)).rejection == .inflates)
        let many = (0..<Archive.membersMax).map { ("x/\($0)", [UInt8]()) }
        #expect(try process(WordFile(body: body, more: many).bytes(in: scratch)).rejection == .inflates)
    }

    @Test("a DOCX cut short or with a wrong byte is broken, never a crash")
    func docxDamaged() throws {
        let whole = try WordFile(body: WordFile.paragraph(String(repeating: "Curriculum ", count: 200)))
            .bytes(in: scratch)
        #expect(try process(whole).document != nil)
        for length in stride(from: 40, to: whole.count, by: 37) {
            let reason = try process(Array(whole[..<length])).rejection
            #expect(reason == .broken || reason == .unsupportedType, "\(length)")
        }
        var wrong = whole
        // In the middle of the markup, which is packed.
        let place = try #require(Data(whole).range(of: Data("word/document.xml".utf8))?.upperBound)
        wrong[place + 30] ^= 0xFF
        #expect(try process(wrong).rejection == .broken)
    }

    @Test("an ODT gives its header, spaces, tabs, breaks and rows; a password is told")
    func odt() throws {
        var file = OpenDocumentFile(
            body: "<text:h>Anna<text:s text:c=\"3\"/>Nowak</text:h><text:p>a<text:line-break/>b<text:note-citation>1"
                + "</text:note-citation></text:p><table:table><table:table-row><table:table-cell>"
                + OpenDocumentFile.paragraph("2019") + "</table:table-cell><table:table-cell>"
                + OpenDocumentFile.paragraph("Kraków\tx") + "</table:table-cell></table:table-row></table:table>"
                + "<text:p><text:a xlink:href=\"https://example.org/\">here</text:a></text:p>",
            header: OpenDocumentFile.paragraph("anna@example.org"))
        let document = try #require(try process(file.bytes(in: scratch)).document)
        #expect(document.type == .odt)
        #expect(document.text == "anna@example.org\nAnna   Nowak\na\nb\n2019\tKraków\tx\nhere\n")
        #expect(document.links.map(\.target) == ["https://example.org/"])
        file.manifest =
            "<m:manifest xmlns:m=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\"><m:encryption-data/>"
            + "</m:manifest>"
        #expect(try process(file.bytes(in: scratch)).rejection == .encrypted)
    }
}

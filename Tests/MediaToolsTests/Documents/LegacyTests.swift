import Foundation
import Testing

@testable import MediaTools

@Suite("The text of DOC, RTF and plain text", .serialized) struct LegacyTests {
    let reader: DocumentReader
    private var scratch: Scratch { reader.scratch }

    init() throws { reader = try DocumentReader() }

    private func process(_ bytes: [UInt8]) throws -> MediaAnswer { try reader.process(bytes) }

    @Test("a DOC gives both kinds of pieces, without what fields do, cells and pages as they are")
    func doc() throws {
        let narrow = Array("M\u{FC}ller\rsee ".unicodeScalars.map { UInt8($0.value) })
        let file = LegacyWordFile(
            narrow: narrow + [0x80, 0x0D], wide: "\u{13}HYPERLINK x\u{14}Łódź\u{15}\r2019\u{7}Lead\u{7}\u{7}\u{C}end\r")
        let document = try #require(try process(file.bytes()).document)
        #expect(document.type == .doc && document.textOutcome == .extracted)
        #expect(document.text == "Müller\nsee €\nŁódź\n2019\tLead\nend\n")
        #expect(document.pageOffsets.count == 2)
    }

    @Test("a DOC with a password, one of before 1997, and one without its parts are told apart")
    func docRefused() throws {
        var file = LegacyWordFile(narrow: Array("Curriculum\r".utf8))
        file.flags = 0x0300
        #expect(try process(file.bytes()).rejection == .encrypted)
        file.flags = 0
        #expect(try process(file.bytes()).rejection == .broken)
        (file.flags, file.version) = (0x0200, 0x00C0)
        #expect(try process(file.bytes()).rejection == .tooOld)
        file.version = 0x00C1
        #expect(try process(file.bytes()).document?.text == "Curriculum\n")
        let locked = CompoundWriter(streams: [("EncryptionInfo", [1]), ("EncryptedPackage", [1])]).bytes()
        #expect(try process(locked).rejection == .encrypted)
        #expect(try process(CompoundWriter(streams: [("Workbook", [1])]).bytes()).rejection == .unsupportedType)
    }

    @Test("an RTF gives its text: code pages, numbers with their stand-ins, tables, and nothing of its machinery")
    func rtf() throws {
        let text = #"""
            {\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}{\f1\fcharset238 Arial CE;}}{\colortbl;\red1;}
            {\*\generator Nobody;}{\info{\author Secret}}\f0 M\'fcller \u321?\'f3d\f1\'9f \uc2\u8364EU\uc1 x\par
            {\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt Site}}\line a\emdash b\{c\}\tab d\par
            \trowd 2019\cell Lead\cell\row{\v hidden}\u-10179?\u-8704?{\pict 00ff}\page last}
            """#
        let document = try #require(try process(Array(text.utf8)).document)
        #expect(document.type == .rtf)
        #expect(document.text == "Müller Łódź €x\nSite\na—b{c}\td\n2019\tLead\n😀\nlast")
        #expect(document.pageOffsets.count == 2)
        let deep = #"{\rtf1 "# + String(repeating: "{", count: RichText.depthMax)
        #expect(try process(Array(deep.utf8)).rejection == .broken)
        #expect(try process(Array(deep.dropLast().utf8)).document?.textOutcome == MediaDocument.Text.none)
    }

    @Test(
        "plain text is what it says it is, or what it must be",
        arguments: [
            (Array("a\r\nŁ\u{C}b".utf8), "a\nŁ\nb", 2), (Array("\u{FEFF}a\rb".utf8), "a\nb", 1),
            ([0x4D, 0xFC, 0x6C, 0x6C, 0x65, 0x72], "Müller", 1),
            ([0xFF, 0xFE, 0x41, 0x01, 0x3D, 0xD8, 0x00, 0xDE], "Ł😀", 1), ([0xFE, 0xFF, 0x01, 0x41], "Ł", 1),
        ] as [([UInt8], String, Int)])
    func plain(bytes: [UInt8], text: String, pages: Int) throws {
        let document = PlainText(file: bytes).read(bytesMax: 100).document(.txt, pages: nil)
        #expect(document.text == text && document.pageOffsets.count == pages)
    }

    @Test("text past the limit is cut between characters, in every kind of document")
    func cut() throws {
        var limits = MediaLimits()
        limits.textBytesMax = 5
        let files: [[UInt8]] = [
            Array("abcdŁefgh ijkl".utf8), Array(#"{\rtf1 abcd\u321?efgh}"#.utf8),
            LegacyWordFile(narrow: Array("abcd".utf8), wide: "Łefgh\r").bytes(),
            try WordFile(body: WordFile.paragraph("abcdŁefgh")).bytes(in: scratch),
            try OpenDocumentFile(body: OpenDocumentFile.paragraph("abcdŁefgh")).bytes(in: scratch),
        ]
        for file in files {
            let request = try scratch.request(try scratch.file("input", file), limits: limits)
            let document = try #require(reader.processor.process(request).document)
            #expect(document.textOutcome == .cut && document.text == "abcdŁ", "\(document.type)")
        }
    }
}

import Foundation
import Resume
import Seeded
import Testing

@testable import MediaTools

/// Documents made by chance, as they should be and harmed, read in this process: what the child would do.
@Suite("Documents, by chance", .serialized) struct DocumentFuzz {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private static let words = [
        "Jane", "Łódź", "Müller", "2018", "C++", "😀", "jane@example.org", "a&b", "<x>", "Engineer", "e\u{301}", "王",
    ]

    /// Lines of words, none of them empty.
    private static func lines(_ fuzz: inout FuzzCase, of words: [String] = words) -> [[String]] {
        (0..<fuzz.number(1...8)).map { _ in (0..<fuzz.number(1...6)).map { _ in fuzz.pick(words) } }
    }

    /// What the reader makes of the input; the same each time.
    private func read(_ fuzz: FuzzCase, _ type: ContentType, bytesMax: Int) throws -> MediaDocument? {
        let path = try scratch.file("input", fuzz.input)
        guard let file = OpenFile(path: path) else { throw FuzzCase.Broken(description: "no file") }
        var limits = MediaLimits()
        limits.textBytesMax = bytesMax
        let work = DocumentWork(limits: limits)
        let month = Resume.Month(year: 2026, month: 11)
        let document = try? work.run(file, type: type).read(in: month)
        try fuzz.check(document == (try? work.run(file, type: type).read(in: month)), "another text the second time")
        return document
    }

    /// What must hold of any text that was read.
    private func check(_ fuzz: FuzzCase, _ document: MediaDocument, bytesMax: Int) throws {
        let text = Array(document.text.utf8)
        // The last character may stand across the limit.
        try fuzz.check(text.count <= bytesMax + 3, "\(text.count) bytes, \(bytesMax) allowed")
        let control = text.first { $0 < 32 && $0 != 9 && $0 != 10 || $0 == 127 }
        try fuzz.check(control == nil, "the control character \(control ?? 0)")
        func isPlace(_ offset: Int) -> Bool {
            offset >= 0 && (offset == text.count || offset < text.count && text[offset] & 0xC0 != 0x80)
        }
        let pages = document.pageOffsets
        try fuzz.check(pages.first == 0 && pages.allSatisfy(isPlace), "pages at \(pages) of \(text.count)")
        try fuzz.check(zip(pages, pages.dropFirst()).allSatisfy { $0 <= $1 }, "pages out of order: \(pages)")
        for link in document.links {
            try fuzz.check(isPlace(link.offset), "a link at \(link.offset) of \(text.count)")
            try fuzz.check(link.target.utf8.count <= TextBuilder.targetBytesMax, "a link that is too long")
        }
        try fuzz.check(document.links.count <= TextBuilder.linksMax, "\(document.links.count) links")
        let isBlank = text.allSatisfy { $0 <= 32 }
        try fuzz.check(isBlank == (document.textOutcome == .none), "\(document.textOutcome) of \(text.count) bytes")
        for place in document.resume?.skills.map(\.place) ?? [] {
            try fuzz.check(
                isPlace(place.offset) && isPlace(place.offset + place.length) && place.page <= pages.count,
                "a skill at \(place) of \(text.count)")
        }
    }

    /// - Parameters:
    ///   - whole: the document, and its words in order.
    ///   - harm: another document with its content harmed, before it is packed; nil to harm the bytes.
    private func fuzz(
        _ name: Fuzz, _ type: ContentType,
        _ whole: (inout FuzzCase) throws -> (bytes: [UInt8], words: [String]),
        harm: ((inout FuzzCase) throws -> [UInt8])? = nil, language: [String] = []
    ) throws {
        try name.run { fuzz in
            let (bytes, words) = try whole(&fuzz)
            let isHarmed = fuzz.number(0...3) > 0
            if !isHarmed {
                fuzz.input = bytes
            } else if let harm, fuzz.number(0...2) > 0 {
                fuzz.input = try harm(&fuzz)
            } else {
                fuzz.input = fuzz.mutated(bytes, words: language, timesMax: 8)
            }
            let bytesMax = isHarmed && fuzz.once(in: 2) ? fuzz.number(1...60) : 1 << 16
            guard let document = try read(fuzz, type, bytesMax: bytesMax) else {
                return try fuzz.check(isHarmed, "a good document is refused")
            }
            try check(fuzz, document, bytesMax: bytesMax)
            guard !isHarmed else { return }
            let read = document.text.split { $0 == " " || $0 == "\n" || $0 == "\t" }.map(String.init)
            try fuzz.checkEqual(read, words, "the words")
        }
    }

    // MARK: Archives

    private static func wordMarkup(_ lines: [[String]], _ fuzz: inout FuzzCase) -> String {
        let paragraphs = lines.map { line in
            fuzz.once(in: 4) ? WordFile.row(line) : WordFile.paragraph(line.joined(separator: fuzz.pick([" ", "\t"])))
        }
        return paragraphs.joined(separator: fuzz.pick(["", "<w:p><w:r><w:br w:type=\"page\"/></w:r></w:p>"]))
    }

    private static let wordTags = [
        "<w:p>", "</w:p>", "<w:r><w:t>x</w:t></w:r>", "<w:tc>", "</w:tc>", "</w:tr>",
        "<w:r><w:br w:type=\"page\"/></w:r>",
        "<w:r><w:lastRenderedPageBreak/></w:r>", "<w:hyperlink r:id=\"a\">", "</w:hyperlink>", "<w:del>", "</w:del>",
        "<mc:AlternateContent>", "<mc:Choice>", "</mc:Choice>", "<mc:Fallback>", "&#0;", "&#1;", "<w:t>", "<w:r>",
        "</w:r>",
        "<w:tr>", "<w:r><w:tab/></w:r>", "<![CDATA[", "]]>",
    ]

    @Test("a DOCX gives its words in order, or a text whose places are all in it, or a reason") func docx() throws {
        try fuzz(
            Fuzz("docx", rounds: 500), .docx,
            { fuzz in
                let lines = Self.lines(&fuzz)
                let file = WordFile(body: Self.wordMarkup(lines, &fuzz))
                return (try file.bytes(in: scratch), lines.flatMap { $0 })
            },
            harm: { fuzz in
                let lines = Self.lines(&fuzz)
                let markup = Array(Self.wordMarkup(lines, &fuzz).utf8)
                var body = fuzz.once(in: 3) ? fuzz.text(of: Self.wordTags, max: 30) : ""
                body += String(decoding: fuzz.mutated(markup, words: Self.wordTags), as: UTF8.self)
                var file = WordFile(body: body, header: fuzz.once(in: 2) ? WordFile.paragraph("head") : nil)
                file.links = ["a": fuzz.pick(["https://example.org/", "mailto:a@b.org", "javascript:x", "tel:\t1"])]
                return try file.bytes(in: scratch)
            }, language: ["PK\u{1}\u{2}", "word/document.xml", "../"])
    }

    private static let openTags = [
        "<text:p>", "</text:p>", "<text:s text:c=\"9999\"/>", "<text:tab/>", "<text:line-break/>",
        "<text:soft-page-break/>",
        "<table:table-cell>", "</table:table-cell>", "</table:table-row>", "<text:a xlink:href=\"http://a.org/\">",
        "</text:a>", "<office:annotation>", "</office:annotation>", "&#1;", "<text:h>", "</text:h>", "x",
    ]

    private static func openMarkup(_ lines: [[String]]) -> String {
        lines.map { OpenDocumentFile.paragraph($0.joined(separator: "\t")) }.joined(separator: "\n")
    }

    @Test("an ODT gives its words in order, or a text whose places are all in it, or a reason") func odt() throws {
        try fuzz(
            Fuzz("odt", rounds: 500), .odt,
            { fuzz in
                let lines = Self.lines(&fuzz)
                return (
                    try OpenDocumentFile(body: Self.openMarkup(lines)).bytes(in: scratch), lines.flatMap { $0 }
                )
            },
            harm: { fuzz in
                let markup = Array(Self.openMarkup(Self.lines(&fuzz)).utf8)
                var body = fuzz.once(in: 3) ? fuzz.text(of: Self.openTags, max: 30) : ""
                body += String(decoding: fuzz.mutated(markup, words: Self.openTags), as: UTF8.self)
                return try OpenDocumentFile(body: body).bytes(in: scratch)
            })
    }

    // MARK: The others

    private static let richWords = [
        #"{\rtf1"#, "{", "}", "\\", #"\'f"#, #"\'e9"#, #"\u"#, #"\u-99999999999 "#, #"\bin99999"#, #"\uc-1 "#, #"\*"#,
        #"\f-1"#, #"{\fonttbl"#, #"\fcharset"#, "a", "\n", #"\par"#, #"\ansicpg0"#, "7", #"\u55357 "#, #"\cell"#,
        #"\row"#,
        #"\page"#, #"\v "#, #"\u-8704?"#, #"\f1 "#, #"\mac"#,
    ]

    @Test("an RTF gives its words in order, or a text whose places are all in it, or a reason") func rtf() throws {
        try fuzz(
            Fuzz("rtf", rounds: 2_000), .rtf,
            { fuzz in
                let lines = Self.lines(&fuzz)
                let text = lines.map { line in
                    line.map { word in
                        word.utf16.map { unit in
                            unit < 0x80 ? String(UnicodeScalar(UInt8(unit))) : "\\u\(Int16(bitPattern: unit))?"
                        }.joined()
                    }.joined(separator: fuzz.pick([" ", "\\tab "]))
                }.joined(separator: fuzz.pick(["\\par ", "\\line ", "\\page "]))
                return (Array("{\\rtf1\\ansi \(text)}".utf8), lines.flatMap { $0 })
            },
            harm: { fuzz in Array(fuzz.text(of: Self.richWords, max: 60).utf8) }, language: Self.richWords)
    }

    @Test("a DOC gives its words in order, or a text whose places are all in it, or a reason") func doc() throws {
        try fuzz(
            Fuzz("doc", rounds: 500), .doc,
            { fuzz in
                let narrow = Self.lines(&fuzz, of: ["Jane", "2018", "C++", "Engineer"])
                let wide = Self.lines(&fuzz)
                let text = { (lines: [[String]]) in lines.map { $0.joined(separator: " ") + "\r" }.joined() }
                let file = LegacyWordFile(narrow: Array(text(narrow).utf8), wide: text(wide))
                return (file.bytes(), (narrow + wide).flatMap { $0 })
            },
            harm: { fuzz in
                let narrow = fuzz.bytes(fuzz.number(0...5_000))
                var bytes = LegacyWordFile(narrow: narrow, wide: "Łódź\u{13}x\u{14}\r").bytes()
                for _ in 0..<fuzz.number(0...8) {
                    // The header, the directory and the tables more often than the text.
                    let index = fuzz.number(0...(fuzz.once(in: 2) ? 0x21F : bytes.count - 1))
                    bytes[index] = UInt8(fuzz.number(0...255))
                }
                return bytes
            })
    }

    @Test("a plain text gives its words in order, or a text whose places are all in it") func text() throws {
        try fuzz(
            Fuzz("text", rounds: 2_000), .txt,
            { fuzz in
                let lines = Self.lines(&fuzz)
                let text = lines.map { $0.joined(separator: " ") }.joined(
                    separator: fuzz.pick(["\n", "\r\n", "\u{C}"]))
                switch fuzz.number(0...2) {
                case 0: return (Array(text.utf8), lines.flatMap { $0 })
                case 1:
                    return (
                        [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }, lines.flatMap { $0 }
                    )
                default:
                    return (
                        [0xFE, 0xFF] + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }, lines.flatMap { $0 }
                    )
                }
            })
    }

    @Test("an image without its metadata is none that is longer, and the same once more")
    func images() throws {
        _ = try MediaProcessor()
        let types: [ContentType] = [.jpeg, .png, .webp]
        let samples = try types.map { type in
            Samples.withExif(
                type, try Samples.image(type, width: 60, height: 40, in: scratch), orientation: 1, width: 60, height: 40
            )
        }
        try Fuzz("images", rounds: 6_000).run { fuzz in
            let kind = fuzz.number(0...2)
            let isHarmed = fuzz.number(0...3) > 0
            let words = ["Exif\0\0", "ICC_PROFILE\0", "IDAT", "VP8X", "EXIF"]
            fuzz.input = isHarmed ? fuzz.mutated(samples[kind], words: words) : samples[kind]
            let tool = BareImage(keepsProfile: fuzz.once(in: 2))
            let read = tool.bytes(of: types[kind], fuzz.input)
            try fuzz.check(isHarmed || read != nil, "a good image is none")
            guard let bare = read else { return }
            try fuzz.check(bare.count <= fuzz.input.count, "\(bare.count) bytes of \(fuzz.input.count)")
            try fuzz.check(tool.bytes(of: types[kind], bare) == bare, "another image the second time")
            guard !isHarmed else { return }
            try fuzz.check(Data(bare).range(of: Data("SECRET".utf8)) == nil, "metadata is left")
            let tail = fuzz.bytes(fuzz.number(1...40))
            try fuzz.check(tool.bytes(of: types[kind], fuzz.input + tail) == bare, "what is behind its end is kept")
        }
    }
}

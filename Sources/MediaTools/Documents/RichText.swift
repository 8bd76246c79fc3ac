/// The text of an RTF (1.9.1): a state machine over its groups and words. Pictures, tables of fonts and styles, and
/// everything that a reader may leave out, is left out.
struct RichText {
    /// Groups in groups. Word writes some ten.
    static let depthMax = 500
    private static let fontsMax = 4096
    private static let wordLengthMax = 32

    private struct Group {
        var isHidden = false
        var page: CodePage
        /// Characters of the stand-in that follows one given by its number.
        var standIn = 1
        /// In the table of fonts.
        var isFonts = false
    }

    private static let hidden: Set<String> = [
        "colortbl", "stylesheet", "info", "pict", "object", "themedata", "datastore", "listtable", "listoverridetable",
        "rsidtbl", "generator", "xmlnstbl", "latentstyles", "fldinst", "filetbl", "revtbl", "annotation", "atnid",
        "atnauthor", "bkmkstart", "bkmkend", "mmathPr", "nonshppict", "shpinst", "listtext", "pntext",
    ]
    private static let characters: [String: Unicode.Scalar] = [
        "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
        "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ", "tab": "\t",
    ]

    private let file: [UInt8]
    private var index = 0
    private var text: TextBuilder
    private var group = Group(page: .windows1252)
    private var outer: [Group] = []
    private var fonts: [Int: CodePage] = [:]
    private var font = 0
    /// Characters of a stand-in still to pass over, and half a pair from outside the first plane.
    private var passing = 0
    private var high: UInt32?

    init(_ file: [UInt8], bytesMax: Int) {
        self.file = file
        text = TextBuilder(bytesMax: bytesMax)
    }

    /// - Throws: `broken` for groups nested too deeply.
    mutating func read() throws(Rejection) -> TextBuilder {
        text.beginPage()
        while index < file.count, !text.isCut {
            let byte = file[index]
            index += 1
            switch byte {
            case UInt8(ascii: "{"):
                guard outer.count < Self.depthMax else { throw .broken }
                outer.append(group)
                passing = 0
            case UInt8(ascii: "}"):
                if let last = outer.popLast() { group = last }
                passing = 0
            case UInt8(ascii: "\\"): escape()
            case 13, 10, 0: break
            default: show(byte)
            }
        }
        return text
    }

    // MARK: Characters

    private mutating func show(_ byte: UInt8) {
        guard passing == 0 else {
            passing -= 1
            return
        }
        show(group.page.scalar(byte))
    }

    private mutating func show(_ scalar: Unicode.Scalar) {
        if !group.isHidden, !group.isFonts { text.append(scalar) }
    }

    private mutating func escape() {
        guard index < file.count else { return }
        let byte = file[index]
        if byte.isLetter { return word() }
        index += 1
        switch byte {
        case UInt8(ascii: "'"):
            let digits = file[index..<min(index + 2, file.count)]
            index += digits.count
            if let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) { show(value) }
        case UInt8(ascii: "*"): group.isHidden = true
        case UInt8(ascii: "~"): show("\u{A0}" as Unicode.Scalar)
        case UInt8(ascii: "_"): show(UInt8(ascii: "-"))
        case UInt8(ascii: "\\"), UInt8(ascii: "{"), UInt8(ascii: "}"): show(byte)
        case 10, 13: lineEnd()
        default: break
        }
    }

    private mutating func lineEnd() {
        if !group.isHidden { text.newline() }
    }

    // MARK: Words

    private mutating func word() {
        let start = index
        while index < file.count, file[index].isLetter, index - start < Self.wordLengthMax { index += 1 }
        let name = String(decoding: file[start..<index], as: UTF8.self)
        let digits = index
        if index < file.count, file[index] == UInt8(ascii: "-") { index += 1 }
        while index < file.count, file[index].isDigit, index - digits < 11 { index += 1 }
        let number = Int(String(decoding: file[digits..<index], as: UTF8.self))
        if index < file.count, file[index] == 32 { index += 1 }
        obey(name, number)
    }

    private mutating func obey(_ name: String, _ number: Int?) {
        if let scalar = Self.characters[name] { return show(scalar) }
        switch name {
        case "par", "line", "sect": lineEnd()
        case "page": if !group.isHidden { text.breakPage() }
        case "cell", "nestcell": if !group.isHidden { text.endCell() }
        case "row", "nestrow": if !group.isHidden { text.endRow() }
        case "u": if let number { unicode(number) }
        case "uc": group.standIn = min(max(number ?? 1, 0), 16)
        case "bin": index += min(max(number ?? 0, 0), file.count - index)
        case "v": group.isHidden = group.isHidden || number != 0
        case "fonttbl": group.isFonts = true
        case "ansicpg": if let number { group.page = CodePage(number) }
        case "mac": group.page = CodePage(10000)
        case "f": chooseFont(number ?? 0)
        case "fcharset":
            guard group.isFonts, fonts.count < Self.fontsMax else { break }
            if let number { fonts[font] = CodePage(charset: number) }
        default: if Self.hidden.contains(name) { group.isHidden = true }
        }
    }

    private mutating func chooseFont(_ number: Int) {
        if group.isFonts { font = number } else if let page = fonts[number] { group.page = page }
    }

    /// A character by its number, signed as 16 bits have it; after it stands one for readers who know no Unicode.
    private mutating func unicode(_ number: Int) {
        passing = group.standIn
        let unit = UInt32(truncatingIfNeeded: number < 0 ? number + 65_536 : number)
        if (0xD800..<0xDC00).contains(unit) {
            high = unit
        } else if let first = high, (0xDC00..<0xE000).contains(unit) {
            high = nil
            let value = 0x10000 + (first - 0xD800) << 10 + (unit - 0xDC00)
            if let scalar = Unicode.Scalar(value) { show(scalar) }
        } else if let scalar = Unicode.Scalar(unit) {
            show(scalar)
        }
    }
}

extension UInt8 {
    fileprivate var isLetter: Bool { (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) }
    fileprivate var isDigit: Bool { (0x30...0x39).contains(self) }
}

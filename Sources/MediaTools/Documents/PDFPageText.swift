import Cpoppler

/// The text of one page, as poppler orders it, and where each letter lies.
///
/// Poppler leaves out what stands between the end of one column or cell and the beginning of the next one, and two
/// words become one: the places of the letters tell. And words that are divided between two lines are put together, as
/// pdftotext does.
final class PDFPageText {
    private let text: UnsafeMutablePointer<CChar>
    private let areas: UnsafeMutablePointer<PopplerRectangle>
    private let count: Int

    /// Nil for a page without text.
    init?(_ page: OpaquePointer) {
        var areas: UnsafeMutablePointer<PopplerRectangle>?
        var count: guint = 0
        guard poppler_page_get_text_layout(page, &areas, &count) != 0, let areas else { return nil }
        guard let text = poppler_page_get_text(page) else {
            martlet_poppler_free(areas)
            return nil
        }
        self.text = text
        self.areas = areas
        self.count = Int(count)
    }

    deinit {
        martlet_poppler_free(text)
        martlet_poppler_free(areas)
    }

    func append(to builder: inout TextBuilder) {
        var character = 0
        var index = 0
        // Nought for white space.
        var former: UInt8 = 0
        while let byte = byte(index), !builder.isCut {
            // Hyphen and line end are a character each.
            if let length = division(at: index, after: former) {
                index += length
                character += 2
                // What comes next belongs to the word, wherever it lies.
                former = 0
                continue
            }
            if byte & 0xC0 != 0x80 {
                if byte > 32, former > 0, character < count, let mark = mark(before: character) { builder.append(mark) }
                character += 1
            }
            former = byte <= 32 ? 0 : byte
            builder.append(byte)
            index += 1
        }
    }

    private func byte(_ index: Int) -> UInt8? { text[index] == 0 ? nil : UInt8(bitPattern: text[index]) }

    /// The length of a hyphen and a line end between two parts of a word. A capital after it makes it a name of two.
    private func division(at index: Int, after former: UInt8) -> Int? {
        guard Self.isLetter(former) else { return nil }
        let isSoft = byte(index) == 0xC2 && byte(index + 1) == 0xAD
        guard isSoft || byte(index) == UInt8(ascii: "-") else { return nil }
        let length = isSoft ? 2 : 1
        guard byte(index + length) == UInt8(ascii: "\n"), let next = byte(index + length + 1) else { return nil }
        return (0x61...0x7A).contains(next) || next >= 0xC3 ? length + 1 : nil
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) || byte >= 0x80 }

    /// A line end before a letter that lies on another line than the one before it, a tab before one that lies in
    /// another column. Between letters of one word there is no such way, in turned text neither.
    private func mark(before character: Int) -> UInt8? {
        let (area, former) = (areas[character], areas[character - 1])
        let height = max(abs(area.y2 - area.y1), abs(former.y2 - former.y1))
        let (down, along) = (abs(area.y1 - former.y1), area.x1 - former.x2)
        if down > height, abs(along) > height { return UInt8(ascii: "\n") }
        if down < height / 2, along > height / 2 || along < -2 * height { return UInt8(ascii: "\t") }
        return nil
    }
}

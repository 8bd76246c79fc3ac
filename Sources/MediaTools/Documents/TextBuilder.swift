/// The text of a document as it grows: UTF-8 without control characters but line ends and tabs, where its pages begin,
/// and where it links to. Past the limit everything is left out.
struct TextBuilder {
    /// What a person links to in a CV; a document with more is no CV.
    static let linksMax = 200
    static let targetBytesMax = 500
    private static let scannedLettersMin = 20

    private(set) var bytes: [UInt8] = []
    private(set) var pageOffsets: [Int] = []
    private(set) var links: [MediaLink] = []
    private(set) var isCut = false
    private let bytesMax: Int

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    // MARK: Pages

    /// A page begins here, whatever the last one had.
    mutating func beginPage() {
        guard !isCut else { return }
        if !bytes.isEmpty { newline() }
        pageOffsets.append(bytes.count)
    }

    /// A page begins here, unless the present one has nothing in it yet: programs write down the break that was asked
    /// for, and once more that it came about.
    mutating func breakPage() {
        guard let begin = pageOffsets.last else { return beginPage() }
        guard !isCut, bytes[begin...].contains(where: { $0 > 32 }) else { return }
        endLine()
        pageOffsets.append(bytes.count)
    }

    // MARK: Text

    /// One byte of UTF-8. PostgreSQL takes no zero, and nobody reads the other control characters.
    mutating func append(_ byte: UInt8) {
        guard byte >= 32 && byte != 127 || byte == 9 || byte == 10 else { return }
        // Not in the middle of a character.
        if bytes.count >= bytesMax && byte & 0xC0 != 0x80 { isCut = true }
        if !isCut { bytes.append(byte) }
    }

    mutating func append(_ text: some Sequence<UInt8>) {
        for byte in text { append(byte) }
    }

    mutating func append(_ scalar: Unicode.Scalar) {
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { append(byte) }
    }

    mutating func newline() { append(UInt8(ascii: "\n")) }

    /// Ends the line, if one has begun.
    mutating func endLine() {
        if let last = bytes.last, last != UInt8(ascii: "\n") { newline() }
    }

    /// The end of a cell: what ended its last line stands between it and the next one.
    mutating func endCell() {
        guard !isCut else { return }
        if bytes.last == UInt8(ascii: "\n"), bytes.count > (pageOffsets.last ?? 0) { bytes.removeLast() }
        append(UInt8(ascii: "\t"))
    }

    mutating func endRow() {
        guard !isCut else { return }
        if bytes.last == UInt8(ascii: "\t") { bytes.removeLast() }
        newline()
    }

    /// An address behind the text that begins at `offset`. Only what a person can follow is kept.
    mutating func link(to target: String, at offset: Int) {
        let schemes = ["http://", "https://", "mailto:", "tel:"]
        let start = target.prefix(8).lowercased()
        guard !isCut, links.count < Self.linksMax, target.utf8.count <= Self.targetBytesMax,
            schemes.contains(where: start.hasPrefix),
            target.unicodeScalars.allSatisfy({ $0.value > 32 && $0.value != 127 })
        else { return }
        links.append(MediaLink(offset: offset, target: target))
    }

    // MARK: The result

    func document(_ type: ContentType, pages: Int?) -> MediaDocument {
        let isBlank = bytes.allSatisfy { $0 <= 32 }
        return document(type, pages: pages, isBlank ? .none : isCut ? .cut : .extracted)
    }

    /// Text that was read from pictures. Some letters are found on every picture; they are no text.
    func scanned(_ type: ContentType, pages: Int?) -> MediaDocument? {
        let letters = bytes.count { $0 >= 0xC0 || (0x41...0x5A).contains($0 & 0xDF) }
        return letters < Self.scannedLettersMin ? nil : document(type, pages: pages, .scanned)
    }

    private func document(_ type: ContentType, pages: Int?, _ outcome: MediaDocument.Text) -> MediaDocument {
        MediaDocument(
            type: type, pages: pages, textOutcome: outcome, text: String(decoding: bytes, as: UTF8.self),
            pageOffsets: pageOffsets, links: links)
    }
}

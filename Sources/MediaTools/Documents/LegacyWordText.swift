/// The text of a DOC of Word 97 to 2003 ([MS-DOC]): the piece table says where in the file each stretch of characters
/// lies, and whether they have one byte or two. Read by us because the programs there are for it have had no keeper
/// for years, and the child starts no program.
struct LegacyWordText {
    /// Word saves anew before a table gets this long.
    private static let piecesMax = 1 << 20
    /// nFib of Word 97. What is older has no table of pieces.
    private static let versionMin = 0x00C1

    private let document: [UInt8]
    private let table: [UInt8]

    /// - Throws: `encrypted`, `tooOld`, or `broken`.
    init(_ file: CompoundFile) throws(Rejection) {
        guard let document = file.stream("WordDocument"), document.little(2, at: 0) == 0xA5EC,
            let version = document.little(2, at: 2), let flags = document.little(2, at: 0x0A)
        else { throw .broken }
        guard version >= Self.versionMin else { throw .tooOld }
        guard flags & 0x0100 == 0 else { throw .encrypted }
        guard let table = file.stream(flags & 0x0200 != 0 ? "1Table" : "0Table") else { throw .broken }
        self.document = document
        self.table = table
    }

    private struct Piece {
        let characters: Range<Int>
        let offset: Int
        let isWide: Bool
    }

    func read(bytesMax: Int) throws(Rejection) -> TextBuilder {
        let pieces = try pieces()
        var text = TextBuilder(bytesMax: bytesMax)
        text.beginPage()
        var fields = FieldDepth()
        var start = 0
        // One after the other in the pieces: the body, footnotes, headers, macros, comments, endnotes, boxes.
        for (index, place) in [0x4C, 0x50, 0x54, 0x58, 0x5C, 0x60, 0x64, 0x68].enumerated() {
            let count = document.little(4, at: place) ?? 0
            let end = min(start + min(count, document.count), document.count)
            // Comments are others' words, and macros are none.
            if index != 3, index != 4 { append(start..<end, of: pieces, to: &text, &fields) }
            start = end
        }
        return text
    }

    private func pieces() throws(Rejection) -> [Piece] {
        guard let offset = document.little(4, at: 0x1A2), let count = document.little(4, at: 0x1A6) else {
            throw .broken
        }
        let end = min(offset + count, table.count)
        var index = offset
        // Properties stand before the table itself.
        while index < end, table[index] == 1, let bytes = table.little(2, at: index + 1) { index += 3 + bytes }
        guard index < end, table[index] == 2, let bytes = table.little(4, at: index + 1), bytes >= 16,
            index + 5 + bytes <= table.count
        else { throw .broken }
        let number = (bytes - 4) / 12
        guard number <= Self.piecesMax else { throw .broken }
        let positions = index + 5
        let descriptions = positions + (number + 1) * 4
        return (0..<number).compactMap { piece in
            guard let from = table.little(4, at: positions + piece * 4),
                let to = table.little(4, at: positions + (piece + 1) * 4), from < to,
                let place = table.little(4, at: descriptions + piece * 8 + 2)
            else { return nil }
            let isWide = place & 0x4000_0000 == 0
            let start = place & 0x3FFF_FFFF
            return Piece(characters: from..<to, offset: isWide ? start : start / 2, isWide: isWide)
        }
    }

    /// How deep we are in fields, and whether in what they do rather than in what they show.
    private struct FieldDepth {
        /// For each field around us, whether its result has begun.
        private var results: [Bool] = []
        private static let depthMax = 64

        var isHidden: Bool { results.contains(false) }

        mutating func take(_ unit: UInt16) {
            switch unit {
            case 0x13: if results.count < Self.depthMax { results.append(false) }
            case 0x14: if !results.isEmpty { results[results.count - 1] = true }
            default: _ = results.popLast()
            }
        }
    }

    private func append(
        _ wanted: Range<Int>, of pieces: [Piece], to text: inout TextBuilder, _ fields: inout FieldDepth
    ) {
        guard !wanted.isEmpty else { return }
        text.endLine()
        for piece in pieces where !text.isCut {
            let part = piece.characters.clamped(to: wanted)
            guard !part.isEmpty else { continue }
            let first = piece.offset + (part.lowerBound - piece.characters.lowerBound) * (piece.isWide ? 2 : 1)
            append(piece.isWide ? wide(first, part.count) : narrow(first, part.count), to: &text, &fields)
        }
    }

    private func wide(_ offset: Int, _ count: Int) -> String {
        let end = min(offset + count * 2, document.count - 1)
        let units = stride(from: min(offset, end), to: end, by: 2).map {
            UInt16(document[$0]) | UInt16(document[$0 + 1]) << 8
        }
        return String(decoding: units, as: UTF16.self)
    }

    private func narrow(_ offset: Int, _ count: Int) -> String {
        let end = min(offset + count, document.count)
        return CodePage.windows1252.text(document[min(offset, end)..<end])
    }

    private func append(_ piece: String, to text: inout TextBuilder, _ fields: inout FieldDepth) {
        for scalar in piece.unicodeScalars {
            switch scalar.value {
            case 0x13, 0x14, 0x15: fields.take(UInt16(scalar.value))
            case _ where fields.isHidden: continue
            case 0x0D: text.newline()
            case 0x0B: text.newline()
            case 0x0C: text.breakPage()
            // The end of a cell, and of a row, where it stands twice.
            case 0x07: if text.bytes.last == UInt8(ascii: "\t") { text.endRow() } else { text.endCell() }
            case 0x1E: text.append(UInt8(ascii: "-"))
            default: text.append(scalar)
            }
        }
    }
}

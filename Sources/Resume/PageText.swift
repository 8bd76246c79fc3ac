/// The text of a CV in lines and words. All positions are in its UTF-8.
struct PageText {
    /// A CV of a hundred pages. What comes after is not read: nobody is hired by it.
    static let bytesMax = 512 << 10

    /// A word: letters and digits, with `+` and `#` behind it and `.` before `NET`, as the names of tools have them.
    struct Token {
        let range: Range<Int>
        /// In small letters, without accents.
        let key: String
        let line: Int
    }

    struct Line {
        /// Without the line end.
        let range: Range<Int>
        let tokens: Range<Int>
        var section: Section
    }

    let bytes: [UInt8]
    private(set) var tokens: [Token] = []
    private(set) var lines: [Line] = []
    private let pageOffsets: [Int]

    init(_ text: String, pageOffsets: [Int]) {
        bytes = Array(text.utf8.prefix(Self.bytesMax))
        self.pageOffsets = pageOffsets
        split()
        var sections = SectionReader()
        for index in lines.indices { lines[index].section = sections.take(lines[index], of: self) }
    }

    /// Words alone: what tells sections apart is made of words itself.
    init(words text: String) {
        bytes = Array(text.utf8)
        pageOffsets = []
        split()
    }

    // MARK: Places

    func place(_ range: Range<Int>) -> Resume.Place {
        // The last page that begins at or before it.
        var low = 0
        var high = pageOffsets.count
        while low < high {
            let middle = (low + high) / 2
            if pageOffsets[middle] <= range.lowerBound { low = middle + 1 } else { high = middle }
        }
        return Resume.Place(page: max(low, 1), offset: range.lowerBound, length: range.count)
    }

    func finding(_ range: Range<Int>, value: String? = nil) -> Resume.Finding {
        Resume.Finding(value: value ?? text(range), place: place(range))
    }

    /// What stands there, white space folded, no longer than a value may be.
    func text(_ range: Range<Int>) -> String {
        var folded: [UInt8] = []
        for byte in bytes[range] {
            let isSpace = byte <= 32
            if isSpace && (folded.last == 32 || folded.isEmpty) { continue }
            // Not in the middle of a character.
            if folded.count >= Resume.Finding.valueBytesMax && byte & 0xC0 != 0x80 { break }
            folded.append(isSpace ? 32 : byte)
        }
        if folded.last == 32 { folded.removeLast() }
        return String(decoding: folded, as: UTF8.self)
    }

    /// The range without the white space around it.
    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, bytes[start] <= 32 { start += 1 }
        while end > start, bytes[end - 1] <= 32 { end -= 1 }
        return start..<end
    }

    func words(_ line: Line) -> ArraySlice<Token> { tokens[line.tokens] }

    /// What is between a token and the next one.
    func gap(after index: Int) -> ArraySlice<UInt8> {
        let end = index + 1 < tokens.count ? tokens[index + 1].range.lowerBound : bytes.count
        return bytes[tokens[index].range.upperBound..<end]
    }

    // MARK: Words

    private static let markedNames: Set<String> = ["c", "f", "j", "g", "notepad"]

    private mutating func split() {
        var lineStart = 0
        var firstToken = 0
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\n") {
                lines.append(Line(range: lineStart..<index, tokens: firstToken..<tokens.count, section: .none))
                index += 1
                (lineStart, firstToken) = (index, tokens.count)
                continue
            }
            let (scalar, length) = Self.scalar(bytes, at: index)
            if Self.isWord(scalar) { index = token(from: index) } else { index += length }
        }
        if lineStart < bytes.count {
            lines.append(Line(range: lineStart..<bytes.count, tokens: firstToken..<tokens.count, section: .none))
        }
    }

    /// Adds the token that begins there; returns its end.
    private mutating func token(from start: Int) -> Int {
        var key = String.UnicodeScalarView()
        var end = start
        let isEast = Self.isEast(Self.scalar(bytes, at: start).scalar)
        while end < bytes.count {
            let (scalar, length) = Self.scalar(bytes, at: end)
            guard Self.isWord(scalar), Self.isEast(scalar) == isEast else { break }
            Fold.append(scalar, to: &key)
            end += length
        }
        var begin = start
        // C++, C#, F#; but 10+ and A+ with more behind it are not.
        if Self.markedNames.contains(String(key)) {
            let marks = bytes[end..<min(end + 2, bytes.count)].prefix {
                $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#")
            }
            for mark in marks { key.append(Unicode.Scalar(mark)) }
            end += marks.count
        }
        if String(key) == "net", start > 0, bytes[start - 1] == UInt8(ascii: "."), !endsWord(start - 1) {
            key.insert(".", at: key.startIndex)
            begin -= 1
        }
        tokens.append(Token(range: begin..<end, key: String(key), line: lines.count))
        return end
    }

    /// Whether a letter or a digit ends there.
    private func endsWord(_ index: Int) -> Bool {
        guard index > 0 else { return false }
        let byte = bytes[index - 1]
        return byte >= 0x80 || Self.isWord(Unicode.Scalar(byte))
    }

    /// The scalar there and its length. The bytes are those of a String, but for the end, where one may be cut.
    static func scalar(_ bytes: [UInt8], at index: Int) -> (scalar: Unicode.Scalar, length: Int) {
        let first = bytes[index]
        guard first >= 0xC0 else { return (Unicode.Scalar(first), 1) }
        let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
        guard index + length <= bytes.count else { return (" ", bytes.count - index) }
        var value = UInt32(first) & (0x7F >> UInt32(length))
        for byte in bytes[(index + 1)..<(index + length)] { value = value << 6 | UInt32(byte & 0x3F) }
        return (Unicode.Scalar(value) ?? " ", length)
    }

    static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x80 {
            return ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || ("0"..."9").contains(scalar)
        }
        let properties = scalar.properties
        return properties.isAlphabetic || properties.generalCategory == .nonspacingMark
            || properties.numericType == .decimal
    }

    /// Scripts that write without spaces: a word of ours in the midst of them is a word all the same.
    private static func isEast(_ scalar: Unicode.Scalar) -> Bool { (0x2E80..<0xA000).contains(scalar.value) }
}

/// Small letters without accents, as the search's normaliser folds them.
enum Fold {
    private static let plain: [Unicode.Scalar: Unicode.Scalar] = {
        let accented = "àáâãäåāąăçćčďđèéêëēęěğìíîïīıłñńňòóôõöøōőřśşšșťțùúûüūůűýÿźżž"
        let letters = "aaaaaaaaacccddeeeeeeegiiiiiilnnnoooooooorssssttuuuuuuuyyzzz"
        return Dictionary(zip(accented.unicodeScalars, letters.unicodeScalars)) { first, _ in first }
    }()

    static func append(_ scalar: Unicode.Scalar, to key: inout String.UnicodeScalarView) {
        if scalar.value < 0x80 {
            key.append(("A"..."Z").contains(scalar) ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar)
            return
        }
        // Decomposed accents, as some PDFs have them.
        guard !(0x300..<0x370).contains(scalar.value) else { return }
        for small in scalar.properties.lowercaseMapping.unicodeScalars {
            switch small {
            case "ß": key.append(contentsOf: "ss".unicodeScalars)
            case "æ": key.append(contentsOf: "ae".unicodeScalars)
            case "œ": key.append(contentsOf: "oe".unicodeScalars)
            case _ where (0x300..<0x370).contains(small.value): break
            default: key.append(plain[small] ?? small)
            }
        }
    }

    static func key(_ text: some StringProtocol) -> String {
        var key = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { append(scalar, to: &key) }
        return String(key)
    }

    /// A line of words of our own as the keys of its tokens.
    static func keys(_ text: String) -> [String] { PageText(words: text).tokens.map(\.key) }
}

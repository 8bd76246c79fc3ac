extension SafeHTML {
    /// The words of HTML that `sanitise` or `fromPlainText` gave, in one pass: some nanoseconds a byte, so that answers
    /// may carry text without storing it twice. Paragraphs are apart by an empty line, list items have bullets or
    /// numbers.
    ///
    /// Of other HTML it gives some text, never a fault; use `text` for that.
    public static func text(ofSafe html: String) -> String {
        withText(ofSafe: html) { String(decoding: $0, as: UTF8.self) }
    }

    /// The same as UTF-8, for a writer that copies it anyway: making a string of it costs as much as finding it.
    public static func withText<R>(ofSafe html: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R
    {
        var html = html
        return try html.withUTF8 { bytes in
            var scanner = SafeTextScanner(capacity: bytes.count)
            scanner.read(bytes)
            return try scanner.out.withUnsafeBufferPointer(body)
        }
    }
}

/// Knows the few tags and entities that the sanitiser writes.
private struct SafeTextScanner {
    /// Lists within lists; deeper ones have bullets. The sanitiser nests less.
    private static let listsMax = 32

    var out: [UInt8] = []
    /// Line ends that are due before the next word.
    private var breaks = 0
    /// For each open list the number of its next item, 0 for bullets.
    private var lists: [Int] = []
    /// A list item's bullet was the last that was written.
    private var afterMark = false

    init(capacity: Int) { out.reserveCapacity(capacity) }

    mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "<"): index = tag(bytes, from: index + 1)
            case UInt8(ascii: "&"): index = entity(bytes, from: index)
            default:
                let end = Self.textEnd(bytes, from: index + 1)
                put(UnsafeBufferPointer(rebasing: bytes[index..<end]))
                index = end
            }
        }
    }

    /// The first `<` or `&`, or the end. Eight bytes at a time: of `x &- ones & ~x & highs` the lowest bit that is set
    /// stands in the first zero byte of `x` (Lamport, "Multiple byte processing with full-word instructions", 1975).
    private static func textEnd(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var index = start
        let raw = UnsafeRawBufferPointer(bytes)
        while index + 8 <= bytes.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let open = word ^ (ones &* UInt64(UInt8(ascii: "<")))
            let ampersand = word ^ (ones &* UInt64(UInt8(ascii: "&")))
            let found = ((open &- ones) & ~open | (ampersand &- ones) & ~ampersand) & (ones << 7)
            if found != 0 { return index + found.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count, bytes[index] != UInt8(ascii: "<"), bytes[index] != UInt8(ascii: "&") { index += 1 }
        return index
    }

    private mutating func put(_ text: UnsafeBufferPointer<UInt8>) {
        if breaks > 0 {
            // White space between blocks is the writer's, not the author's.
            if text.allSatisfy({ $0 == 0x20 || $0 == 0x0A }) { return }
            startLine()
        }
        afterMark = false
        out.append(contentsOf: text)
    }

    private mutating func put(_ byte: UInt8) {
        if breaks > 0 { startLine() }
        afterMark = false
        out.append(byte)
    }

    private mutating func startLine() {
        if !out.isEmpty { for _ in 0..<breaks { out.append(0x0A) } }
        breaks = 0
    }

    /// Reads to the end of a tag whose `<` was before `start`.
    private mutating func tag(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var nameEnd = start
        while nameEnd < bytes.count, bytes[nameEnd] != UInt8(ascii: ">"), bytes[nameEnd] != 0x20 { nameEnd += 1 }
        var end = nameEnd
        var quoted = false
        while end < bytes.count, quoted || bytes[end] != UInt8(ascii: ">") {
            if bytes[end] == UInt8(ascii: "\"") { quoted.toggle() }
            end += 1
        }
        let closes = nameEnd > start && bytes[start] == UInt8(ascii: "/")
        let name = UnsafeBufferPointer(rebasing: bytes[(closes ? start + 1 : start)..<nameEnd])
        if let tag = Tag(name) { act(on: tag, closes: closes) }
        return end + 1
    }

    /// What matters for the text. Told apart by length and bytes: making a string of every name and comparing it
    /// with all of these took ten times as long as all the rest.
    private enum Tag {
        case lineBreak, block, list, numberedList, item

        init?(_ name: UnsafeBufferPointer<UInt8>) {
            switch name.count {
            case 1 where name[0] == UInt8(ascii: "p"): self = .block
            case 2:
                switch (name[0], name[1]) {
                case (UInt8(ascii: "b"), UInt8(ascii: "r")): self = .lineBreak
                case (UInt8(ascii: "u"), UInt8(ascii: "l")): self = .list
                case (UInt8(ascii: "o"), UInt8(ascii: "l")): self = .numberedList
                case (UInt8(ascii: "l"), UInt8(ascii: "i")): self = .item
                case (UInt8(ascii: "h"), UInt8(ascii: "2")...UInt8(ascii: "6")), (UInt8(ascii: "h"), UInt8(ascii: "r")):
                    self = .block
                default: return nil
                }
            case 3 where name.elementsEqual("pre".utf8): self = .block
            case 10 where name.elementsEqual("blockquote".utf8): self = .block
            default: return nil
            }
        }
    }

    private mutating func act(on tag: Tag, closes: Bool) {
        switch tag {
        case .lineBreak: if !closes { breaks += 1 }
        // Within a list item a paragraph does not part from the item's own mark.
        case .block: breaks = max(breaks, afterMark ? 0 : 2)
        case .list, .numberedList:
            if closes {
                if !lists.isEmpty { lists.removeLast() }
                breaks = max(breaks, lists.isEmpty ? 2 : 1)
            } else {
                breaks = max(breaks, lists.isEmpty ? 2 : 1)
                if lists.count < Self.listsMax { lists.append(tag == .numberedList ? 1 : 0) }
            }
        case .item:
            breaks = max(breaks, 1)
            guard !closes, let number = lists.last else { return }
            startLine()
            out.append(contentsOf: (number == 0 ? "• " : "\(number). ").utf8)
            afterMark = true
            if number > 0 { lists[lists.count - 1] = number + 1 }
        }
    }

    /// One of the five that the sanitiser writes; any other ampersand is itself.
    private mutating func entity(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let rest = UnsafeBufferPointer(rebasing: bytes[(start + 1)...].prefix(5))
        for (name, byte) in Self.entities where rest.starts(with: name.utf8) {
            put(byte)
            return start + 1 + name.utf8.count
        }
        put(UInt8(ascii: "&"))
        return start + 1
    }

    private static let entities: [(String, UInt8)] = [
        ("amp;", UInt8(ascii: "&")), ("lt;", UInt8(ascii: "<")), ("gt;", UInt8(ascii: ">")),
        ("quot;", UInt8(ascii: "\"")), ("#39;", UInt8(ascii: "'")),
    ]
}

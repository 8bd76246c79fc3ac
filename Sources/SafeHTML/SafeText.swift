extension SafeHTML {
    /// The words of HTML that `sanitise` or `fromPlainText` gave, in one pass: some nanoseconds a byte, so that answers
    /// may carry text without storing it twice. Paragraphs are apart by an empty line, list items have bullets or
    /// numbers.
    ///
    /// Of other HTML it gives some text, never a fault; use `text` for that.
    public static func text(ofSafe html: String) -> String {
        var html = html
        return html.withUTF8 { bytes in
            var scanner = SafeTextScanner(capacity: bytes.count)
            scanner.read(bytes)
            return String(decoding: scanner.out, as: UTF8.self)
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
                var end = index + 1
                while end < bytes.count, bytes[end] != UInt8(ascii: "<"), bytes[end] != UInt8(ascii: "&") { end += 1 }
                put(UnsafeBufferPointer(rebasing: bytes[index..<end]))
                index = end
            }
        }
    }

    private mutating func put(_ text: some Collection<UInt8>) {
        if breaks > 0 {
            // White space between blocks is the writer's, not the author's.
            if text.allSatisfy({ $0 == 0x20 || $0 == 0x0A }) { return }
            if !out.isEmpty { out.append(contentsOf: repeatElement(0x0A, count: breaks)) }
            breaks = 0
        }
        afterMark = false
        out.append(contentsOf: text)
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
        // The longest name of a block is /blockquote.
        if nameEnd - start <= 11 {
            act(on: String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<nameEnd]), as: UTF8.self))
        }
        return end + 1
    }

    private mutating func act(on name: String) {
        switch name {
        case "br": breaks += 1
        case "p", "/p", "pre", "/pre", "blockquote", "/blockquote", "hr", "h2", "/h2", "h3", "/h3", "h4", "/h4", "h5",
            "/h5",
            "h6", "/h6":
            // Within a list item a paragraph does not part from the item's own mark.
            breaks = max(breaks, afterMark ? 0 : 2)
        case "ul", "ol":
            breaks = max(breaks, lists.isEmpty ? 2 : 1)
            if lists.count < Self.listsMax { lists.append(name == "ol" ? 1 : 0) }
        case "/ul", "/ol":
            if !lists.isEmpty { lists.removeLast() }
            breaks = max(breaks, lists.isEmpty ? 2 : 1)
        case "li":
            breaks = max(breaks, 1)
            guard let number = lists.last else { return }
            put(Array((number == 0 ? "• " : "\(number). ").utf8))
            afterMark = true
            if number > 0 { lists[lists.count - 1] = number + 1 }
        case "/li": breaks = max(breaks, 1)
        default: break
        }
    }

    /// One of the five that the sanitiser writes; any other ampersand is itself.
    private mutating func entity(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        for (name, byte) in Self.entities where start + name.count <= bytes.count {
            if bytes[start..<(start + name.count)].elementsEqual(name) {
                put(CollectionOfOne(byte))
                return start + name.count
            }
        }
        put(CollectionOfOne(UInt8(ascii: "&")))
        return start + 1
    }

    private static let entities: [([UInt8], UInt8)] = [
        (Array("&amp;".utf8), UInt8(ascii: "&")), (Array("&lt;".utf8), UInt8(ascii: "<")),
        (Array("&gt;".utf8), UInt8(ascii: ">")), (Array("&quot;".utf8), UInt8(ascii: "\"")),
        (Array("&#39;".utf8), UInt8(ascii: "'")),
    ]
}

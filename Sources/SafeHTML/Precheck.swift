/// Refuses what would keep the parser busy, before the parser sees it: it walks all open elements at every tag and all
/// earlier attributes at every attribute. Every "<" that could begin a tag is measured, whatever state the parser would
/// be in there, so nothing the parser takes for a tag has been overlooked.
func checkTags(_ html: [UInt8], tagsMax: Int) throws(SafeHTML.Failure) {
    var tags = 0
    // A page without nested "<" is read about once. This many steps are a twentieth of a second.
    var steps = html.count * 8 + (1 << 20)
    var index = 0
    while let start = html[index...].firstIndex(of: UInt8(ascii: "<")) {
        index = start + 1
        guard beginsTag(html, at: index) else { continue }
        tags += 1
        guard tags <= tagsMax else { throw .tooManyTags }
        let (attributes, length) = measureTag(html[index...])
        steps -= length
        guard attributes <= attributesMax, steps > 0 else { throw .tooManyTags }
    }
}

/// More attributes than any editor writes on one element.
private let attributesMax = 200

private func beginsTag(_ html: [UInt8], at index: Int) -> Bool {
    guard index < html.count else { return false }
    if html[index] == UInt8(ascii: "/") { return index + 1 < html.count && isLetter(html[index + 1]) }
    return isLetter(html[index])
}

func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
}

/// How many attributes the tag has at most, and how far it goes.
private func measureTag(_ tag: ArraySlice<UInt8>) -> (attributes: Int, length: Int) {
    var attributes = 0
    var quote: UInt8?
    var afterEquals = false
    var inWord = true
    for (offset, byte) in tag.enumerated() {
        if let open = quote {
            if byte == open { quote = nil }
            continue
        }
        switch byte {
        case UInt8(ascii: ">"): return (attributes, offset + 1)
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
            // Only a value begins with a quotation mark; elsewhere it is part of a name.
            if afterEquals { quote = byte } else if !inWord { attributes += 1 }
            inWord = false
            afterEquals = false
        case UInt8(ascii: "="): afterEquals = true
        case 9, 10, 12, 13, 32, UInt8(ascii: "/"): inWord = false
        default:
            if !inWord && !afterEquals { attributes += 1 }
            inWord = true
            afterEquals = false
        }
        if attributes > attributesMax { return (attributes, offset + 1) }
    }
    return (attributes, tag.count)
}

/// The text between tags with no regard to structure, in one pass: for HTML that is too much for the parser. Tags
/// become line ends, scripts and styles go.
func stripTags(_ html: String, bytesMax: Int) -> String {
    let html = Array(html.utf8.prefix(bytesMax))
    var text: [UInt8] = []
    var index = 0
    while index < html.count {
        guard html[index] == UInt8(ascii: "<") else {
            text.append(html[index])
            index += 1
            continue
        }
        let end = html[index...].firstIndex(of: UInt8(ascii: ">")) ?? html.count
        let isHidden = ["script", "style"].contains { name in
            html[(index + 1)...].prefix(name.utf8.count).map { $0 | 0x20 }.elementsEqual(name.utf8)
        }
        text.append(UInt8(ascii: "\n"))
        index = isHidden ? endOfHidden(html, from: end) : end + 1
    }
    return String(decoding: text, as: UTF8.self)
}

private func endOfHidden(_ html: [UInt8], from start: Int) -> Int {
    var index = start
    while index + 1 < html.count {
        if html[index] == UInt8(ascii: "<"), html[index + 1] == UInt8(ascii: "/") { return index }
        index += 1
    }
    return html.count
}

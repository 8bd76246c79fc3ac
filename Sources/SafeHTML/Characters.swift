/// White space as HTML collapses it.
func isSpace(_ byte: UInt8) -> Bool {
    byte == 32 || byte == 10 || byte == 9 || byte == 13 || byte == 12
}

/// Whether there is nothing to read: white space and no-break spaces (C2 A0) only. Editors leave `<p>&nbsp;</p>`.
func isBlank(_ text: ArraySlice<UInt8>) -> Bool {
    var index = text.startIndex
    while index < text.endIndex {
        if isSpace(text[index]) {
            index += 1
        } else if text[index] == 0xC2 && index + 1 < text.endIndex && text[index + 1] == 0xA0 {
            index += 2
        } else {
            return false
        }
    }
    return true
}

/// The text without what nobody can read: control characters (C0 but for white space, DEL, C1), zero-width spaces
/// (U+200B), byte order marks (U+FEFF), and U+FFFD, which the parser puts in the place of control characters.
func withoutControls(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var index = text.startIndex
    while index < text.endIndex {
        let hidden = hiddenLength(text[index...])
        if hidden == 0 { result.append(text[index]) }
        index += max(hidden, 1)
    }
    return result
}

private func hiddenLength(_ text: ArraySlice<UInt8>) -> Int {
    let start = text.startIndex
    switch text[start] {
    case 9, 10, 12, 13: return 0
    case 0..<32, 0x7F: return 1
    case 0xC2: return text.count > 1 && (0x80...0x9F).contains(text[start + 1]) ? 2 : 0
    case 0xE2: return text.prefix(3) == [0xE2, 0x80, 0x8B] ? 3 : 0
    case 0xEF: return text.prefix(3) == [0xEF, 0xBB, 0xBF] || text.prefix(3) == [0xEF, 0xBF, 0xBD] ? 3 : 0
    default: return 0
    }
}

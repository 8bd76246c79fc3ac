/// Checks UTF-8 (RFC 3629) as it arrives, in pieces of any size, and refuses at the first byte that cannot be right.
struct UTF8Checker: Equatable {
    /// Continuation bytes that the character still needs.
    private var missing: UInt8 = 0
    /// What the next continuation byte may be: narrower after some lead bytes, so that overlong forms, surrogates and
    /// what lies above U+10FFFF are seen at once.
    private var low: UInt8 = 0x80
    private var high: UInt8 = 0xBF

    /// Whether no character is left unfinished.
    var isComplete: Bool { missing == 0 }

    /// - Returns: false when the text cannot be UTF-8 whatever follows.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        let count = bytes.count
        while index < count {
            if missing == 0 {
                // Eight ASCII bytes at a time: most text.
                while index + 8 <= count {
                    let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    guard word & 0x8080_8080_8080_8080 == 0 else { break }
                    index += 8
                }
                guard index < count else { break }
            }
            guard step(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    @inline(__always)
    private mutating func step(_ byte: UInt8) -> Bool {
        if missing > 0 {
            guard byte >= low, byte <= high else { return false }
            missing -= 1
            low = 0x80
            high = 0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, low) = (2, 0xA0)
        case 0xED: (missing, high) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, low) = (3, 0x90)
        case 0xF4: (missing, high) = (3, 0x8F)
        case 0xF1...0xF3: missing = 3
        default: return false
        }
        return true
    }
}

import Foundation

/// Writes headers and bodies of a mail in lines that end in CRLF.
struct MailWriter {
    /// RFC 5322 section 2.1.1: a line should have at most 78 characters.
    static let lineColumnsMax = 78
    /// RFC 2045 section 6.7: of quoted-printable, with the "=" of a soft break.
    static let quotedColumnsMax = 76
    /// Bytes in one encoded-word: as base64 between `=?utf-8?B?` and `?=` they are 68 characters, so that a word fits
    /// on the line with `Subject:` (RFC 2047 section 2 allows 75).
    static let encodedWordBytesMax = 42

    private(set) var bytes: [UInt8] = []

    mutating func line(_ text: String) {
        bytes.append(contentsOf: text.utf8)
        bytes.append(contentsOf: [0x0D, 0x0A])
    }

    /// A header whose value is ours: ASCII that was checked before. Folded at its spaces.
    mutating func field(_ name: String, _ value: String) {
        words("\(name):", value.split(separator: " ").map(String.init))
    }

    /// A header of free text.
    mutating func unstructured(_ name: String, _ text: String) {
        let text = Self.clean(text)
        if Self.isPlain(text) {
            words("\(name):", text.split(separator: " ").map(String.init))
        } else {
            words("\(name):", Self.encodedWords(text))
        }
    }

    mutating func mailbox(_ name: String, _ mailbox: MailMessage.Mailbox) {
        let display = Self.clean(mailbox.name)
        let address = "<\(mailbox.address)>"
        if display.isEmpty {
            words("\(name):", [address])
        } else if Self.isPlain(display), display.utf8.count < 60 {
            let escaped = display.replacingOccurrences(of: "\\", with: "\\\\")
            let quoted = escaped.replacingOccurrences(of: "\"", with: "\\\"")
            words("\(name):", ["\"\(quoted)\"", address])
        } else {
            words("\(name):", Self.encodedWords(display) + [address])
        }
    }

    /// One header, folded before a word that would make the line too long. A word that is too long alone stands alone.
    private mutating func words(_ start: String, _ words: [String]) {
        var current = start
        for word in words {
            if current.utf8.count + 1 + word.utf8.count > Self.lineColumnsMax, current != start {
                line(current)
                current = ""
            }
            current += " " + word
        }
        line(current)
    }

    /// Lines of free text in quoted-printable (RFC 2045 section 6.7).
    mutating func quotedPrintable(_ text: String) {
        // On bytes, because Swift takes CR LF for one character.
        var source = Array(text.utf8)
        source.removeAll { $0 == 0x0D }
        for var part in source.split(separator: 0x0A, omittingEmptySubsequences: false) {
            var column = 0
            while let byte = part.popFirst() {
                // A space at the end of a line would be lost on the way.
                let literal =
                    (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "=")
                    || (byte == 0x20 || byte == 0x09) && !part.isEmpty
                let width = literal ? 1 : 3
                // One column is kept for the "=" of a soft break.
                if column + width > Self.quotedColumnsMax - (part.isEmpty ? 0 : 1) {
                    line("=")
                    column = 0
                }
                if literal { bytes.append(byte) } else { appendEscape(byte) }
                column += width
            }
            line("")
        }
    }

    private mutating func appendEscape(_ byte: UInt8) {
        let digits = Array("0123456789ABCDEF".utf8)
        bytes.append(contentsOf: [UInt8(ascii: "="), digits[Int(byte >> 4)], digits[Int(byte & 15)]])
    }

    /// Control characters, line breaks among them, become spaces: nothing in a value can end its header.
    static func clean(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isControl =
                scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
                || scalar.value == 0x2028 || scalar.value == 0x2029
            scalars.append(isControl ? " " : scalar)
        }
        return String(scalars).trimmingCharacters(in: .whitespaces)
    }

    /// Can stand as it is: ASCII, nothing that looks like an encoded-word, no word too long to fold, and no run of
    /// spaces that folding would lose.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && !text.contains("=?") && !text.contains("  ")
            && text.split(separator: " ").allSatisfy { $0.utf8.count <= 60 }
    }

    /// RFC 2047 in base64; no word splits a character.
    static func encodedWords(_ text: String) -> [String] {
        var words: [String] = []
        var chunk: [UInt8] = []
        func end() {
            words.append("=?utf-8?B?\(Data(chunk).base64EncodedString())?=")
            chunk = []
        }
        for scalar in text.unicodeScalars {
            let encoded = Array(String(scalar).utf8)
            if chunk.count + encoded.count > encodedWordBytesMax { end() }
            chunk.append(contentsOf: encoded)
        }
        if !chunk.isEmpty || words.isEmpty { end() }
        return words
    }

    /// RFC 5322 section 3.3, in UTC.
    static func date(_ date: Date) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0) ?? .current
        let parts = calendar.dateComponents([.weekday, .day, .month, .year, .hour, .minute, .second], from: date)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ value: Int?) -> String { (value ?? 0) < 10 ? "0\(value ?? 0)" : "\(value ?? 0)" }
        let day = days[((parts.weekday ?? 1) - 1) % 7]
        let month = months[((parts.month ?? 1) - 1) % 12]
        let time = "\(two(parts.hour)):\(two(parts.minute)):\(two(parts.second))"
        return "\(day), \(two(parts.day)) \(month) \(parts.year ?? 1970) \(time) +0000"
    }
}

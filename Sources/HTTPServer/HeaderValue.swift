/// A header's value with parameters: `form-data; name="a"; filename="b.pdf"` (RFC 9110 §5.6.6).
public struct HeaderValue: Sendable, Equatable {
    public let value: String
    /// By lower-case name. Quotes are taken off and `\"` and `\\` unescaped.
    public let parameters: [String: String]

    /// Nil when it is malformed, or when a parameter is given twice: which one counts would be a guess.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count, bytes[index] != UInt8(ascii: ";") { index += 1 }
        value = String(decoding: Self.trimmed(bytes[..<index]), as: UTF8.self)
        guard !value.isEmpty else { return nil }
        var parameters: [String: String] = [:]
        while index < bytes.count {
            // At a semicolon.
            index += 1
            while index < bytes.count, bytes[index] == 0x20 || bytes[index] == 0x09 { index += 1 }
            if index == bytes.count { break }
            let start = index
            while index < bytes.count, isToken(bytes[index]) { index += 1 }
            guard index > start, index < bytes.count, bytes[index] == UInt8(ascii: "=") else { return nil }
            let name = String(decoding: bytes[start..<index], as: UTF8.self).lowercased()
            index += 1
            guard let content = Self.content(bytes, &index), parameters.updateValue(content, forKey: name) == nil else {
                return nil
            }
            while index < bytes.count, bytes[index] == 0x20 || bytes[index] == 0x09 { index += 1 }
            guard index == bytes.count || bytes[index] == UInt8(ascii: ";") else { return nil }
        }
        self.parameters = parameters
    }

    /// A token or a quoted string. Names of files may hold any UTF-8 within quotes.
    private static func content(_ bytes: [UInt8], _ index: inout Int) -> String? {
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else {
            let start = index
            while index < bytes.count, isToken(bytes[index]) || bytes[index] == UInt8(ascii: "/") { index += 1 }
            return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
        }
        index += 1
        var content: [UInt8] = []
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            // A backslash before anything else stands for itself: some clients send Windows paths.
            let isEscaped = next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\")
            if bytes[index] == UInt8(ascii: "\\"), isEscaped { index += 1 }
            content.append(bytes[index])
            index += 1
        }
        guard index < bytes.count else { return nil }
        index += 1
        return String(decoding: content, as: UTF8.self)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return bytes
    }
}

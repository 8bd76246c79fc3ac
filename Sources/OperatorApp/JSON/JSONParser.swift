/// A strict reader of one JSON text (RFC 8259). Says where a mistake is, which Foundation's does not.
struct JSONParser {
    struct Failure: Error, Equatable {
        let offset: Int
        let reason: String
    }

    /// Deeper nesting has no use here, and recursion has a stack.
    static let depthMax = 64

    private let bytes: [UInt8]
    private var at = 0
    private var depth = 0

    static func parse(_ bytes: [UInt8]) throws(Failure) -> JSONValue {
        var parser = JSONParser(bytes: bytes)
        let value = try parser.value()
        parser.skipSpace()
        guard parser.at == bytes.count else { throw parser.failure("something follows the value") }
        return value
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func failure(_ reason: String) -> Failure { Failure(offset: at, reason: reason) }
    private var current: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while at < bytes.count {
            let byte = bytes[at]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            at += 1
        }
    }

    private mutating func value() throws(Failure) -> JSONValue {
        skipSpace()
        guard let byte = current else { throw failure("the text ends where a value is expected") }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), 0x30...0x39: return .number(try number())
        default: throw failure("a value is expected")
        }
    }

    private mutating func enter() throws(Failure) {
        at += 1
        depth += 1
        guard depth <= Self.depthMax else { throw failure("values are nested over \(Self.depthMax) deep") }
    }

    private mutating func object() throws(Failure) -> JSONObject {
        try enter()
        defer { depth -= 1 }
        var object = JSONObject()
        object.members.reserveCapacity(16)
        skipSpace()
        if take(UInt8(ascii: "}")) { return object }
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else { throw failure("a member's name is expected") }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw failure("\":\" is expected") }
            object.members.append(JSONObject.Member(name: name, value: try value()))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else { throw failure("\",\" or \"}\" is expected") }
            return object
        }
    }

    private mutating func array() throws(Failure) -> [JSONValue] {
        try enter()
        defer { depth -= 1 }
        var items: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return items }
        while true {
            items.append(try value())
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "]")) else { throw failure("\",\" or \"]\" is expected") }
            return items
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        at += 1
        return true
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(Failure) -> JSONValue {
        let length = word.utf8CodeUnitCount
        let matches =
            at + length <= bytes.count
            && word.withUTF8Buffer { $0.elementsEqual(bytes[at..<at + length]) }
        guard matches else { throw failure("a value is expected") }
        at += length
        return value
    }

    private mutating func number() throws(Failure) -> String {
        let start = at
        _ = take(UInt8(ascii: "-"))
        guard let first = current, (0x30...0x39).contains(first) else { throw failure("a digit is expected") }
        at += 1
        if first != 0x30 { skipDigits() }
        if take(UInt8(ascii: ".")) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        return String(decoding: bytes[start..<at], as: UTF8.self)
    }

    private mutating func digits() throws(Failure) {
        guard let byte = current, (0x30...0x39).contains(byte) else { throw failure("a digit is expected") }
        skipDigits()
    }

    private mutating func skipDigits() {
        while let byte = current, (0x30...0x39).contains(byte) { at += 1 }
    }
}

extension JSONParser {
    private mutating func string() throws(Failure) -> String {
        at += 1
        let start = at
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                guard let text = String(validating: bytes[start..<at], as: UTF8.self) else {
                    throw failure("a text is not UTF-8")
                }
                at += 1
                return text
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            guard byte >= 0x20 else { throw failure("a control character stands in a text") }
            at += 1
        }
        throw failure("a text has no end")
    }

    /// The slower way, for a text with backslashes.
    private mutating func escapedString(from start: Int) throws(Failure) -> String {
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw failure("a text is not UTF-8") }
                return text
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0x20...: text.append(byte)
            default: throw failure("a control character stands in a text")
            }
        }
        throw failure("a text has no end")
    }

    private mutating func escape(into text: inout [UInt8]) throws(Failure) {
        guard let byte = current else { throw failure("a text has no end") }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var code = try hex()
            if (0xD800...0xDBFF).contains(code), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) {
                let low = try hex()
                guard (0xDC00...0xDFFF).contains(low) else { throw failure("half of a surrogate pair") }
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw failure("half of a surrogate pair") }
            text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        default: throw failure("an escape that JSON has not")
        }
    }

    private mutating func hex() throws(Failure) -> UInt32 {
        guard at + 4 <= bytes.count else { throw failure("a text has no end") }
        var code: UInt32 = 0
        for byte in bytes[at..<at + 4] {
            switch byte {
            case 0x30...0x39: code = code << 4 | UInt32(byte - 0x30)
            case 0x41...0x46: code = code << 4 | UInt32(byte - 0x37)
            case 0x61...0x66: code = code << 4 | UInt32(byte - 0x57)
            default: throw failure("four hexadecimal digits are expected")
            }
        }
        at += 4
        return code
    }
}

/// Why a text is no JSON, or not the JSON that was asked for. Shown to the client.
struct JSONFault: Error, Equatable {
    let message: String
}

/// Reads JSON (RFC 8259) strictly and in one pass, member by member: no tree. Its text is UTF-8 that has been checked.
struct JSONReader {
    /// Arrays and objects within each other. Ours have two levels.
    static let depthMax = 16

    private let bytes: [UInt8]
    private var index = 0
    private var depth = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Reads an object; `member` reads each value, or skips it.
    mutating func object(_ member: (inout JSONReader, String) throws(JSONFault) -> Void) throws(JSONFault) {
        try expect("{")
        try enter()
        skipSpace()
        if take("}") { return leave() }
        repeat {
            skipSpace()
            let key = try string()
            skipSpace()
            try expect(":")
            skipSpace()
            try member(&self, key)
            skipSpace()
        } while take(",")
        try expect("}")
        leave()
    }

    /// The whole text is one object.
    mutating func document(_ member: (inout JSONReader, String) throws(JSONFault) -> Void) throws(JSONFault) {
        skipSpace()
        try object(member)
        skipSpace()
        guard index == bytes.count else { throw fault("text after the object") }
    }

    mutating func string() throws(JSONFault) -> String {
        try expect("\"")
        let start = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "\""), bytes[index] != UInt8(ascii: "\\") {
            guard bytes[index] >= 0x20 else { throw fault("a control character in a string") }
            index += 1
        }
        guard index < bytes.count else { throw fault("a string without an end") }
        if bytes[index] == UInt8(ascii: "\"") {
            index += 1
            return String(decoding: bytes[start..<index - 1], as: UTF8.self)
        }
        return try escapedString(from: start)
    }

    private mutating func escapedString(from start: Int) throws(JSONFault) -> String {
        var text = Array(bytes[start..<index])
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try appendEscape(to: &text)
            case 0..<0x20: throw fault("a control character in a string")
            default: text.append(byte)
            }
        }
        throw fault("a string without an end")
    }

    private mutating func appendEscape(to text: inout [UInt8]) throws(JSONFault) {
        guard index < bytes.count else { throw fault("a string without an end") }
        let byte = bytes[index]
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var value = try hexadecimal()
            if (0xD800..<0xDC00).contains(value) {
                try expect("\\")
                try expect("u")
                let low = try hexadecimal()
                guard (0xDC00..<0xE000).contains(low) else { throw fault("half a surrogate pair") }
                value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(value) else { throw fault("half a surrogate pair") }
            text.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
        default: throw fault("an unknown escape")
        }
    }

    private mutating func hexadecimal() throws(JSONFault) -> UInt32 {
        guard index + 4 <= bytes.count else { throw fault("a string without an end") }
        var value: UInt32 = 0
        for _ in 0..<4 {
            switch bytes[index] {
            case let digit where (0x30...0x39).contains(digit): value = value << 4 | UInt32(digit - 0x30)
            case let digit where (0x41...0x46).contains(digit): value = value << 4 | UInt32(digit - 0x37)
            case let digit where (0x61...0x66).contains(digit): value = value << 4 | UInt32(digit - 0x57)
            default: throw fault("an unknown escape")
            }
            index += 1
        }
        return value
    }

    /// A whole number without fraction and exponent, within 64 bits.
    mutating func integer() throws(JSONFault) -> Int64 {
        let start = index
        try skipNumber()
        guard let value = Int64(String(decoding: bytes[start..<index], as: UTF8.self)) else {
            throw fault("not a whole number")
        }
        return value
    }

    mutating func skipValue() throws(JSONFault) {
        guard index < bytes.count else { throw fault("a value is missing") }
        switch bytes[index] {
        case UInt8(ascii: "{"): try object { reader, _ throws(JSONFault) in try reader.skipValue() }
        case UInt8(ascii: "["): try skipArray()
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "t"): try expect("true")
        case UInt8(ascii: "f"): try expect("false")
        case UInt8(ascii: "n"): try expect("null")
        default: try skipNumber()
        }
    }

    private mutating func skipArray() throws(JSONFault) {
        try expect("[")
        try enter()
        skipSpace()
        if take("]") { return leave() }
        repeat {
            skipSpace()
            try skipValue()
            skipSpace()
        } while take(",")
        try expect("]")
        leave()
    }

    private mutating func skipNumber() throws(JSONFault) {
        _ = take("-")
        if !take("0") { try skipDigits() }
        if take(".") { try skipDigits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try skipDigits()
        }
    }

    private mutating func skipDigits() throws(JSONFault) {
        let start = index
        while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
        guard index > start else { throw fault("not a value") }
    }

    private mutating func enter() throws(JSONFault) {
        depth += 1
        guard depth <= Self.depthMax else { throw fault("too deep") }
    }

    private mutating func leave() { depth -= 1 }

    private mutating func skipSpace() {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x09, 0x0A, 0x0D: index += 1
            default: return
            }
        }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    private mutating func expect(_ text: StaticString) throws(JSONFault) {
        let count = text.utf8CodeUnitCount
        guard index + count <= bytes.count, text.withUTF8Buffer({ bytes[index..<index + count].elementsEqual($0) })
        else { throw fault("not valid JSON") }
        index += count
    }

    private func fault(_ what: String) -> JSONFault {
        JSONFault(message: "The frame cannot be read: \(what) at byte \(index).")
    }
}

/// Reads JSON (RFC 8259) from bytes, once and from left to right: bodies come from anybody, and Foundation's decoder
/// takes seconds of a loop for a megabyte of zeros. Values are pulled one by one, or as a tree by `value()`.
///
/// Refused besides malformed text: half a surrogate pair, and more than the limits; in a tree also a name twice in one
/// object, which two readers could understand differently, and numbers that no Double holds. `\u0000` is read: the
/// field that has it is told with its path.
public struct JSONReader {
    private let bytes: [UInt8]
    private let limits: JSONLimits
    private var at = 0
    private var depth = 0
    private var values = 0

    public init(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) {
        self.bytes = bytes
        self.limits = limits
    }

    /// The one value that the bytes are: `body` reads it.
    public mutating func document<T>(_ body: (inout JSONReader) throws(JSONFault) -> T) throws(JSONFault) -> T {
        skipSpace()
        let value = try body(&self)
        skipSpace()
        guard at == bytes.count else { throw fault("something follows the value") }
        return value
    }

    /// What is wrong with what was read last, at this place.
    public func fault(_ reason: String) -> JSONFault { JSONFault(reason: reason, offset: at) }

    /// What comes next, by its first byte.
    public enum Kind: Sendable { case object, array, string, number, bool, null }

    /// - Throws: `JSONFault` when what comes is no value, and beyond `valuesMax`.
    public mutating func kind() throws(JSONFault) -> Kind {
        values += 1
        guard values <= limits.valuesMax else { throw fault("more than \(limits.valuesMax) values") }
        guard let byte = next else { throw fault("the text ends where a value is expected") }
        switch byte {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), 0x30...0x39: return .number
        default: throw fault("a value is expected")
        }
    }

    // MARK: Structure

    /// Reads an object; `member` reads each value, or skips it.
    public mutating func object(
        _ member: (inout JSONReader, String) throws(JSONFault) -> Void
    ) throws(JSONFault) {
        guard take(UInt8(ascii: "{")) else { throw fault("an object is expected") }
        try enter()
        skipSpace()
        if take(UInt8(ascii: "}")) { return leave() }
        repeat {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw fault("a member's name is expected") }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw fault("\":\" is expected") }
            skipSpace()
            try member(&self, name)
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw fault("\",\" or \"}\" is expected") }
        leave()
    }

    /// Reads an array; `element` reads each value, or skips it.
    public mutating func array(_ element: (inout JSONReader) throws(JSONFault) -> Void) throws(JSONFault) {
        guard take(UInt8(ascii: "[")) else { throw fault("an array is expected") }
        try enter()
        skipSpace()
        if take(UInt8(ascii: "]")) { return leave() }
        repeat {
            skipSpace()
            try element(&self)
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw fault("\",\" or \"]\" is expected") }
        leave()
    }

    private mutating func enter() throws(JSONFault) {
        depth += 1
        guard depth <= limits.depthMax else { throw fault("nested more than \(limits.depthMax) deep") }
    }

    private mutating func leave() { depth -= 1 }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while at < bytes.count {
            let byte = bytes[at]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            at += 1
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        at += 1
        return true
    }

    // MARK: Words and numbers

    public mutating func bool() throws(JSONFault) -> Bool {
        if next == UInt8(ascii: "t") {
            try word("true")
            return true
        }
        try word("false")
        return false
    }

    public mutating func null() throws(JSONFault) { try word("null") }

    private mutating func word(_ word: StaticString) throws(JSONFault) {
        guard word.withUTF8Buffer({ bytes[at...].starts(with: $0) }) else { throw fault("a value is expected") }
        at += word.utf8CodeUnitCount
    }

    /// A whole number without fraction and exponent, within 64 bits.
    public mutating func integer() throws(JSONFault) -> Int64 {
        guard let value = Int64(try numberText()) else { throw fault("not a whole number") }
        return value
    }

    /// A number's text as it stands.
    public mutating func numberText() throws(JSONFault) -> String { try scanNumber().text }

    private mutating func scanNumber() throws(JSONFault) -> (text: String, isWhole: Bool) {
        let start = at
        _ = take(UInt8(ascii: "-"))
        // Nothing follows a leading zero.
        if !take(UInt8(ascii: "0")) { try digits() }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        guard at - start <= limits.numberBytesMax else { throw fault("a number that is out of range") }
        return (String(decoding: bytes[start..<at], as: UTF8.self), isWhole)
    }

    private mutating func digits() throws(JSONFault) {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        guard at > start else { throw fault("a digit is expected") }
    }

    // MARK: Strings

    public mutating func string() throws(JSONFault) -> String {
        guard take(UInt8(ascii: "\"")) else { throw fault("a string is expected") }
        let start = at
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                let text = try valid(bytes[start..<at])
                at += 1
                return text
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            guard byte >= 0x20 else { throw fault("a control character in a string") }
            at += 1
        }
        throw fault("a string without an end")
    }

    private func valid(_ text: some Collection<UInt8>) throws(JSONFault) -> String {
        guard let text = String(validating: text, as: UTF8.self) else { throw fault("text that is not UTF-8") }
        return text
    }

    /// The slower way, for a string with backslashes.
    private mutating func escapedString(from start: Int) throws(JSONFault) -> String {
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return try valid(text)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw fault("a control character in a string")
            default: text.append(byte)
            }
        }
        throw fault("a string without an end")
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONFault) {
        guard let letter = next else { throw fault("a string without an end") }
        at += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): try scalar(into: &text)
        default: throw fault("an unknown escape")
        }
    }

    private mutating func scalar(into text: inout [UInt8]) throws(JSONFault) {
        var value = try fourDigits()
        if (0xD800...0xDBFF).contains(value) {
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw fault("half a surrogate pair") }
            let low = try fourDigits()
            guard (0xDC00...0xDFFF).contains(low) else { throw fault("half a surrogate pair") }
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        // What is left of the surrogates is a second half without its first.
        guard let scalar = Unicode.Scalar(value) else { throw fault("half a surrogate pair") }
        text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }

    private mutating func fourDigits() throws(JSONFault) -> UInt32 {
        guard bytes.count - at >= 4 else { throw fault("a string without an end") }
        var value: UInt32 = 0
        for byte in bytes[at..<(at + 4)] {
            switch byte {
            case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
            case 0x41...0x46: value = value << 4 | UInt32(byte - 0x41 + 10)
            case 0x61...0x66: value = value << 4 | UInt32(byte - 0x61 + 10)
            default: throw fault("four hexadecimal digits are expected")
            }
        }
        at += 4
        return value
    }
}

// MARK: Whole values

extension JSONReader {
    /// Whatever comes, as a tree.
    public mutating func value() throws(JSONFault) -> JSONValue {
        switch try kind() {
        case .object:
            var members: [String: JSONValue] = [:]
            try object { reader, name throws(JSONFault) in
                guard members.updateValue(try reader.value(), forKey: name) == nil else {
                    throw reader.fault("a name twice in one object")
                }
            }
            return .object(members)
        case .array:
            var elements: [JSONValue] = []
            try array { reader throws(JSONFault) in elements.append(try reader.value()) }
            return .array(elements)
        case .string: return .string(try string())
        case .bool: return .bool(try bool())
        case .number: return try number()
        case .null:
            try null()
            return .null
        }
    }

    /// Whole numbers exactly, as long as they fit; `1.0` and `1e3` are whole too.
    private mutating func number() throws(JSONFault) -> JSONValue {
        let (text, isWhole) = try scanNumber()
        if isWhole, let int = Int64(text) { return .int(int) }
        guard let double = Double(text), double.isFinite else { throw fault("a number that is out of range") }
        // Beyond 2^53 a Double stands for several whole numbers.
        if !isWhole, abs(double) <= 9_007_199_254_740_992, let int = Int64(exactly: double) { return .int(int) }
        return .double(double)
    }

    /// Passes over whatever comes; it must be JSON all the same.
    public mutating func skipValue() throws(JSONFault) {
        switch try kind() {
        case .object: try object { reader, _ throws(JSONFault) in try reader.skipValue() }
        case .array: try array { reader throws(JSONFault) in try reader.skipValue() }
        case .string: _ = try string()
        case .bool: _ = try bool()
        case .number: _ = try numberText()
        case .null: try null()
        }
    }
}

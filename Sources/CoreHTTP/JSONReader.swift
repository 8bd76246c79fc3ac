import Core

/// Reads JSON (RFC 8259) from bytes, once and from left to right: bodies come from anybody, and Foundation's decoder
/// takes seconds of a loop for a megabyte of zeros. It also lets through what two readers could understand differently.
///
/// Refused besides malformed text: a name twice in one object, half a surrogate pair, numbers that no Double holds, and
/// more depth or values than the limits below. `\u0000` is read: the field that has it is told with its path.
struct JSONReader {
    /// Nested arrays and objects. No body of ours has more than four; each level takes some of a loop's stack.
    static let depthMax = 64
    /// All values of a document together: each takes many times the two bytes that it may have on the wire.
    static let valuesMax = 50_000
    /// Digits, sign and exponent of one number. A Double written out has 24.
    static let numberBytesMax = 100

    private let bytes: [UInt8]
    private var at = 0
    private var depth = 0
    private var values = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The one value that the bytes are.
    mutating func document() throws(AppError) -> JSONValue {
        let value = try value()
        skipSpace()
        guard at == bytes.count else { throw malformed }
        return value
    }

    private var malformed: AppError { AppError(.invalid, "The body is not valid JSON (at byte \(at)).") }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while at < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[at]) { at += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        at += 1
        return true
    }

    private mutating func value() throws(AppError) -> JSONValue {
        values += 1
        guard values <= Self.valuesMax else {
            throw AppError(.invalid, "The body has more than \(Self.valuesMax) values.")
        }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return .object(try nested { reader throws(AppError) in try reader.members() })
        case UInt8(ascii: "["): return .array(try nested { reader throws(AppError) in try reader.elements() })
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func nested<T>(_ body: (inout JSONReader) throws(AppError) -> T) throws(AppError) -> T {
        guard depth < Self.depthMax else {
            throw AppError(.invalid, "The body is nested more than \(Self.depthMax) deep.")
        }
        at += 1
        depth += 1
        let value = try body(&self)
        depth -= 1
        return value
    }

    private mutating func elements() throws(AppError) -> [JSONValue] {
        skipSpace()
        if take(UInt8(ascii: "]")) { return [] }
        var elements: [JSONValue] = []
        repeat {
            elements.append(try value())
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw malformed }
        return elements
    }

    private mutating func members() throws(AppError) -> [String: JSONValue] {
        skipSpace()
        if take(UInt8(ascii: "}")) { return [:] }
        var members: [String: JSONValue] = [:]
        repeat {
            skipSpace()
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw malformed }
            guard members.updateValue(try value(), forKey: name) == nil else {
                throw AppError(.invalid, "The body has a name twice in one object (before byte \(at)).")
            }
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw malformed }
        return members
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(AppError) -> JSONValue {
        let matches = word.withUTF8Buffer { bytes[at...].starts(with: $0) }
        guard matches else { throw malformed }
        at += word.utf8CodeUnitCount
        return value
    }

    // MARK: Numbers

    private mutating func digits() throws(AppError) {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        guard at > start else { throw malformed }
    }

    /// Whole numbers exactly, as long as they fit; `1.0` and `1e3` are whole too.
    private mutating func number() throws(AppError) -> JSONValue {
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
        guard at - start <= Self.numberBytesMax else { throw outOfRange }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        if isWhole, let int = Int64(text) { return .int(int) }
        guard let double = Double(text), double.isFinite else { throw outOfRange }
        // Beyond 2^53 a Double stands for several whole numbers.
        if !isWhole, abs(double) <= 9_007_199_254_740_992, let int = Int64(exactly: double) { return .int(int) }
        return .double(double)
    }

    private var outOfRange: AppError { AppError(.invalid, "The body has a number that is out of range.") }

    // MARK: Strings

    private mutating func string() throws(AppError) -> String {
        guard take(UInt8(ascii: "\"")) else { throw malformed }
        var text: [UInt8] = []
        var start = at
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                text += bytes[start..<at]
                at += 1
                guard let valid = String(validating: text, as: UTF8.self) else {
                    throw AppError(.invalid, "The body is not UTF-8.")
                }
                return valid
            case UInt8(ascii: "\\"):
                text += bytes[start..<at]
                at += 1
                try escape(into: &text)
                start = at
            case 0..<0x20: throw malformed
            default: at += 1
            }
        }
        throw malformed
    }

    private mutating func escape(into text: inout [UInt8]) throws(AppError) {
        guard let letter = next else { throw malformed }
        at += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): try scalar(into: &text)
        default: throw malformed
        }
    }

    private mutating func scalar(into text: inout [UInt8]) throws(AppError) {
        var value = try fourDigits()
        if (0xD800...0xDBFF).contains(value) {
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw malformed }
            let low = try fourDigits()
            guard (0xDC00...0xDFFF).contains(low) else { throw malformed }
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        // What is left of the surrogates is a second half without its first.
        guard let scalar = Unicode.Scalar(value) else { throw malformed }
        text += UTF8.encode(scalar).map { Array($0) } ?? []
    }

    private mutating func fourDigits() throws(AppError) -> UInt32 {
        guard bytes.count - at >= 4 else { throw malformed }
        var value: UInt32 = 0
        for byte in bytes[at..<(at + 4)] {
            switch byte {
            case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
            case 0x41...0x46: value = value << 4 | UInt32(byte - 0x41 + 10)
            case 0x61...0x66: value = value << 4 | UInt32(byte - 0x61 + 10)
            default: throw malformed
            }
        }
        at += 4
        return value
    }
}

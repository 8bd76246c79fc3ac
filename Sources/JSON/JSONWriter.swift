import Foundation

/// Writes JSON (RFC 8259) straight into bytes: no tree, no reflection. Integers and times are exact.
///
/// Commas are the writer's own business; what is opened by a closure is closed after it.
public struct JSONWriter: ~Copyable {
    private var bytes: ByteBuffer
    private var needsComma = false

    public init(capacity: Int = 512) { bytes = ByteBuffer(capacity: capacity) }

    /// The document as the body of an answer.
    public consuming func finish() -> [UInt8] { bytes.array() }

    // MARK: Structure

    public mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows {
        begin(UInt8(ascii: "{"))
        try body(&self)
        end(UInt8(ascii: "}"))
    }

    public mutating func array<Items: Sequence>(
        _ items: Items, _ body: (inout JSONWriter, Items.Element) throws -> Void
    ) rethrows {
        begin(UInt8(ascii: "["))
        for item in items { try body(&self, item) }
        end(UInt8(ascii: "]"))
    }

    /// A name in an object; the value is what is written next. Names are ours: they need no escapes.
    public mutating func key(_ name: StaticString) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(name)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// A name that is data.
    public mutating func key(text name: String) {
        separate()
        quoted(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    // MARK: Values

    public mutating func value(_ text: String) {
        separate()
        quoted(text)
    }

    /// A text that is there as bytes. They must be UTF-8: nobody looks.
    public mutating func value(utf8 text: UnsafeBufferPointer<UInt8>) {
        separate()
        quoted(text)
    }

    public mutating func value<Number: FixedWidthInteger>(_ number: Number) {
        separate()
        guard Number.bitWidth <= 64 else { return bytes.append(String(number)) }
        let isNegative = number < 0
        var rest = UInt64(number.magnitude)
        bytes.append(upTo: 20) { buffer in
            var digits = 0
            repeat {
                buffer[19 - digits] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
                digits += 1
            } while rest > 0
            let sign = isNegative ? 1 : 0
            if isNegative { buffer[0] = UInt8(ascii: "-") }
            for index in 0..<digits { buffer[sign + index] = buffer[20 - digits + index] }
            return sign + digits
        }
    }

    /// JSON has no infinities and no NaN: they become null.
    public mutating func value(_ number: Double) {
        separate()
        if number.isFinite {
            let text = number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : number.description
            bytes.append(text)
        } else {
            bytes.append("null" as StaticString)
        }
    }

    public mutating func value(_ flag: Bool) {
        separate()
        bytes.append(flag ? "true" : "false" as StaticString)
    }

    /// ISO 8601 with milliseconds and `Z`.
    public mutating func value(_ date: Date) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(upTo: Timestamp.length) { Timestamp.write(date, to: $0) }
        bytes.append(UInt8(ascii: "\""))
    }

    public mutating func null() {
        separate()
        bytes.append("null" as StaticString)
    }

    // MARK: Fields

    public mutating func field(_ name: StaticString, _ text: String) {
        key(name)
        value(text)
    }
    public mutating func field(_ name: StaticString, _ number: some FixedWidthInteger) {
        key(name)
        value(number)
    }
    public mutating func field(_ name: StaticString, _ number: Double) {
        key(name)
        value(number)
    }
    public mutating func field(_ name: StaticString, _ flag: Bool) {
        key(name)
        value(flag)
    }
    public mutating func field(_ name: StaticString, _ date: Date) {
        key(name)
        value(date)
    }
    public mutating func field(_ name: StaticString, orNull text: String?) {
        key(name)
        if let text { value(text) } else { null() }
    }
    public mutating func field(_ name: StaticString, orNull number: (some FixedWidthInteger)?) {
        key(name)
        if let number { value(number) } else { null() }
    }
    public mutating func field(_ name: StaticString, orNull date: Date?) {
        key(name)
        if let date { value(date) } else { null() }
    }
    public mutating func nullField(_ name: StaticString) {
        key(name)
        null()
    }
    public mutating func object(_ name: StaticString, _ body: (inout JSONWriter) throws -> Void) rethrows {
        key(name)
        try object(body)
    }
    public mutating func array<Items: Sequence>(
        _ name: StaticString, _ items: Items, _ body: (inout JSONWriter, Items.Element) throws -> Void
    ) rethrows {
        key(name)
        try array(items, body)
    }

    // MARK: Bytes

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func begin(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func end(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func quoted(_ text: String) {
        var text = text
        text.withUTF8 { quoted($0) }
    }

    private mutating func quoted(_ text: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        // Runs that need no escape are copied whole.
        var start = 0
        while true {
            let end = Self.runEnd(text, from: start)
            bytes.append(UnsafeBufferPointer(rebasing: text[start..<end]))
            guard end < text.count else { break }
            escape(text[end])
            start = end + 1
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The first byte that needs an escape, or the end. Eight bytes at a time: of `x &- n * ones & ~x & highs` the
    /// lowest bit that is set stands in the first byte of `x` below `n` (Lamport, "Multiple byte processing with
    /// full-word instructions", 1975).
    private static func runEnd(_ text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let raw = UnsafeRawBufferPointer(text)
        var index = start
        while index + 8 <= text.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
            let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
            let control = (word &- (ones &* 0x20)) & ~word
            let found = ((quote &- ones) & ~quote | (backslash &- ones) & ~backslash | control) & (ones << 7)
            if found != 0 { return index + found.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < text.count {
            let byte = text[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
            index += 1
        }
        return index
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            bytes.append("u00" as StaticString)
            for digit in [byte >> 4, byte & 15] {
                bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}

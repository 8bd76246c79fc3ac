import Foundation

/// Writes JSON (RFC 8259) straight into bytes: no tree, no reflection. Integers and times are exact.
///
/// Commas are the writer's own business; what is opened by a closure is closed after it.
public struct JSONWriter: ~Copyable {
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    public init(capacity: Int = 512) { bytes.reserveCapacity(capacity) }

    /// The document as the body of an answer.
    public consuming func finish() -> [UInt8] { bytes }

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
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
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

    public mutating func value(_ number: some FixedWidthInteger) {
        separate()
        bytes.append(contentsOf: String(number).utf8)
    }

    /// JSON has no infinities and no NaN: they become null.
    public mutating func value(_ number: Double) {
        separate()
        if number.isFinite {
            let text = number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : number.description
            bytes.append(contentsOf: text.utf8)
        } else {
            bytes.append(contentsOf: "null".utf8)
        }
    }

    public mutating func value(_ flag: Bool) {
        separate()
        bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    }

    /// ISO 8601 with milliseconds and `Z`.
    public mutating func value(_ date: Date) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: Timestamp.text(date).utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    public mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
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
        bytes.append(UInt8(ascii: "\""))
        text.withUTF8 { buffer in
            // Runs that need no escape are copied whole.
            var start = 0
            for index in 0..<buffer.count {
                let byte = buffer[index]
                guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[start..<index]))
                escape(byte)
                start = index + 1
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[start...]))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            let digits = Array("0123456789abcdef".utf8)
            bytes.append(contentsOf: [
                UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0"), digits[Int(byte >> 4)], digits[Int(byte & 15)],
            ])
        }
    }
}

import Foundation

/// A value on its way to PostgreSQL: text that the server parses by the parameter's type, or bytes for `bytea`.
public enum PostgresBind: Sendable, Equatable {
    case null
    case integer(Int64)
    case text(String)
    /// Sent in binary: a `bytea`.
    case bytes([UInt8])
    /// An array literal, `{…}`, in UTF-8.
    case array([UInt8])
    /// A value PostgreSQL has no place for; running the statement throws.
    case refused(PostgresEncodingError)

    /// One value of more bytes than this is refused: such things belong in the object store.
    public static let bytesMax = 64 * 1024 * 1024

    var problem: PostgresEncodingError? {
        switch self {
        case .null, .integer: nil
        case .refused(let error): error
        case .text(let text):
            text.utf8.count > Self.bytesMax ? .tooLarge : (text.utf8.contains(0) ? .nul : nil)
        case .bytes(let bytes): bytes.count > Self.bytesMax ? .tooLarge : nil
        case .array(let bytes): bytes.count > Self.bytesMax ? .tooLarge : (bytes.contains(0) ? .nul : nil)
        }
    }
}

/// Why a value cannot be bound. Says nothing of the value.
public enum PostgresEncodingError: Error, Sendable, Equatable {
    /// PostgreSQL's text has no U+0000.
    case nul
    case tooLarge
    case tooManyBinds
    /// Not a number, infinite, or outside of `timestamptz` (4713 BC to AD 294276).
    case dateOutOfRange
}

/// What `\( )` in `SQL` takes.
public protocol PostgresEncodable {
    var postgresBind: PostgresBind { get }
    /// How several of these are sent. The default is an array literal; only bytes differ.
    static func postgresBind(array: [Self]) -> PostgresBind
}

extension PostgresEncodable {
    public static func postgresBind(array: [Self]) -> PostgresBind {
        var literal = ArrayLiteral(capacity: array.count * 8)
        for element in array { literal.append(element.postgresBind) }
        return literal.bind
    }
}

extension PostgresEncodable where Self: RawRepresentable, RawValue: PostgresEncodable {
    public var postgresBind: PostgresBind { rawValue.postgresBind }
}

extension Int: PostgresEncodable {
    public var postgresBind: PostgresBind { .integer(Int64(self)) }
}
extension Int64: PostgresEncodable {
    public var postgresBind: PostgresBind { .integer(self) }
}
extension Int32: PostgresEncodable {
    public var postgresBind: PostgresBind { .integer(Int64(self)) }
}
extension Int16: PostgresEncodable {
    public var postgresBind: PostgresBind { .integer(Int64(self)) }
}
extension Bool: PostgresEncodable {
    public var postgresBind: PostgresBind { .text(self ? "t" : "f") }
}
extension Double: PostgresEncodable {
    public var postgresBind: PostgresBind { .text(description) }
}
extension Float: PostgresEncodable {
    public var postgresBind: PostgresBind { .text(description) }
}
extension String: PostgresEncodable {
    public var postgresBind: PostgresBind { .text(self) }
}
extension UUID: PostgresEncodable {
    public var postgresBind: PostgresBind { .text(uuidString) }
}
extension Date: PostgresEncodable {
    public var postgresBind: PostgresBind {
        guard let text = PostgresTime.text(self) else { return .refused(.dateOutOfRange) }
        return .text(text)
    }
}

/// Many bytes are one `bytea`; a lone byte is a number.
extension UInt8: PostgresEncodable {
    public var postgresBind: PostgresBind { .integer(Int64(self)) }
    public static func postgresBind(array: [UInt8]) -> PostgresBind { .bytes(array) }
}

extension Optional: PostgresEncodable where Wrapped: PostgresEncodable {
    public var postgresBind: PostgresBind { self?.postgresBind ?? .null }
}
extension Array: PostgresEncodable where Element: PostgresEncodable {
    public var postgresBind: PostgresBind { Element.postgresBind(array: self) }
}

/// JSON text for a `json` or `jsonb` column.
public struct JSONText: PostgresEncodable, PostgresDecodable, Sendable, Hashable {
    public let text: String

    public init(_ text: String) { self.text = text }

    public var postgresBind: PostgresBind { .text(text) }

    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> JSONText {
        JSONText(try String.decode(cell))
    }
}

/// A transaction id (`xid8`): 64 bits, never wrapping. Compared as PostgreSQL compares it.
public struct PostgresXID: PostgresEncodable, PostgresDecodable, Sendable, Hashable, Comparable {
    public let value: UInt64

    public init(_ value: UInt64) { self.value = value }

    public var postgresBind: PostgresBind { .text(String(value)) }

    public static func < (left: PostgresXID, right: PostgresXID) -> Bool { left.value < right.value }

    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> PostgresXID {
        guard cell.type == PostgresType.xid8, cell.bytes.count == 8 else { throw cell.mismatch("PostgresXID") }
        return PostgresXID(cell.load(UInt64.self))
    }
}

/// Writes `{1,NULL,"a \"quoted\" text"}` (PostgreSQL manual, 8.15.2 and 8.15.6).
struct ArrayLiteral {
    private var bytes: [UInt8] = []
    private var refused: PostgresEncodingError?

    init(capacity: Int) {
        bytes.reserveCapacity(capacity + 2)
        bytes.append(UInt8(ascii: "{"))
    }

    var bind: PostgresBind {
        if let refused { return .refused(refused) }
        return .array(bytes + [UInt8(ascii: "}")])
    }

    mutating func append(_ element: PostgresBind) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        switch element {
        case .null: bytes.append(contentsOf: "NULL".utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .text(let text): quote(text)
        case .bytes(let raw): quote(Hex.bytea(raw))
        // An array in an array is a further dimension, and not quoted.
        case .array(let inner): bytes.append(contentsOf: inner)
        case .refused(let error): refused = error
        }
    }

    private mutating func quote(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// The text form of a `bytea`: `\x00ff`.
    static func bytea(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = [UInt8(ascii: "\\"), UInt8(ascii: "x")]
        text.reserveCapacity(bytes.count * 2 + 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

import Foundation

/// Types by their number in `pg_type`, which never changes for built-in ones.
enum PostgresType {
    static let bool: UInt32 = 16
    static let bytea: UInt32 = 17
    static let char: UInt32 = 18
    static let name: UInt32 = 19
    static let int8: UInt32 = 20
    static let int2: UInt32 = 21
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let oid: UInt32 = 26
    static let json: UInt32 = 114
    static let xml: UInt32 = 142
    static let float4: UInt32 = 700
    static let float8: UInt32 = 701
    static let unknown: UInt32 = 705
    static let bpchar: UInt32 = 1042
    static let varchar: UInt32 = 1043
    static let date: UInt32 = 1082
    static let timestamp: UInt32 = 1114
    static let timestamptz: UInt32 = 1184
    static let void: UInt32 = 2278
    static let uuid: UInt32 = 2950
    static let jsonb: UInt32 = 3802
    static let xid8: UInt32 = 5069
    /// Types made by CREATE TYPE and extensions start here (access/transam.h: FirstNormalObjectId).
    static let firstOwn: UInt32 = 16_384
}

/// One value of a row as it came, in PostgreSQL's binary format. Valid during the decode closure only.
public struct PostgresCell {
    public let bytes: UnsafeRawBufferPointer
    /// The type's number in `pg_type`.
    public let type: UInt32

    public func mismatch(_ wanted: String) -> PostgresCellError { .mismatch(type: type, wanted: wanted) }

    /// The big-endian number at the start. The caller has checked the length.
    func load<T: FixedWidthInteger>(_ type: T.Type) -> T {
        T(bigEndian: bytes.loadUnaligned(as: T.self))
    }
}

/// Why a value could not be read. Says nothing of the value.
public enum PostgresCellError: Error, Sendable, Equatable {
    case null
    case mismatch(type: UInt32, wanted: String)
    case outOfRange(wanted: String)
    /// `infinity` and `-infinity` are no `Date`.
    case infinite
    case malformed(wanted: String)
    case dimensions
}

/// What `Row.get` gives.
public protocol PostgresDecodable {
    /// - Throws: when the column's type is another one, or its value does not fit.
    static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Self
    /// What NULL becomes. Throws for all but optionals.
    static func decodeNull() throws(PostgresCellError) -> Self
    /// How several of these are read. The default reads an array; only bytes differ.
    static func decodeArray(_ cell: PostgresCell) throws(PostgresCellError) -> [Self]
}

extension PostgresDecodable {
    public static func decodeNull() throws(PostgresCellError) -> Self { throw .null }
    public static func decodeArray(_ cell: PostgresCell) throws(PostgresCellError) -> [Self] {
        try ArrayReader.read(cell)
    }
}

extension PostgresDecodable where Self: RawRepresentable, RawValue: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Self {
        guard let value = Self(rawValue: try RawValue.decode(cell)) else {
            throw .outOfRange(wanted: "\(Self.self)")
        }
        return value
    }
}

extension Optional: PostgresDecodable where Wrapped: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Wrapped? { try Wrapped.decode(cell) }
    public static func decodeNull() throws(PostgresCellError) -> Wrapped? { nil }
}
extension Array: PostgresDecodable where Element: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> [Element] {
        try Element.decodeArray(cell)
    }
}

extension Int64: PostgresDecodable {
    /// From `int8`, `int4`, `int2` and `oid`.
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Int64 {
        switch (cell.type, cell.bytes.count) {
        case (PostgresType.int8, 8): cell.load(Int64.self)
        case (PostgresType.int4, 4): Int64(cell.load(Int32.self))
        case (PostgresType.int2, 2): Int64(cell.load(Int16.self))
        case (PostgresType.oid, 4): Int64(cell.load(UInt32.self))
        default: throw cell.mismatch("Int64")
        }
    }
}
extension Int: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Int { Int(try Int64.decode(cell)) }
}
extension Int32: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Int32 {
        guard let value = Int32(exactly: try Int64.decode(cell)) else { throw .outOfRange(wanted: "Int32") }
        return value
    }
}
extension Int16: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Int16 {
        guard let value = Int16(exactly: try Int64.decode(cell)) else { throw .outOfRange(wanted: "Int16") }
        return value
    }
}
extension Bool: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Bool {
        guard cell.type == PostgresType.bool, cell.bytes.count == 1 else { throw cell.mismatch("Bool") }
        return cell.bytes[0] != 0
    }
}
extension Double: PostgresDecodable {
    /// From `float8` and `float4`. A `numeric` is cast in the statement, where its precision is decided.
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Double {
        switch (cell.type, cell.bytes.count) {
        case (PostgresType.float8, 8): Double(bitPattern: cell.load(UInt64.self))
        case (PostgresType.float4, 4): Double(Float(bitPattern: cell.load(UInt32.self)))
        default: throw cell.mismatch("Double")
        }
    }
}
extension Float: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Float {
        guard cell.type == PostgresType.float4, cell.bytes.count == 4 else { throw cell.mismatch("Float") }
        return Float(bitPattern: cell.load(UInt32.self))
    }
}
extension String: PostgresDecodable {
    /// From the text types, `json`, `jsonb`, `xml`, `void` (empty), enums and extensions' text types such as `citext`.
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> String {
        var bytes = cell.bytes
        switch cell.type {
        case PostgresType.text, PostgresType.varchar, PostgresType.bpchar, PostgresType.name, PostgresType.json,
            PostgresType.unknown, PostgresType.char, PostgresType.xml, PostgresType.void,
            PostgresType.firstOwn...:
            break
        case PostgresType.jsonb:
            // A version number, 1, stands before the text.
            guard bytes.first == 1 else { throw .malformed(wanted: "String") }
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        default: throw cell.mismatch("String")
        }
        // The server has checked its text; bytes of an unknown extension type have been checked by nobody.
        guard cell.type >= PostgresType.firstOwn else { return String(decoding: bytes, as: UTF8.self) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw cell.mismatch("String") }
        return text
    }
}
extension Date: PostgresDecodable {
    /// From `timestamptz`, `timestamp` (taken as UTC) and `date` (its first moment in UTC).
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> Date {
        let date: Date?
        switch (cell.type, cell.bytes.count) {
        case (PostgresType.timestamptz, 8), (PostgresType.timestamp, 8):
            date = PostgresTime.date(microseconds: cell.load(Int64.self))
        case (PostgresType.date, 4): date = PostgresTime.date(days: cell.load(Int32.self))
        default: throw cell.mismatch("Date")
        }
        guard let date else { throw .infinite }
        return date
    }
}
extension UUID: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> UUID {
        guard cell.type == PostgresType.uuid, cell.bytes.count == 16 else { throw cell.mismatch("UUID") }
        return UUID(uuid: cell.bytes.loadUnaligned(as: uuid_t.self))
    }
}
extension UInt8: PostgresDecodable {
    public static func decode(_ cell: PostgresCell) throws(PostgresCellError) -> UInt8 {
        guard let value = UInt8(exactly: try Int64.decode(cell)) else { throw .outOfRange(wanted: "UInt8") }
        return value
    }
    public static func decodeArray(_ cell: PostgresCell) throws(PostgresCellError) -> [UInt8] {
        guard cell.type == PostgresType.bytea else { throw cell.mismatch("[UInt8]") }
        return [UInt8](cell.bytes)
    }
}

/// Reads the binary form of an array (array_send in utils/adt/arrayfuncs.c): dimensions, a flag for NULLs, the
/// element's type; for the one dimension its length and lower bound; then each element's length (-1: NULL) and bytes.
enum ArrayReader {
    static func read<Element: PostgresDecodable>(_ cell: PostgresCell) throws(PostgresCellError) -> [Element] {
        let wanted = "[\(Element.self)]"
        guard let dimensions = integer(cell.bytes, at: 0), let type = integer(cell.bytes, at: 8), type > 0,
            let hasNull = integer(cell.bytes, at: 4), hasNull == 0 || hasNull == 1
        else { throw cell.mismatch(wanted) }
        guard dimensions != 0 else { return [] }
        guard dimensions == 1 else { throw .dimensions }
        guard let count = integer(cell.bytes, at: 12), count >= 0, Int(count) <= cell.bytes.count / 4 else {
            throw .malformed(wanted: wanted)
        }
        var elements: [Element] = []
        elements.reserveCapacity(Int(count))
        var offset = 20
        for _ in 0..<count {
            guard let length = integer(cell.bytes, at: offset) else { throw .malformed(wanted: wanted) }
            offset += 4
            guard length >= 0 else {
                elements.append(try Element.decodeNull())
                continue
            }
            guard offset + Int(length) <= cell.bytes.count else { throw .malformed(wanted: wanted) }
            let bytes = UnsafeRawBufferPointer(rebasing: cell.bytes[offset..<offset + Int(length)])
            elements.append(try Element.decode(PostgresCell(bytes: bytes, type: UInt32(type))))
            offset += Int(length)
        }
        return elements
    }

    private static func integer(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32? {
        guard offset + 4 <= bytes.count else { return nil }
        return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))
    }
}

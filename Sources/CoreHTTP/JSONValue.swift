import Core

/// A JSON document from outside.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// - Throws: `invalid` for what is not UTF-8, not JSON (RFC 8259), or beyond the reader's limits.
    public init(parsing bytes: [UInt8]) throws(AppError) {
        var reader = JSONReader(bytes)
        self = try reader.document()
    }
}

/// A JSON document from outside.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// - Throws: `JSONFault` for what is not UTF-8, not JSON (RFC 8259), or beyond the limits.
    public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONFault) {
        var reader = JSONReader(bytes, limits: limits)
        self = try reader.document { reader throws(JSONFault) in try reader.value() }
    }
}

/// Why bytes are no JSON, or not the JSON that was asked for.
public struct JSONFault: Error, Equatable {
    /// In words for the sender, as the end of a sentence: "a control character in a string".
    public let reason: String
    /// The byte at which reading ended, from 0.
    public let offset: Int

    public init(reason: String, offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

/// What one document may take.
public struct JSONLimits: Sendable {
    /// Nested arrays and objects. Each level takes some of a loop's stack.
    public var depthMax = 64
    /// All values of a document together: each takes many times the two bytes that it may have on the wire.
    public var valuesMax = 50_000
    /// Digits, sign and exponent of one number. A Double written out has 24.
    public var numberBytesMax = 100

    public init() {}
}

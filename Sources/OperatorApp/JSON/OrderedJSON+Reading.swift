import JSON

extension OrderedJSON {
    /// A record may be any size that the reader of records lets through.
    private static let limits = {
        var limits = JSONLimits()
        limits.valuesMax = 10_000_000
        return limits
    }()

    /// - Throws: `JSONFault`, with the place.
    static func parse(_ bytes: [UInt8]) throws(JSONFault) -> OrderedJSON {
        var reader = JSONReader(bytes, limits: limits)
        return try reader.document { reader throws(JSONFault) in try read(from: &reader) }
    }

    private static func read(from reader: inout JSONReader) throws(JSONFault) -> OrderedJSON {
        switch try reader.kind() {
        case .object:
            var object = JSONObject()
            object.members.reserveCapacity(16)
            try reader.object { reader, name throws(JSONFault) in
                object.members.append(JSONObject.Member(name: name, value: try read(from: &reader)))
            }
            return .object(object)
        case .array:
            var items: [OrderedJSON] = []
            try reader.array { reader throws(JSONFault) in items.append(try read(from: &reader)) }
            return .array(items)
        case .string: return .string(try reader.string())
        case .number: return .number(try reader.numberText())
        case .bool: return .bool(try reader.bool())
        case .null:
            try reader.null()
            return .null
        }
    }
}

/// JSON as it came (RFC 8259): numbers keep their text, members their order.
enum OrderedJSON: Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([OrderedJSON])
    case object(JSONObject)

    /// What a value is, in words for people.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }
}

/// The few members of a record: looked up one after the other, which beats hashing them.
struct JSONObject: Equatable {
    struct Member: Equatable {
        let name: String
        let value: OrderedJSON
    }

    var members: [Member] = []

    /// The last of the members of that name, as most readers have it.
    subscript(name: String) -> OrderedJSON? { members.last { $0.name == name }?.value }

    func has(_ name: String) -> Bool { self[name] != nil }
}

extension OrderedJSON {
    static func integer(_ value: some BinaryInteger) -> OrderedJSON { .number(String(value)) }

    static func objectOf(_ members: KeyValuePairs<String, OrderedJSON>) -> OrderedJSON {
        .object(JSONObject(members: members.map { JSONObject.Member(name: $0.key, value: $0.value) }))
    }

    /// One line, without a line end.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .number(let digits): digits
        case .string(let text): Self.quoted(text)
        case .array(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
        case .object(let object):
            "{" + object.members.map { Self.quoted($0.name) + ":" + $0.value.text }.joined(separator: ",") + "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let hex = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

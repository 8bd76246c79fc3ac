import Core
import Foundation

/// A JSON document from outside.
public indirect enum JSONValue: Sendable, Equatable, Decodable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        if let keyed = try? decoder.container(keyedBy: Name.self) {
            var object: [String: JSONValue] = [:]
            for key in keyed.allKeys { object[key.stringValue] = try keyed.decode(JSONValue.self, forKey: key) }
            self = .object(object)
            return
        }
        if var list = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !list.isAtEnd { array.append(try list.decode(JSONValue.self)) }
            self = .array(array)
            return
        }
        let single = try decoder.singleValueContainer()
        if single.decodeNil() {
            self = .null
        } else if let bool = try? single.decode(Bool.self) {
            self = .bool(bool)
        } else if let int = try? single.decode(Int64.self) {
            self = .int(int)
        } else if let double = try? single.decode(Double.self) {
            self = .double(double)
        } else {
            self = .string(try single.decode(String.self))
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { return nil }
    }

    /// - Throws: `invalid` for bytes that are not UTF-8 or not JSON.
    public init(parsing bytes: [UInt8]) throws(AppError) {
        // Foundation repairs broken UTF-8 here and there; we refuse it.
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw AppError(.invalid, "The body is not UTF-8.")
        }
        do {
            self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
        } catch {
            throw AppError(.invalid, "The body is not valid JSON.")
        }
    }
}

/// Named values from outside, by JSON or by a form: each is taken by name and type, and a wrong one is told with its
/// path. Nothing is taken that was not asked for, so there is no mass assignment.
public struct Fields: Sendable {
    private let values: [String: JSONValue]
    private let path: [String]

    public init(_ values: [String: JSONValue], path: [String] = []) {
        self.values = values
        self.path = path
    }

    public func has(_ name: String) -> Bool { values[name] != nil }

    /// Nil when absent or null.
    public func string(_ name: String) throws(AppError) -> String? {
        switch values[name] {
        case nil, .null: return nil
        case .string(let text): return text
        default: throw wrong(name, "must be a string")
        }
    }

    public func required(_ name: String) throws(AppError) -> String {
        guard let text = try string(name) else { throw wrong(name, "is required") }
        return text
    }

    /// A number, or a string of decimal digits, as forms send it.
    public func int(_ name: String) throws(AppError) -> Int64? {
        switch values[name] {
        case nil, .null: return nil
        case .int(let number): return number
        case .string(let text):
            guard let number = Int64(text) else { throw wrong(name, "must be a whole number") }
            return number
        default: throw wrong(name, "must be a whole number")
        }
    }

    public func bool(_ name: String) throws(AppError) -> Bool? {
        switch values[name] {
        case nil, .null: return nil
        case .bool(let flag): return flag
        default: throw wrong(name, "must be true or false")
        }
    }

    public func float(_ name: String) throws(AppError) -> Float? {
        switch values[name] {
        case nil, .null: return nil
        case .int(let number): return Float(number)
        case .double(let number): return Float(number)
        case .string(let text):
            guard let number = Float(text), number.isFinite else { throw wrong(name, "must be a number") }
            return number
        default: throw wrong(name, "must be a number")
        }
    }

    /// RFC 3339.
    public func date(_ name: String) throws(AppError) -> Date? {
        guard let text = try string(name), !text.isEmpty else { return nil }
        guard let date = Timestamp.parse(text) else { throw wrong(name, "must be a time such as 2027-01-31T12:00:00Z") }
        return date
    }

    public func id<Entity>(_ name: String, as: Entity.Type) throws(AppError) -> Identifier<Entity>? {
        guard let value = try int(name) else { return nil }
        guard value > 0 else { throw wrong(name, "must be an id") }
        return Identifier(value)
    }

    public func object(_ name: String) throws(AppError) -> Fields? {
        switch values[name] {
        case nil, .null: return nil
        case .object(let object): return Fields(object, path: path + [name])
        default: throw wrong(name, "must be an object")
        }
    }

    public func strings(_ name: String) throws(AppError) -> [String]? {
        switch values[name] {
        case nil, .null: return nil
        case .array(let items):
            var strings: [String] = []
            for (index, item) in items.enumerated() {
                guard case .string(let text) = item else { throw wrong("\(name).\(index)", "must be a string") }
                strings.append(text)
            }
            return strings
        default: throw wrong(name, "must be an array of strings")
        }
    }

    public func choice<T: RawRepresentable & CaseIterable>(_ name: String, as: T.Type) throws(AppError) -> T?
    where T.RawValue == String {
        guard let text = try string(name) else { return nil }
        if let value = T(rawValue: text) { return value }
        throw wrong(name, "must be one of \(T.allCases.map(\.rawValue).joined(separator: ", "))")
    }

    public func wrong(_ name: String, _ problem: String) -> AppError {
        .invalid((path + [name]).joined(separator: "."), "\((path + [name]).joined(separator: ".")) \(problem)")
    }
}

import Core
import Foundation
import JSON

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

    /// As it came, of any type; nil when absent.
    public func value(_ name: String) -> JSONValue? { values[name] }

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
        case .double(let number):
            // A Double beyond what a Float holds becomes infinite.
            guard Float(number).isFinite else { throw wrong(name, "must be a number") }
            return Float(number)
        case .string(let text):
            guard let number = DecimalText.float(text) else { throw wrong(name, "must be a number") }
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

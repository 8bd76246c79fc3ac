import Core
import CoreHTTP
import Foundation
import JSON

/// Texts of a query as the values that a field has.
enum RestValue {
    /// Strapi's spellings of truth; nil for anything else.
    static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true", "t", "1": true
        case "false", "f", "0": false
        default: nil
        }
    }

    /// - Throws: `noFlag` for anything that is no truth.
    static func flag(_ text: String, _ path: [String]) throws(AppError) -> Bool {
        guard let flag = boolean(text) else { throw noFlag(path) }
        return flag
    }

    /// In Strapi's words.
    static func noFlag(_ path: [String]) -> AppError {
        .query(path, "Expected one of \"t\",\"1\",\"true\",\"false\",\"0\",\"f\".")
    }

    static func trimmed(_ text: some StringProtocol) -> String { text.trimmingCharacters(in: .whitespaces) }

    /// - Throws: `invalid` when the text is no value of the type.
    static func value(_ text: String, _ type: EntryField.ValueType, _ path: [String]) throws(AppError) -> EntryValue {
        switch type {
        case .text, .longText: return .text(text)
        case .integer:
            guard let number = integer(text) else { throw .query(path, "Expected a whole number.") }
            return .integer(number)
        case .number:
            guard let number = DecimalText.double(text) else { throw .query(path, "Expected a number.") }
            return .number(number)
        case .boolean:
            return .boolean(try flag(text, path))
        case .date:
            guard let date = date(text) else {
                throw .query(path, "Expected a time such as 2027-01-31T12:00:00Z, a date, or milliseconds.")
            }
            return .date(date)
        }
    }

    /// Decimal digits, with a minus at most.
    static func integer(_ text: String) -> Int64? {
        guard text.utf8.count <= 20, text.utf8.first != UInt8(ascii: "+") else { return nil }
        return Int64(text)
    }

    /// ISO 8601, or milliseconds since 1970, as Strapi takes them too. A space stands for the plus sign of an offset:
    /// that is what a plus in a query means.
    private static func date(_ text: String) -> Date? {
        if let date = Timestamp.parse(text.replacing(" ", with: "+")) { return date }
        guard let milliseconds = integer(text), milliseconds.magnitude < 1 << 53 else { return nil }
        return Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}

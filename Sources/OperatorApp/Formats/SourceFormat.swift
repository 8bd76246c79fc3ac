import Core
import Foundation

/// The shapes of files that can be imported.
enum SourceFormat: String, CaseIterable {
    /// Announcements of usajobs.gov as the archive abigailhaddad/usajobs_historical has them.
    case usajobs
    /// The GitHub Jobs API, which ended in 2021.
    case githubJobs = "github-jobs"
    /// The Greenhouse job board API: `{"jobs": […]}`.
    case greenhouse
    /// The Lever postings API: `[…]`.
    case lever
    /// A dump of Greenhouse and Lever postings side by side, each naming its source.
    case mixed
    /// Companies, one JSON object a line.
    case companies

    /// By the members that only one of the formats has; nil when it is none of them.
    static func recognise(_ object: JSONObject) -> SourceFormat? {
        if object.has("control_number"), object.has("position_title") { return .usajobs }
        if object.has("source"), object.has("organization"), object.has("title") { return .mixed }
        if object.has("text"), object.has("hostedUrl") { return .lever }
        if object.has("absolute_url"), object.has("title"), object.has("id") { return .greenhouse }
        if object.has("company"), object.has("how_to_apply"), object.has("title") { return .githubJobs }
        if object.has("slug"), object.has("title"), object.has("website") { return .companies }
        return nil
    }
}

/// What the mapping of one record is told beside it.
struct MappingContext: Sendable {
    let now: Date
    /// Postings whose closing date has passed stay open for so many days from now.
    let renewDays: Int?
    /// The company of records that do not name one.
    let company: String?
}

/// Reads members and says what is wrong with them in words.
struct RecordFields {
    let object: JSONObject

    struct Mistake: Error, Equatable {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    /// A text; empty when the member is absent or null.
    func text(_ name: String) throws(Mistake) -> String {
        switch object[name] {
        case nil, .null: return ""
        case .string(let text): return text
        case .some(let other): throw Mistake("\(name) is \(other.kind), not a text")
        }
    }

    func required(_ name: String) throws(Mistake) -> String {
        let text = try text(name)
        guard text.contains(where: { !$0.isWhitespace }) else { throw Mistake("\(name) is missing or empty") }
        return text
    }

    /// A text or a whole number, as the key of a record is in one source or the other.
    func key(_ name: String) throws(Mistake) -> String {
        switch object[name] {
        case .string(let text) where !text.isEmpty && text.utf8.count <= 200 && !text.utf8.contains(0): return text
        case .number(let digits) where digits.utf8.count <= 40 && digits.allSatisfy(\.isNumber): return digits
        case nil, .null: throw Mistake("\(name) is missing")
        case .some(let other): throw Mistake("\(name) is \(other.kind) that cannot be a key")
        }
    }

    func texts(_ name: String) throws(Mistake) -> [String] {
        switch object[name] {
        case nil, .null: return []
        case .array(let items):
            var texts: [String] = []
            for item in items {
                guard case .string(let text) = item else {
                    throw Mistake("\(name) has \(item.kind) in it, not only texts")
                }
                texts.append(text)
            }
            return texts
        case .some(let other): throw Mistake("\(name) is \(other.kind), not a list")
        }
    }

    func objects(_ name: String) throws(Mistake) -> [RecordFields] {
        switch object[name] {
        case nil, .null: return []
        case .array(let items):
            var objects: [RecordFields] = []
            for item in items {
                guard case .object(let object) = item else {
                    throw Mistake("\(name) has \(item.kind) in it, not only objects")
                }
                objects.append(RecordFields(object: object))
            }
            return objects
        case .some(let other): throw Mistake("\(name) is \(other.kind), not a list")
        }
    }

    /// An object; empty when the member is absent or null.
    func child(_ name: String) throws(Mistake) -> RecordFields {
        switch object[name] {
        case nil, .null: return RecordFields(object: JSONObject())
        case .object(let object): return RecordFields(object: object)
        case .some(let other): throw Mistake("\(name) is \(other.kind), not an object")
        }
    }

    func number(_ name: String) throws(Mistake) -> Double? {
        switch object[name] {
        case nil, .null: return nil
        case .number(let digits):
            guard let value = Double(digits), value.isFinite else { throw Mistake("\(name) is out of range") }
            return value
        case .some(let other): throw Mistake("\(name) is \(other.kind), not a number")
        }
    }

    /// nil when absent, null or empty.
    func date(_ name: String) throws(Mistake) -> Date? {
        let text = try text(name)
        guard !text.isEmpty else { return nil }
        guard let date = SourceDate.parse(text) else { throw Mistake("\(name) is not a date that is known here") }
        return date
    }
}

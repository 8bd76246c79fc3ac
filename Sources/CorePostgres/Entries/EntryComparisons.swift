import Core
import Foundation
import Postgres

extension EntryConditions {
    /// Values are bound with the type that the column has, so that the condition means the same whatever was sent.
    static func compare(_ column: SQL, _ type: EntryField.ValueType, _ comparison: EntryComparison) -> SQL {
        if type == .date, let condition = compareDates(column, comparison) { return condition }
        switch comparison {
        case .equals(let value): return "\(column) = \(bound(value))"
        case .equalsIgnoringCase(let text): return "lower(\(column)) = lower(\(text)::text)"
        case .less(let value): return "\(column) < \(bound(value))"
        case .lessOrEqual(let value): return "\(column) <= \(bound(value))"
        case .greater(let value): return "\(column) > \(bound(value))"
        case .greaterOrEqual(let value): return "\(column) >= \(bound(value))"
        case .between(let low, let high): return "\(column) BETWEEN \(bound(low)) AND \(bound(high))"
        case .isIn(let values): return "\(column) = ANY (\(list(values, type)))"
        case .contains(let text, let ignoringCase):
            return like(column, "%\(LikePattern.escape(text))%", ignoringCase: ignoringCase)
        case .startsWith(let text, let ignoringCase):
            return like(column, "\(LikePattern.escape(text))%", ignoringCase: ignoringCase)
        case .endsWith(let text, let ignoringCase):
            return like(column, "%\(LikePattern.escape(text))", ignoringCase: ignoringCase)
        case .isNull: return "\(column) IS NULL"
        }
    }

    private static func like(_ column: SQL, _ pattern: String, ignoringCase: Bool) -> SQL {
        ignoringCase ? "lower(\(column)) LIKE lower(\(pattern)::text)" : "\(column) LIKE \(pattern)::text"
    }

    private static func bound(_ value: EntryValue) -> SQL {
        switch value {
        case .text(let text): "\(text)::text"
        case .integer(let integer): "\(integer)::bigint"
        case .number(let number): "\(number)::float8"
        case .boolean(let boolean): "\(boolean)::boolean"
        case .date(let date): "\(date)::timestamptz"
        }
    }

    private static func list(_ values: [EntryValue], _ type: EntryField.ValueType) -> SQL {
        switch type {
        case .text, .longText:
            "\(values.compactMap { if case .text(let value) = $0 { value } else { nil } })::text[]"
        case .integer: "\(values.compactMap { if case .integer(let value) = $0 { value } else { nil } })::bigint[]"
        case .number: "\(values.compactMap { if case .number(let value) = $0 { value } else { nil } })::float8[]"
        case .boolean: "\(values.compactMap { if case .boolean(let value) = $0 { value } else { nil } })::boolean[]"
        case .date:
            "\(values.compactMap(shownDate))::timestamptz[]"
        }
    }

    private static func shownDate(_ value: EntryValue) -> Date? {
        if case .date(let date) = value { Millisecond(date).start } else { nil }
    }

    /// PostgreSQL keeps microseconds and clients are shown milliseconds: a client that asks for what comes after the
    /// last time it saw must not get the same entry again. The bounds move instead of the column, which an index may
    /// have.
    private static func compareDates(_ column: SQL, _ comparison: EntryComparison) -> SQL? {
        switch comparison {
        case .equals(.date(let date)):
            let shown = Millisecond(date)
            return "(\(column) >= \(shown.start)::timestamptz AND \(column) < \(shown.end)::timestamptz)"
        case .less(.date(let date)): return "\(column) < \(Millisecond(date).start)::timestamptz"
        case .lessOrEqual(.date(let date)): return "\(column) < \(Millisecond(date).end)::timestamptz"
        case .greater(.date(let date)): return "\(column) >= \(Millisecond(date).end)::timestamptz"
        case .greaterOrEqual(.date(let date)): return "\(column) >= \(Millisecond(date).start)::timestamptz"
        case .between(.date(let low), .date(let high)):
            let (low, high) = (Millisecond(low).start, Millisecond(high).end)
            return "(\(column) >= \(low)::timestamptz AND \(column) < \(high)::timestamptz)"
        case .isIn(let values): return "date_trunc('milliseconds', \(column)) = ANY (\(list(values, .date)))"
        default: return nil
        }
    }
}

/// The millisecond that a time is shown as, in UTC.
private struct Millisecond {
    let start: Date
    let end: Date

    init(_ date: Date) {
        // A Double is a little off PostgreSQL's microseconds.
        let microseconds = (date.timeIntervalSince1970 * 1_000_000).rounded()
        let milliseconds = (microseconds / 1000).rounded(.down)
        start = Date(timeIntervalSince1970: milliseconds / 1000)
        end = Date(timeIntervalSince1970: (milliseconds + 1) / 1000)
    }
}

/// For LIKE, whose escape is the backslash.
private enum LikePattern {
    static func escape(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x25 || $0 == 0x5F || $0 == 0x5C }) else { return text }
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar == "%" || scalar == "_" || scalar == "\\" { escaped.append("\\") }
            escaped.append(scalar)
        }
        return String(escaped)
    }
}

extension EntryComparison {
    /// For a column whose runs of white space are one space each.
    var withOneSpaceForMany: EntryComparison {
        switch self {
        case .contains(let text, let ignoringCase): .contains(Self.collapsed(text), ignoringCase: ignoringCase)
        case .startsWith(let text, let ignoringCase): .startsWith(Self.collapsed(text), ignoringCase: ignoringCase)
        case .endsWith(let text, let ignoringCase): .endsWith(Self.collapsed(text), ignoringCase: ignoringCase)
        default: self
        }
    }

    private static func collapsed(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isSpace = scalar == " " || (0x09...0x0D).contains(scalar.value)
            if !isSpace { kept.append(scalar) } else if kept.last != " " { kept.append(" ") }
        }
        return String(kept)
    }
}

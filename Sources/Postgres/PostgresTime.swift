import Foundation

/// Times between `Date` and PostgreSQL: microseconds since 2000-01-01 UTC on the wire, ISO text for parameters.
enum PostgresTime {
    /// 2000-01-01 minus 2001-01-01 (the reference of `Date`), in seconds.
    private static let epochOffset = 31_622_400.0
    private static let microsecondsPerDay: Int64 = 86_400_000_000
    /// PostgreSQL's own bounds (datatype/timestamp.h): 4713-11-24 BC to before AD 294277, UTC.
    private static let microsecondsMin: Int64 = -211_813_488_000_000_000
    private static let microsecondsEnd: Int64 = 9_223_371_331_200_000_000
    /// Days from 1970-01-01 to 2000-01-01.
    private static let epochDays: Int64 = 10_957

    /// Nil for what `timestamptz` does not hold, infinities among it.
    static func microseconds(_ date: Date) -> Int64? {
        let value = ((date.timeIntervalSinceReferenceDate + epochOffset) * 1_000_000).rounded()
        guard value.isFinite, value >= Double(microsecondsMin), value < Double(microsecondsEnd) else { return nil }
        return Int64(value)
    }

    /// Nil for PostgreSQL's `infinity` and `-infinity`, which no `Date` can say.
    static func date(microseconds: Int64) -> Date? {
        guard microseconds != .max, microseconds != .min else { return nil }
        return Date(timeIntervalSinceReferenceDate: Double(microseconds) / 1_000_000 - epochOffset)
    }

    static func date(days: Int32) -> Date? {
        guard days != .max, days != .min else { return nil }
        return Date(timeIntervalSinceReferenceDate: Double(days) * 86_400 - epochOffset)
    }

    /// `2026-12-01 09:00:00.123456+00`, with ` BC` where it is due.
    static func text(_ date: Date) -> String? {
        guard let total = microseconds(date) else { return nil }
        var days = total / microsecondsPerDay
        var rest = total % microsecondsPerDay
        if rest < 0 {
            rest += microsecondsPerDay
            days -= 1
        }
        let (year, month, day) = civil(days: days + epochDays)
        let seconds = rest / 1_000_000
        var text: [UInt8] = []
        text.reserveCapacity(36)
        // There is no year 0: the year before AD 1 is 1 BC.
        pad(year > 0 ? year : 1 - year, 4, &text)
        for (mark, value) in [
            ("-", month), ("-", day), (" ", seconds / 3600), (":", seconds / 60 % 60), (":", seconds % 60),
        ] {
            text.append(contentsOf: mark.utf8)
            pad(value, 2, &text)
        }
        if rest % 1_000_000 != 0 {
            text.append(UInt8(ascii: "."))
            pad(rest % 1_000_000, 6, &text)
        }
        text.append(contentsOf: year > 0 ? "+00".utf8 : "+00 BC".utf8)
        return String(decoding: text, as: UTF8.self)
    }

    private static func pad(_ value: Int64, _ width: Int, _ text: inout [UInt8]) {
        let digits = String(value).utf8
        for _ in 0..<max(0, width - digits.count) { text.append(UInt8(ascii: "0")) }
        text.append(contentsOf: digits)
    }

    /// The proleptic Gregorian date of a day counted from 1970-01-01.
    /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

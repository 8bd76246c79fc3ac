import Foundation

/// Times on the wire: ISO 8601 in UTC with milliseconds, as Strapi writes them (contracts: `2023-01-05T09:30:00.000Z`).
public enum Timestamp {
    public static func text(_ date: Date) -> String {
        let milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded(.down))
        let (days, rest) = floorDivide(milliseconds, 86_400_000)
        let (year, month, day) = civil(days)
        return String(unsafeUninitializedCapacity: 24) { buffer in
            var at = 0
            func put(_ value: Int64, _ width: Int) {
                var value = value
                for offset in (0..<width).reversed() {
                    buffer[at + offset] = UInt8(ascii: "0") + UInt8(value % 10)
                    value /= 10
                }
                at += width
            }
            func put(_ character: Unicode.Scalar) {
                buffer[at] = UInt8(ascii: character)
                at += 1
            }
            put(min(max(year, 0), 9999), 4)
            put("-")
            put(month, 2)
            put("-")
            put(day, 2)
            put("T")
            put(rest / 3_600_000, 2)
            put(":")
            put(rest / 60_000 % 60, 2)
            put(":")
            put(rest / 1000 % 60, 2)
            put(".")
            put(rest % 1000, 3)
            put("Z")
            return at
        }
    }

    /// RFC 3339: a date, or a date and a time with `Z` or an offset. Nil for anything else.
    public static func parse(_ text: String) -> Date? {
        guard text.utf8.count <= 35 else { return nil }
        if text.utf8.count == 10 {
            return try? Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day().parse(text)
        }
        for fraction in [true, false] {
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: fraction)
            if let date = try? style.parse(text) { return date }
        }
        return nil
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: by)
        return remainder < 0 ? (quotient - 1, remainder + by) : (quotient, remainder)
    }

    /// Days since 1970-01-01 to a date of the proleptic Gregorian calendar: years are counted from March, so that the leap
    /// day is the last of its year.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}

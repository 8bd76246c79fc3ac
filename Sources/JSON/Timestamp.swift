import Foundation

/// Times on the wire: ISO 8601 in UTC with milliseconds, as Strapi writes them (contracts: `2023-01-05T09:30:00.000Z`).
public enum Timestamp {
    public static func text(_ date: Date) -> String {
        String(unsafeUninitializedCapacity: length) { write(date, to: $0) }
    }

    /// Bytes of one.
    static let length = 24

    /// - Parameter buffer: of `length` bytes.
    /// - Returns: how many of them were written.
    static func write(_ date: Date, to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        // PostgreSQL counts microseconds; a Double is a little off them.
        let (milliseconds, _) = floorDivide(Int64((date.timeIntervalSince1970 * 1_000_000).rounded()), 1000)
        let (days, rest) = floorDivide(milliseconds, 86_400_000)
        let (year, month, day) = civil(days)
        var at = 0
        func put(_ value: Int64, _ width: Int, _ mark: UInt8) {
            var value = value
            for offset in stride(from: at + width - 1, through: at, by: -1) {
                buffer[offset] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10)
                value /= 10
            }
            buffer[at + width] = mark
            at += width + 1
        }
        put(min(max(year, 0), 9999), 4, UInt8(ascii: "-"))
        put(month, 2, UInt8(ascii: "-"))
        put(day, 2, UInt8(ascii: "T"))
        put(rest / 3_600_000, 2, UInt8(ascii: ":"))
        put(rest / 60_000 % 60, 2, UInt8(ascii: ":"))
        put(rest / 1000 % 60, 2, UInt8(ascii: "."))
        put(rest % 1000, 3, UInt8(ascii: "Z"))
        return at
    }

    /// RFC 3339: a date, or a date and a time with `Z` or an offset. Nil for anything else.
    public static func parse(_ text: String) -> Date? {
        guard let match = text.wholeMatch(of: form) else { return nil }
        guard let year = Int64(match.1), let month = Int64(match.2), let day = Int64(match.3), year > 0,
            (1...12).contains(month)
        else { return nil }
        let days = daysFromCivil(year, month, day)
        // A day that the month does not have comes back as one of the next.
        guard civil(days) == (year, month, day) else { return nil }
        var seconds = Double(days) * 86_400
        if let time = match.4 {
            let parts = time.dropFirst().prefix(8).split(separator: ":").compactMap { Double($0) }
            guard parts.count == 3, parts[0] < 24, parts[1] < 60, parts[2] < 61 else { return nil }
            seconds += parts[0] * 3600 + parts[1] * 60 + parts[2]
            if let fraction = match.5 { seconds += Double("0" + fraction) ?? 0 }
            if let offset = match.6, let sign = offset.first, sign == "+" || sign == "-" {
                let parts = offset.dropFirst().split(separator: ":").compactMap { Double($0) }
                guard parts.count == 2, parts[0] < 24, parts[1] < 60 else { return nil }
                seconds -= (sign == "-" ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60)
            }
        }
        return Date(timeIntervalSince1970: seconds)
    }

    nonisolated(unsafe) private static let form =
        /([0-9]{4})-([0-9]{2})-([0-9]{2})([Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+\-][0-9]{2}:[0-9]{2}))?/

    private static func daysFromCivil(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = floorDivide(shifted, 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: by)
        return remainder < 0 ? (quotient - 1, remainder + by) : (quotient, remainder)
    }

    /// Days since 1970-01-01 to a date of the proleptic Gregorian calendar: years are counted from March, so that the
    /// leap day is the last of its year.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}

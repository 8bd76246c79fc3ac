import Foundation

/// Dates as the sources write them: `2024-02-01`, `2026-06-20T12:00:00-04:00`, `2025-11-16T02:23:36.991Z` and
/// `Wed Dec 04 22:43:07 UTC 2020`. Read by hand: formatters cost more than all the rest of a record.
enum SourceDate {
    /// The years a posting can be of; anything else is a mistake that would sort before or after everything.
    private static let years = 1970...2199

    static func parse(_ text: String) -> Date? {
        var scanner = Scanner(bytes: Array(text.utf8))
        if let first = scanner.bytes.first, (0x30...0x39).contains(first) { return iso(&scanner) }
        return unix(&scanner)
    }

    static func dayNumber(year: Int, month: Int, day: Int) -> Int? {
        let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard years.contains(year), (1...12).contains(month), (1...lengths[month - 1]).contains(day) else { return nil }
        // Days since 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years from March.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func isLeap(_ year: Int) -> Bool {
        year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
    }

    private static func date(_ day: Int, _ seconds: Int, _ fraction: Double = 0) -> Date {
        Date(timeIntervalSince1970: Double(day * 86_400 + seconds) + fraction)
    }

    private static func iso(_ scanner: inout Scanner) -> Date? {
        guard let year = scanner.digits(4), scanner.take("-"), let month = scanner.digits(2), scanner.take("-"),
            let dayOfMonth = scanner.digits(2), let day = dayNumber(year: year, month: month, day: dayOfMonth)
        else { return nil }
        if scanner.isAtEnd { return date(day, 0) }
        guard scanner.take("T") || scanner.take(" "), let seconds = time(&scanner) else { return nil }
        var fraction = 0.0
        if scanner.take(".") {
            guard let value = scanner.fraction() else { return nil }
            fraction = value
        }
        if scanner.isAtEnd || (scanner.take("Z") && scanner.isAtEnd) { return date(day, seconds, fraction) }
        let sign = scanner.take("+") ? 1 : (scanner.take("-") ? -1 : 0)
        guard sign != 0, let hours = scanner.digits(2), hours <= 18 else { return nil }
        _ = scanner.take(":")
        let minutes = scanner.isAtEnd ? 0 : scanner.digits(2)
        guard let minutes, minutes < 60, scanner.isAtEnd else { return nil }
        return date(day, seconds - sign * (hours * 3600 + minutes * 60), fraction)
    }

    private static func time(_ scanner: inout Scanner) -> Int? {
        guard let hour = scanner.digits(2), hour < 24, scanner.take(":"), let minute = scanner.digits(2), minute < 60
        else { return nil }
        var second = 0
        if scanner.take(":") {
            // A leap second is taken for the one before it.
            guard let value = scanner.digits(2), value <= 60 else { return nil }
            second = min(value, 59)
        }
        return hour * 3600 + minute * 60 + second
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func unix(_ scanner: inout Scanner) -> Date? {
        guard scanner.word() != nil, scanner.take(" "), let name = scanner.word(),
            let month = months.firstIndex(of: name), scanner.take(" ")
        else { return nil }
        _ = scanner.take(" ")
        guard let dayOfMonth = scanner.digits(1...2), scanner.take(" "), let seconds = time(&scanner),
            scanner.take(" "), scanner.word() == "UTC", scanner.take(" "), let year = scanner.digits(4),
            scanner.isAtEnd,
            let day = dayNumber(year: year, month: month + 1, day: dayOfMonth)
        else { return nil }
        return date(day, seconds)
    }

    private struct Scanner {
        let bytes: [UInt8]
        var at = 0

        var isAtEnd: Bool { at == bytes.count }

        mutating func take(_ character: Character) -> Bool {
            guard at < bytes.count, bytes[at] == character.asciiValue else { return false }
            at += 1
            return true
        }

        mutating func digits(_ count: Int) -> Int? { digits(count...count) }

        mutating func digits(_ counts: ClosedRange<Int>) -> Int? {
            var value = 0
            var count = 0
            while at < bytes.count, count < counts.upperBound, (0x30...0x39).contains(bytes[at]) {
                value = value * 10 + Int(bytes[at] - 0x30)
                at += 1
                count += 1
            }
            return count >= counts.lowerBound ? value : nil
        }

        /// The digits after a point. More than nine say nothing.
        mutating func fraction() -> Double? {
            var value = 0.0
            var scale = 0.1
            let start = at
            while at < bytes.count, (0x30...0x39).contains(bytes[at]) {
                if at - start < 9 { value += Double(bytes[at] - 0x30) * scale }
                scale /= 10
                at += 1
            }
            return at > start ? value : nil
        }

        mutating func word() -> String? {
            let start = at
            while at < bytes.count, (0x41...0x5A).contains(bytes[at] & 0xDF) { at += 1 }
            return at > start ? String(decoding: bytes[start..<at], as: UTF8.self) : nil
        }
    }
}

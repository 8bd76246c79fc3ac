import Core
import Foundation
import Glibc

/// The sum of all files.
struct ImportTotal {
    var counts = ImportCounts()
    var repeated = 0
    var expired = 0
    var refused = 0
    var skipped = 0
    let isDry: Bool
    let seconds: Double

    init(_ reports: [FileReport], isDry: Bool, seconds: Double) {
        self.isDry = isDry
        self.seconds = seconds
        for report in reports {
            counts.new += report.counts.new
            counts.updated += report.counts.updated
            counts.unchanged += report.counts.unchanged
            repeated += report.repeated
            expired += report.expired
            refused += report.refused
            skipped += report.isSkipped ? 1 : 0
        }
    }

    var records: Int { counts.new + counts.updated + counts.unchanged + repeated + refused }
    var perSecond: Double { seconds > 0 ? Double(records) / seconds : 0 }
}

/// What an import says.
enum ImportText {
    /// Refusals shown for a file; --json has more.
    private static let refusalsShownMax = 10

    static func seconds(since start: ContinuousClock.Instant) -> Double {
        let passed = (ContinuousClock.now - start).components
        return Double(passed.seconds) + Double(passed.attoseconds) / 1e18
    }

    static func rate(_ records: Int, since start: ContinuousClock.Instant) -> String {
        grouped(Int(Double(records) / max(seconds(since: start), 0.001)))
    }

    /// 23,493.
    static func grouped(_ number: Int) -> String {
        var digits = String(abs(number))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: digits.index(digits.startIndex, offsetBy: place))
            place -= 3
        }
        return number < 0 ? "-\(digits)" : digits
    }

    static func tell(_ report: FileReport, on terminal: Terminal) {
        if report.isSkipped { return terminal.line("\(report.path): skipped, its format is not known") }
        let format = report.format.map { " (\($0.rawValue))" } ?? ""
        terminal.line("\(report.path)\(format): \(words(report.counts, report.repeated, report.refused))")
        for refusal in report.refusals.prefix(refusalsShownMax) {
            terminal.warn("\(report.path):\(refusal.line): record \(refusal.index) refused: \(refusal.reason)")
        }
        if report.refused > refusalsShownMax {
            terminal.warn("\(report.path): and \(grouped(report.refused - refusalsShownMax)) more")
        }
    }

    private static func words(_ counts: ImportCounts, _ repeated: Int, _ refused: Int) -> String {
        var parts = [
            "\(grouped(counts.new)) new", "\(grouped(counts.updated)) updated",
            "\(grouped(counts.unchanged)) unchanged",
        ]
        if repeated > 0 { parts.append("\(grouped(repeated)) repeated") }
        if refused > 0 { parts.append("\(grouped(refused)) refused") }
        return parts.joined(separator: ", ")
    }

    static func words(_ total: ImportTotal) -> String {
        let time = String(format: "%.1f", total.seconds)
        var text =
            (total.isDry ? "Nothing stored (dry run): " : "Imported ")
            + "\(grouped(total.records)) \(noun(total.records, "record")) in \(time) s, "
            + "\(grouped(Int(total.perSecond))) a second: "
            + words(total.counts, total.repeated, total.refused) + "."
        if total.skipped > 0 { text += " \(total.skipped) \(noun(total.skipped, "file")) skipped." }
        if total.expired > 0 {
            let closed = noun(total.expired, "has closed and is", "have closed and are")
            text +=
                " \(grouped(total.expired)) \(closed) not found by search "
                + "(--renew-days 30 republishes what has closed)."
        }
        return text
    }

    static func json(_ reports: [FileReport], _ total: ImportTotal) -> OrderedJSON {
        .objectOf([
            "files": .array(reports.map(json)), "new": .integer(total.counts.new),
            "updated": .integer(total.counts.updated), "unchanged": .integer(total.counts.unchanged),
            "repeated": .integer(total.repeated), "refused": .integer(total.refused),
            "expired": .integer(total.expired), "skipped_files": .integer(total.skipped),
            "dry_run": .bool(total.isDry), "seconds": .number(String(format: "%.3f", total.seconds)),
            "per_second": .integer(Int(total.perSecond)), "memory_bytes_max": .integer(memoryBytesMax),
        ])
    }

    private static func json(_ report: FileReport) -> OrderedJSON {
        .objectOf([
            "path": .string(report.path), "format": report.format.map { .string($0.rawValue) } ?? .null,
            "new": .integer(report.counts.new), "updated": .integer(report.counts.updated),
            "unchanged": .integer(report.counts.unchanged), "repeated": .integer(report.repeated),
            "expired": .integer(report.expired), "refused": .integer(report.refused),
            "broken": .bool(report.isBroken), "skipped": .bool(report.isSkipped),
            "refusals": .array(
                report.refusals.map {
                    .objectOf([
                        "line": .integer($0.line), "record": .integer($0.index), "reason": .string($0.reason),
                    ])
                }),
        ])
    }

    /// The most memory this process has had, in bytes (getrusage counts KiB on Linux).
    private static var memoryBytesMax: Int {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
        return Int(usage.ru_maxrss) * 1024
    }
}

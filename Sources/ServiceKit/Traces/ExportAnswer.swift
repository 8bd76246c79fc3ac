import Foundation
import JSON
import Transfer

/// What a collector's answer means for the spans that were sent (OTLP specification, "OTLP/HTTP Response").
enum ExportAnswer: Equatable {
    /// Taken, but for so many.
    case taken(rejected: Int)
    /// Again later; the collector may have said when.
    case later(reason: String, seconds: Double?)
    /// Never.
    case refused(reason: String)

    /// Who says "in an hour" is tried again after this: spans do not wait that long.
    static let retryAfterSecondsMax = 30.0

    init(_ answer: HTTPClientResponse, now: Date) {
        let reason = "the collector answered \(answer.status)"
        switch answer.status {
        case 200..<300: self = .taken(rejected: Self.rejected(answer.body))
        case 429, 502, 503, 504:
            self = .later(reason: reason, seconds: Self.retryAfter(answer.headers["retry-after"]?.first, now: now))
        default: self = .refused(reason: reason)
        }
    }

    init(_ error: any Error) {
        switch error {
        case HTTPClientError.badURL, HTTPClientError.badHeader, HTTPClientError.bodyTooLarge:
            // The last: it has answered, so it has had the spans.
            self = .refused(reason: "\(error)")
        case HTTPClientError.timedOut: self = .later(reason: "the collector does not answer", seconds: nil)
        default: self = .later(reason: "\(error)", seconds: nil)
        }
    }

    /// Of `partialSuccess`; what is no such answer rejects nothing. The number is text, or a number where the collector
    /// has it wrong.
    private static func rejected(_ body: [UInt8]) -> Int {
        guard !body.isEmpty, case .object(let whole)? = try? JSONValue(parsing: body),
            case .object(let partial)? = whole["partialSuccess"]
        else { return 0 }
        switch partial["rejectedSpans"] {
        case .string(let text)?: return max(0, Int(text) ?? 0)
        case .int(let number)?: return max(0, Int(clamping: number))
        default: return 0
        }
    }

    /// Seconds or a date (RFC 9110 §10.2.3).
    private static func retryAfter(_ text: String?, now: Date) -> Double? {
        guard let text else { return nil }
        if let seconds = Int(text), seconds >= 0 { return min(Double(seconds), retryAfterSecondsMax) }
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
        guard let date = format.date(from: text) else { return nil }
        return min(max(0, date.timeIntervalSince(now)), retryAfterSecondsMax)
    }
}

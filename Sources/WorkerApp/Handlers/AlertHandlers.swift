import Core
import Foundation
import ServiceKit

/// Matches new postings against all alerts.
public struct MatchAlerts: WorkHandler {
    /// Postings of one match: its transaction stays short.
    public static let postingsMax = 200

    private struct Payload: Decodable {
        let posting_id: Int64?
        let posting_ids: [Int64]?
    }

    public let kind = WorkItem.Kind.matchAlerts
    private let alerts: any AlertRepository
    private let clock: any ServiceClock
    private let looked: Counter
    private let deliveries: Counter
    private let seconds: Histogram

    public init(alerts: any AlertRepository, clock: any ServiceClock, metrics: Metrics) {
        self.alerts = alerts
        self.clock = clock
        looked = metrics.counter("martlet_alert_postings_total", "Postings matched against all alerts.")
        deliveries = metrics.counter(
            "martlet_alert_deliveries_total", "Postings that an alert found: instant mails and parts of digests.")
        seconds = metrics.histogram(
            "martlet_alert_match_seconds", "Matching of one transaction's postings, its ledger included.",
            bounds: Histogram.longSeconds)
    }

    public func run(_ item: WorkItem) async throws {
        let payload = try item.decode(Payload.self)
        let all = (payload.posting_ids ?? []) + [payload.posting_id].compactMap { $0 }
        for start in stride(from: 0, to: all.count, by: Self.postingsMax) {
            try Task.checkCancellation()
            let part = all[start..<min(start + Self.postingsMax, all.count)]
            // The ledger lets a part that was done before through once.
            let began = clock.now()
            deliveries.add(try await alerts.match(part.map { JobPosting.ID($0) }, now: began))
            looked.add(part.count)
            seconds.record(clock.now().timeIntervalSince(began))
        }
    }
}

/// Writes the digests that are due.
public struct SendDigests: WorkHandler {
    /// Alerts of one transaction.
    public static let alertsMax = 200
    /// Rounds of one item: the rest waits for the next minute's, so that one item does not run for ever.
    static let roundsMax = 500

    public let kind = WorkItem.Kind.sendDigests
    private let alerts: any AlertRepository
    private let clock: any ServiceClock
    private let digests: Counter

    public init(alerts: any AlertRepository, clock: any ServiceClock, metrics: Metrics) {
        self.alerts = alerts
        self.clock = clock
        digests = metrics.counter("martlet_alert_digests_total", "Digests written.")
    }

    public func run(_ item: WorkItem) async throws {
        let now = clock.now()
        for _ in 0..<Self.roundsMax {
            try Task.checkCancellation()
            guard try await alerts.digestsDue(now: now) else { return }
            digests.add(try await alerts.collectDigests(now: now, limit: Self.alertsMax))
        }
    }
}

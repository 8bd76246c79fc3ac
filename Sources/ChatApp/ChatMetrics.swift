import Core
import Foundation
import ServiceKit
import WebSocket

/// What the feed counts of what it brings.
struct FeedMetrics: Sendable {
    let wakeUps: Counter
    let polls: Counter
    let roomsRead: Counter
    let messagesRead: Counter
    let gaps: Counter
    private let here: Histogram
    private let elsewhere: Histogram
    private let clock: any ServiceClock

    init(_ metrics: Metrics, clock: any ServiceClock) {
        self.clock = clock
        wakeUps = metrics.counter("martlet_chat_wake_ups_total", "Notifications of other instances.")
        polls = metrics.counter("martlet_chat_polls_total", "Looks at what changed without having been woken.")
        roomsRead = metrics.counter("martlet_chat_rooms_read_total", "Reads of one room's new messages.")
        messagesRead = metrics.counter("martlet_chat_messages_read_total", "Messages of others that were read.")
        gaps = metrics.counter(
            "martlet_chat_gaps_total", "Times that messages of others had to be read before our own could be given.")
        func lag(_ from: String) -> Histogram {
            metrics.histogram(
                "martlet_chat_delivery_lag_seconds", "From a message's time in the database to its way to the sockets.",
                labels: ["from": from])
        }
        (here, elsewhere) = (lag("here"), lag("elsewhere"))
    }

    /// - Parameter own: whether this process has committed them.
    func delivering(_ deliveries: [RoomPositions.Delivery], own: Bool) {
        guard !deliveries.isEmpty else { return }
        let now = clock.now()
        // Two machines' clocks: one that is ahead would give what is less than nothing.
        (own ? here : elsewhere).record(
            deliveries.flatMap { $0.messages.map { max(0, now.timeIntervalSince($0.createdAt)) } })
    }
}

/// What the hubs count of their sockets.
struct HubMetrics: Sendable {
    private static let codes: [UInt16] = [
        1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 4401, 4403, 4408, 4429,
    ]

    let delivered: Counter
    let connected: Gauge
    let opened: Counter
    let resumes: Counter
    let resets: Counter
    let caughtUp: Counter
    let slowReaders: Counter
    private let closed: [UInt16: Counter]
    private let closedOtherwise: Counter

    init(_ metrics: Metrics) {
        delivered = metrics.counter(
            "martlet_chat_messages_delivered_total", "Messages given to sockets as they were committed.")
        connected = metrics.gauge("martlet_chat_sockets", "Sockets that are open, of both protocols.")
        opened = metrics.counter("martlet_chat_sockets_total", "Sockets that were opened, of both protocols.")
        resumes = metrics.counter("martlet_chat_resumes_total", "Sockets that said what they had.")
        resets = metrics.counter(
            "martlet_chat_resets_total", "Rooms whose reader was too far behind to be brought along.")
        caughtUp = metrics.counter(
            "martlet_chat_messages_caught_up_total", "Messages read for a socket that was behind.")
        slowReaders = Self.slowReaders(metrics, protocolName: "martlet.v1")
        func closings(_ code: String) -> Counter {
            metrics.counter(
                "martlet_chat_closed_total", "Sockets of martlet.v1 that ended, by code.", labels: ["code": code])
        }
        closed = Dictionary(uniqueKeysWithValues: Self.codes.map { ($0, closings("\($0)")) })
        closedOtherwise = closings("other")
    }

    static func slowReaders(_ metrics: Metrics, protocolName: String) -> Counter {
        metrics.counter(
            "martlet_chat_slow_readers_total", "Sockets closed because they took too little.",
            labels: ["protocol": protocolName])
    }

    func ended(_ code: CloseCode) { (closed[code.rawValue] ?? closedOtherwise).add() }
}

/// What the batcher counts.
struct BatchMetrics: Sendable {
    let sent: Counter
    let batches: Counter
    let refused: Counter
    let waiting: Gauge
    let sizes: Histogram
    let seconds: Histogram

    init(_ metrics: Metrics) {
        sent = metrics.counter("martlet_chat_messages_sent_total", "Messages committed by this process.")
        batches = metrics.counter("martlet_chat_batches_total", "Transactions in which they were committed.")
        refused = metrics.counter("martlet_chat_sends_refused_total", "Sends that could not be stored.")
        waiting = metrics.gauge("martlet_chat_sends_waiting", "Sends that wait for the next batch.")
        sizes = metrics.histogram(
            "martlet_chat_batch_messages", "Sends of one batch.", bounds: Histogram.sizes)
        seconds = metrics.histogram("martlet_chat_batch_seconds", "From a batch's first statement to its answers.")
    }
}

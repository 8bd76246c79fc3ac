import Cpq
import EventLoop

/// What the parts of one loop's share of the driver have in common.
struct LaneContext {
    let loop: EventLoop
    let configuration: PostgresConfiguration
    let executed: Counter
    let random: @Sendable () -> Double
    let log: @Sendable (PostgresEvent) -> Void
    /// Says where a lane's connection goes, now or after the host's name was looked up.
    let attempt: (LaneKind, @escaping (Result<Resolver.Attempt, any Error>) -> Void) -> Void
    /// Someone waits, so the clock must be looked at.
    let startTicking: () -> Void
}

/// The connections of one lane on one loop: opened when there is need, at most so many, again after a failure with
/// growing pauses.
final class ChannelSet {
    let lane: LaneKind
    private let context: LaneContext
    private let meter: LaneMeter
    private let channelsMax: Int
    private(set) var channels: [Channel] = []
    private var isOpening = false
    private var isClosed = false
    private var backoff: Backoff
    private var retry: LoopTimer?
    private let pipeline: () -> Pipeline<QueryResult>

    var onReady: () -> Void = {}
    var onAction: (Pipeline<QueryResult>.Action) -> Void = { _ in }
    var onProgress: () -> Void = {}
    /// - Parameter Channel: the one that is gone; its units have been settled.
    var onLost: (Channel) -> Void = { _ in }

    init(
        _ lane: LaneKind, max channelsMax: Int, context: LaneContext, meter: LaneMeter,
        pipeline: @escaping () -> Pipeline<QueryResult>
    ) {
        self.lane = lane
        self.channelsMax = channelsMax
        self.context = context
        self.meter = meter
        self.pipeline = pipeline
        backoff = Backoff(
            firstMilliseconds: context.configuration.reconnectFirstMilliseconds,
            maxMilliseconds: context.configuration.reconnectMilliseconds)
    }

    var hasReady: Bool { channels.contains { $0.isReady } }

    /// Opens one more connection, unless there are enough, one is being opened, or it is too early to try again.
    func grow() {
        guard !isClosed, !isOpening, retry == nil, channels.count < channelsMax else { return }
        isOpening = true
        context.attempt(lane) { [weak self] result in
            guard let self, !isClosed else { return }
            switch result {
            case .success(let attempt): open(attempt)
            case .failure(let error): failed("\(error)")
            }
        }
    }

    private func open(_ attempt: Resolver.Attempt) {
        let events = Channel.Events(
            ready: { [unowned self] channel in
                if let reason = foreign(channel) { return channel.lose(reason) }
                isOpening = false
                if let raw = channel.connection.raw { attempt.succeeded(raw) }
                context.log(PostgresEvent(.connected, lane))
                onReady()
            },
            acted: { [unowned self] in onAction($0) },
            progressed: { [unowned self] channel in
                channel.hasAnswered = true
                backoff.reset()
                onProgress()
            },
            lost: { [unowned self] channel, reason, actions in
                if !channel.hasAnswered { attempt.failed() }
                lost(channel, reason, actions)
            })
        let channel = Channel(
            on: context.loop, pipeline: pipeline(), executed: context.executed, meter: meter, events: events)
        channels.append(channel)
        channel.open(attempt.parameters, milliseconds: context.configuration.connectMilliseconds(attempt))
    }

    /// Why the session is not as its start-up options would have it: a pooler has dropped them.
    private func foreign(_ channel: Channel) -> String? {
        let configuration = context.configuration
        guard !configuration.isPooled, lane == .short || lane == .long, let raw = channel.connection.raw,
            !(configuration.parameters["options"] ?? "").contains("default_transaction_read_only"),
            // Told by PostgreSQL 14 and later without being asked (PostgreSQL manual, 55.2.7).
            let setting = PQparameterStatus(raw, "default_transaction_read_only"), String(cString: setting) != "on"
        else { return nil }
        return PoolerSign.dropped
    }

    private func lost(_ channel: Channel, _ reason: String, _ actions: [Pipeline<QueryResult>.Action]) {
        channels.removeAll { $0 === channel }
        if channel.hasAnswered {
            context.log(PostgresEvent(.connectionLost, lane, reason: reason))
        } else {
            // Never opened, or opened only to be dropped: at once again would be a busy loop.
            failed(reason)
        }
        // Backwards, since what is to be sent again goes to the front of the queue.
        for action in actions.reversed() { onAction(action) }
        onLost(channel)
    }

    private func failed(_ reason: String) {
        isOpening = false
        let pause = backoff.next(random: context.random())
        let kind: PostgresEvent.Kind = PoolerSign.isIn(reason) ? .poolerMet : .connectFailed
        context.log(PostgresEvent(kind, lane, reason: reason, retryMilliseconds: pause))
        let timer = LoopTimer(on: context.loop) { [weak self] in
            self?.retry = nil
            self?.onReady()
        }
        timer.start(milliseconds: pause)
        retry = timer
    }

    /// Gives up connections whose server has been silent for longer than its own limits allow.
    func dropStalled(now: UInt64) {
        let limit = context.configuration.statementMilliseconds(lane)
        guard limit > 0 else { return }
        for channel in channels where channel.isReady && !channel.isIdle {
            // A group is answered as a whole, so each of its statements may take its time; but a long group must not
            // keep its callers waiting for a server that is gone.
            let group = min(limit * max(1, channel.unitsInFlight), max(limit, Self.groupMillisecondsMax))
            let allowed = UInt64(group + context.configuration.silenceMilliseconds)
            if now > channel.heard + allowed { channel.lose("the server is silent") }
        }
    }

    /// What a group of short statements may take in all before the silence counts.
    static let groupMillisecondsMax = 1_000

    /// Someone waits for an answer of one of these.
    var isAwaiting: Bool { channels.contains { $0.isReady && !$0.isIdle } }

    /// Ends a connection on purpose.
    func discard(_ channel: Channel) {
        guard channel.isIdle else { return channel.lose("given up in the middle of a statement") }
        channel.close()
        channels.removeAll { $0 === channel }
    }

    /// Closes what is idle; true when nothing is left.
    func closeIdle() -> Bool {
        isClosed = true
        retry?.cancel()
        retry = nil
        for channel in channels where channel.isIdle || !channel.isReady { channel.close() }
        channels.removeAll { $0.isIdle || !$0.isReady }
        return channels.isEmpty
    }

    func closeAll() {
        isClosed = true
        for channel in channels { channel.lose("the database was closed") }
        channels = []
    }
}

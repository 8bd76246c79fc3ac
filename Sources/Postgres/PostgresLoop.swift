import EventLoop

/// One loop's share of a `Database`: its lanes and their connections. Callers on the loop's thread enter without
/// leaving it.
actor PostgresLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// How many connections of each kind live here.
    struct Shares: Sendable {
        let short: Int
        let long: Int
        let write: Int
        let leased: Int
    }

    nonisolated let shares: Shares
    /// Callers in each lane, readable from any thread, to choose the loop with the least to do.
    nonisolated let longLoad = Counter()
    nonisolated let writeLoad = Counter()
    nonisolated let leasedLoad = Counter()

    private let configuration: PostgresConfiguration
    private let resolver: Resolver
    private let executed: Counter
    private let random: @Sendable () -> Double
    private let log: @Sendable (PostgresEvent) -> Void

    private var lanes: Lanes?
    private var ticker: LoopTimer?
    private var isTicking = false
    private var closing: [CheckedContinuation<Void, Never>] = []
    private var closeDeadline: UInt64 = .max

    private struct Lanes {
        let short: Lane
        let long: Lane
        let write: Lane
        let leased: LeaseLane
    }

    /// Waits are measured in tens of milliseconds; a finer clock would only cost.
    static let tickMilliseconds: UInt64 = 50
    /// `close()` waits for what was sent, but not longer.
    static let closeMillisecondsMax: UInt64 = 10_000
    /// Reads that share a Sync. What fails skips the others, which are then sent again one by one, so not too many.
    static let shortGroupMax = 128
    /// Reads sent on one connection and not answered.
    static let shortPipelinedMax = 512
    /// A slow search must not stand before another on the same connection.
    static let longPipelinedMax = 1
    static let writePipelinedMax = 32

    init(
        loop: EventLoop, shares: Shares, configuration: PostgresConfiguration, resolver: Resolver, executed: Counter,
        random: @escaping @Sendable () -> Double, log: @escaping @Sendable (PostgresEvent) -> Void
    ) {
        self.loop = loop
        self.shares = shares
        self.configuration = configuration
        self.resolver = resolver
        self.executed = executed
        self.random = random
        self.log = log
    }

    /// Runs `body` in here: at once when called on the loop's thread, otherwise soon. Calls of one thread keep their
    /// order.
    nonisolated func enter(_ body: @escaping @Sendable (isolated PostgresLoop) -> Void) {
        if loop.isCurrent {
            assumeIsolated { body($0) }
        } else {
            loop.execute { self.assumeIsolated { body($0) } }
        }
    }

    private func opened() -> Lanes {
        if let lanes { return lanes }
        let context = LaneContext(
            loop: loop, configuration: configuration, executed: executed, random: random, log: log,
            attempt: { lane, then in self.attempt(lane, then) },
            startTicking: { self.startTicking() })
        func lane(_ kind: LaneKind, _ channels: Int, _ pipelined: Int, _ group: Int) -> Lane {
            let shape = Lane.Shape(channelsMax: channels, pipelinedMax: pipelined, groupMax: group)
            return Lane(kind, shape: shape, context: context)
        }
        let lanes = Lanes(
            short: lane(.short, shares.short, Self.shortPipelinedMax, Self.shortGroupMax),
            long: lane(.long, shares.long, Self.longPipelinedMax, 1),
            write: lane(.write, shares.write, Self.writePipelinedMax, 1),
            leased: LeaseLane(channelsMax: shares.leased, context: context))
        self.lanes = lanes
        return lanes
    }

    private func attempt(
        _ lane: LaneKind, _ then: @escaping (Result<Resolver.Attempt, any Error>) -> Void
    ) {
        if let attempt = resolver.ready(for: lane) { return then(.success(attempt)) }
        Task {
            do {
                then(.success(try await resolver.resolve(for: lane)))
            } catch {
                then(.failure(error))
            }
        }
    }

    // MARK: Statements

    func submit(_ unit: Unit<QueryResult>, to kind: LaneKind) {
        let lanes = opened()
        switch kind {
        case .short: lanes.short.submit(unit)
        case .long: lanes.long.submit(unit)
        case .write: lanes.write.submit(unit)
        case .leased, .listen: unit.finish(.failed(PostgresMisuse.leaseEnded))
        }
    }

    /// Whether a unit submitted now, by the caller on this loop, would be sent at the end of this turn.
    nonisolated func sendsSoon(_ kind: LaneKind) -> Bool {
        loop.isCurrent && assumeIsolated { $0.hasRoom(kind) }
    }

    private func hasRoom(_ kind: LaneKind) -> Bool {
        guard let lanes else { return false }
        return switch kind {
        case .short: lanes.short.sendsSoon
        case .long: lanes.long.sendsSoon
        case .write: lanes.write.sendsSoon
        case .leased, .listen: false
        }
    }

    func sweepCancelled(_ kind: LaneKind) {
        guard let lanes else { return }
        switch kind {
        case .short: lanes.short.sweepCancelled()
        case .long: lanes.long.sweepCancelled()
        case .write: lanes.write.sweepCancelled()
        case .leased: lanes.leased.sweepCancelled()
        case .listen: break
        }
    }

    func acquire(_ ticket: Ticket, _ finish: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        opened().leased.acquire(ticket, finish)
    }

    func release(_ lease: Int) { lanes?.leased.release(lease) }

    func discard(_ lease: Int) { lanes?.leased.discard(lease) }

    func submit(_ unit: Unit<QueryResult>, lease: Int) { opened().leased.submit(lease, unit) }

    /// The channel a lease stands for; nil when its connection is gone.
    func channel(lease: Int) -> Channel? { lanes?.leased.channel(lease) }

    /// Of the lanes in the order of their kinds.
    var measurements: [LaneMeasurements] {
        let lanes = opened()
        return [
            lanes.short.measurements, lanes.long.measurements, lanes.write.measurements, lanes.leased.measurements,
        ]
    }

    // MARK: Time

    private func startTicking() {
        guard !isTicking else { return }
        isTicking = true
        let timer = ticker ?? LoopTimer(on: loop) { self.tick() }
        ticker = timer
        timer.start(milliseconds: Self.tickMilliseconds, repeating: Self.tickMilliseconds)
    }

    private func tick() {
        guard let lanes else { return }
        let now = loop.nowMilliseconds
        let short = lanes.short.tick(now: now)
        let long = lanes.long.tick(now: now)
        let write = lanes.write.tick(now: now)
        let leased = lanes.leased.tick(now: now)
        if !closing.isEmpty { return finishClosing(now: now) }
        guard !short, !long, !write, !leased else { return }
        // An idle process has no timers.
        isTicking = false
        ticker?.cancel()
    }

    // MARK: The end

    /// Refuses new work, waits for what was sent (`closeMillisecondsMax` at most), ends the connections.
    func close() async {
        guard lanes != nil else {
            // Those who come later are refused too.
            _ = opened()
            _ = closeLanes()
            return letGo()
        }
        closeDeadline = min(closeDeadline, loop.nowMilliseconds + Self.closeMillisecondsMax)
        guard !closeLanes() else { return letGo() }
        await withCheckedContinuation { continuation in
            closing.append(continuation)
            startTicking()
        }
    }

    private func closeLanes() -> Bool {
        guard let lanes else { return true }
        let closed = [lanes.short.close(), lanes.long.close(), lanes.write.close(), lanes.leased.close()]
        return closed.allSatisfy { $0 }
    }

    private func finishClosing(now: UInt64) {
        let over = now >= closeDeadline
        if over, let lanes {
            lanes.short.closeNow()
            lanes.long.closeNow()
            lanes.write.closeNow()
            lanes.leased.closeNow()
        }
        guard closeLanes() || over else { return }
        letGo()
    }

    private func letGo() {
        isTicking = false
        ticker?.cancel()
        ticker = nil
        let waiting = closing
        closing = []
        for continuation in waiting { continuation.resume() }
    }
}

import EventLoop

/// Connections that one caller has to itself for a while: transactions, COPY, sessions. Not Sendable.
final class LeaseLane {
    private struct Waiter {
        let ticket: Ticket
        let deadline: UInt64
        let finish: @Sendable (Result<Int, any Error>) -> Void
    }

    /// Statements of one lease that may be under way at once.
    static let unitsMax = 256

    private let set: ChannelSet
    private let context: LaneContext
    private let channelsMax: Int
    private let meter: LaneMeter
    private var waiters = Queue<Waiter>()
    private var leases: [Int: Channel] = [:]
    private var nextLease = 1
    private var isClosing = false

    init(channelsMax: Int, context: LaneContext) {
        self.context = context
        self.channelsMax = channelsMax
        let meter = LaneMeter(.leased, context)
        self.meter = meter
        let capacity = context.configuration.isPooled ? 0 : StatementCache.namesMax
        set = ChannelSet(.leased, max: channelsMax, context: context, meter: meter) {
            Pipeline(answersEarly: false, mayRetry: false, statements: StatementCache(capacity: capacity))
        }
        set.onReady = { [unowned self] in serve() }
        set.onLost = { [unowned self] channel in
            leases = leases.filter { $0.value !== channel }
            serve()
        }
        set.onAction = { action in
            switch action {
            case .finish(let unit, let outcome): unit.finish(outcome)
            case .retry(let unit): unit.finish(.failed(PostgresUnavailable.connectionLost))
            }
        }
    }

    func acquire(_ ticket: Ticket, _ finish: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        guard !isClosing else { return finish(.failure(PostgresUnavailable.closed)) }
        guard !ticket.isCancelled else { return finish(.failure(CancellationError())) }
        guard waiters.count < context.configuration.queueMax else {
            meter.refused()
            return finish(.failure(PostgresUnavailable.busy))
        }
        let deadline = context.loop.nowMilliseconds + UInt64(context.configuration.acquireMilliseconds)
        waiters.append(Waiter(ticket: ticket, deadline: deadline, finish: finish))
        context.startTicking()
        serve()
    }

    private func serve() {
        while let waiter = waiters.first {
            guard let channel = set.channels.first(where: { $0.isReady && !$0.isLeased && $0.isIdle }) else {
                return set.grow()
            }
            _ = waiters.popFirst()
            channel.isLeased = true
            let lease = nextLease
            nextLease += 1
            leases[lease] = channel
            meter.waited(until: waiter.deadline)
            waiter.finish(.success(lease))
        }
    }

    /// Gives the connection back. It must be out of any transaction.
    func release(_ lease: Int) {
        guard let channel = leases.removeValue(forKey: lease) else { return }
        channel.isLeased = false
        serve()
    }

    /// Gives the lease back but not the connection, which ends: what state its session is in is not known.
    func discard(_ lease: Int) {
        guard let channel = leases.removeValue(forKey: lease) else { return }
        set.discard(channel)
        serve()
    }

    func submit(_ lease: Int, _ unit: Unit<QueryResult>) {
        guard let channel = leases[lease] else { return unit.finish(.failed(PostgresUnavailable.connectionLost)) }
        guard channel.simple == nil, channel.unitsInFlight < Self.unitsMax else {
            return unit.finish(.failed(PostgresMisuse.concurrentUse))
        }
        // DEALLOCATE fails in a failed transaction, so evicted statements are kept for the life of the connection.
        channel.send([unit], mayDeallocate: false)
        context.startTicking()
    }

    /// The channel of a lease, for scripts and COPY.
    func channel(_ lease: Int) -> Channel? { leases[lease] }

    func sweepCancelled() {
        for waiter in waiters.remove(where: { $0.ticket.isCancelled }) {
            waiter.finish(.failure(CancellationError()))
        }
    }

    /// Gives up on those who have waited too long, and on connections that are silent. True while there is something to
    /// watch.
    func tick(now: UInt64) -> Bool {
        set.dropStalled(now: now)
        while let first = waiters.first, first.deadline <= now {
            _ = waiters.popFirst()
            meter.refused()
            first.finish(.failure(set.hasReady ? PostgresUnavailable.busy : PostgresUnavailable.notReachable))
        }
        return !waiters.isEmpty || set.isAwaiting
    }

    var measurements: LaneMeasurements {
        var counts = meter.counts
        counts.connectionsMax = channelsMax
        counts.connectionsOpen = set.channels.count { $0.isReady }
        counts.connectionsBusy = leases.count
        counts.waiting = waiters.count
        return counts
    }

    /// Refuses those who wait; leases end when their owners end them. True when nothing is left.
    func close() -> Bool {
        isClosing = true
        while let waiter = waiters.popFirst() { waiter.finish(.failure(PostgresUnavailable.closed)) }
        return leases.isEmpty && set.closeIdle()
    }

    func closeNow() {
        _ = close()
        set.closeAll()
        leases = [:]
    }
}

import EventLoop

/// One loop's queue of statements and the connections that serve it. Not Sendable.
final class Lane {
    struct Shape {
        let channelsMax: Int
        /// Units sent to one connection and not answered yet.
        let pipelinedMax: Int
        /// Units of one group. 1: each unit has a Sync, and so a commit, of its own.
        let groupMax: Int
    }

    private let set: ChannelSet
    private let shape: Shape
    private let context: LaneContext
    private let meter: LaneMeter
    private var queue = Queue<Unit<QueryResult>>()
    private var isPumpDue = false
    private var isSweepDue = false
    private var isClosing = false

    init(_ kind: LaneKind, shape: Shape, context: LaneContext) {
        self.shape = shape
        self.context = context
        let meter = LaneMeter(kind, context)
        self.meter = meter
        let isRead = kind == .short || kind == .long
        let capacity = context.configuration.isPooled ? 0 : StatementCache.namesMax
        set = ChannelSet(kind, max: shape.channelsMax, context: context, meter: meter) {
            Pipeline(answersEarly: isRead, mayRetry: true, statements: StatementCache(capacity: capacity))
        }
        set.onReady = { [unowned self] in pump() }
        set.onProgress = { [unowned self] in if !queue.isEmpty { pumpAtTurnEnd() } }
        set.onLost = { [unowned self] _ in if !queue.isEmpty { pumpAtTurnEnd() } }
        set.onAction = { [unowned self] action in
            switch action {
            case .finish(let unit, let outcome): unit.finish(outcome)
            case .retry(let unit): again(unit)
            }
        }
    }

    func submit(_ unit: Unit<QueryResult>) {
        guard !isClosing else { return unit.finish(.failed(PostgresUnavailable.closed)) }
        guard !unit.isCancelled else { return unit.finish(.failed(CancellationError())) }
        guard queue.count < context.configuration.queueMax else {
            meter.refused()
            return unit.finish(.failed(PostgresUnavailable.busy))
        }
        var unit = unit
        unit.deadline = context.loop.nowMilliseconds + UInt64(context.configuration.acquireMilliseconds)
        queue.append(unit)
        context.startTicking()
        pumpAtTurnEnd()
    }

    /// Whether a unit submitted now would be sent at the end of this turn.
    var sendsSoon: Bool {
        self.set.channels.contains { $0.isReady && $0.unitsInFlight + queue.count < shape.pipelinedMax }
    }

    /// It was sent before, so it does not stand behind those that were not.
    private func again(_ unit: Unit<QueryResult>) {
        guard !isClosing else { return unit.finish(.failed(PostgresUnavailable.closed)) }
        queue.prepend(unit)
        pumpAtTurnEnd()
    }

    private func pumpAtTurnEnd() {
        guard !isPumpDue else { return }
        isPumpDue = true
        context.loop.atTurnEnd { [self] in
            isPumpDue = false
            pump()
        }
    }

    /// Sends what waits, as far as connections have room.
    private func pump() {
        while !queue.isEmpty {
            guard let channel = roomiest() else { return set.grow() }
            // There is other work before this one, so one more connection would help.
            if channel.unitsInFlight > 0 { set.grow() }
            sendGroup(to: channel)
        }
    }

    private func roomiest() -> Channel? {
        var best: Channel?
        for channel in set.channels where channel.isReady && channel.unitsInFlight < shape.pipelinedMax {
            if best.map({ channel.unitsInFlight < $0.unitsInFlight }) ?? true { best = channel }
        }
        return best
    }

    private func sendGroup(to channel: Channel) {
        let room = min(shape.groupMax, shape.pipelinedMax - channel.unitsInFlight)
        var group: [Unit<QueryResult>] = []
        while group.count < room, let next = queue.first {
            // What was skipped because of a neighbour goes alone now.
            if next.isRetry, !group.isEmpty { break }
            _ = queue.popFirst()
            if next.isCancelled {
                next.finish(.failed(CancellationError()))
                continue
            }
            if !next.isRetry { meter.waited(until: next.deadline) }
            group.append(next)
            if next.isRetry { break }
        }
        if !group.isEmpty { channel.send(group) }
    }

    /// Cancelled callers are answered at the turn's end, all of them in one pass.
    func sweepCancelled() {
        guard !isSweepDue else { return }
        isSweepDue = true
        context.loop.atTurnEnd { [self] in
            isSweepDue = false
            for unit in queue.remove(where: { $0.isCancelled }) {
                unit.finish(.failed(CancellationError()))
            }
        }
    }

    /// Gives up on what has waited too long. True while there is something to watch.
    func tick(now: UInt64) -> Bool {
        while let first = queue.first, first.deadline <= now {
            _ = queue.popFirst()
            meter.refused()
            first.finish(.failed(set.hasReady ? PostgresUnavailable.busy : PostgresUnavailable.notReachable))
        }
        set.dropStalled(now: now)
        return !queue.isEmpty || set.channels.contains { !$0.isIdle }
    }

    var measurements: LaneMeasurements {
        var counts = meter.counts
        counts.connectionsMax = shape.channelsMax
        counts.connectionsOpen = set.channels.count { $0.isReady }
        counts.connectionsBusy = set.channels.count { $0.isReady && !$0.isIdle }
        counts.waiting = queue.count
        return counts
    }

    // MARK: The end

    /// Refuses what waits and what comes; what was sent is waited for. True when nothing is left.
    func close() -> Bool {
        isClosing = true
        while let unit = queue.popFirst() { unit.finish(.failed(PostgresUnavailable.closed)) }
        return set.closeIdle()
    }

    func closeNow() {
        _ = close()
        set.closeAll()
    }
}

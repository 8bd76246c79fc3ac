import EventLoop
import HTTPServer
import ServiceKit

/// The requests that one loop passes on: connections to owners, their pool, and what waits for an answer.
///
/// Pinned on the loop of its clients' connections, so that a tunnel joins two streams of one thread.
actor HopLoop {
    enum Failure: Error, Equatable {
        /// Nobody accepts connections there, or not in time.
        case unreachable
        /// The connection ended before the answer did, or the answer is none of our server's.
        case broken
        case tooSlow
        /// More is passed on than may be.
        case full
        /// The client has gone.
        case left
    }

    /// A request on its way.
    final class Hop {
        let id: Int
        let address: SocketAddress
        let request: HopRequest
        var stream: TCPStream?
        var parser: AnswerParser
        var deadlineAt: UInt64
        var answered: CheckedContinuation<Result<Outcome, Failure>, Never>?

        init(id: Int, address: SocketAddress, request: HopRequest, limits: PassOnLimits, deadlineAt: UInt64) {
            self.id = id
            self.address = address
            self.request = request
            self.deadlineAt = deadlineAt
            parser = AnswerParser(to: request, limits: limits)
        }
    }

    enum Outcome: Sendable {
        case answer(HopAnswer)
        /// A tunnel that waits for its client.
        case tunnel(Int, HopAnswer)
    }

    private final class IdleConnection {
        let stream: TCPStream
        let since: UInt64
        init(_ stream: TCPStream, since: UInt64) {
            self.stream = stream
            self.since = since
        }
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let limits: PassOnLimits
    let tunnelsOpen: Gauge

    private var hops: [Int: Hop] = [:]
    private var idle: [SocketAddress: [IdleConnection]] = [:]
    private(set) var idleCount = 0
    private var connecting = 0
    private var bodiesBytes = 0
    private var ticker: LoopTimer?
    private var nextID = 0
    private var isDraining = false
    var tunnels: [Int: Tunnel] = [:]

    init(on loop: EventLoop, limits: PassOnLimits, tunnelsOpen: Gauge) {
        self.loop = loop
        self.limits = limits
        self.tunnelsOpen = tunnelsOpen
    }

    var now: UInt64 { loop.nowMilliseconds }
    var waitingCount: Int { hops.count }
    var tunnelCount: Int { tunnels.count }

    /// Room for a body, until it is given back.
    /// - Returns: false when there is none.
    func reserve(_ bytes: Int) -> Bool {
        guard bytes <= limits.bodiesBytesMax - bodiesBytes else { return false }
        bodiesBytes += bytes
        return true
    }

    nonisolated func giveBack(_ bytes: Int) {
        loop.execute { self.assumeIsolated { $0.bodiesBytes -= bytes } }
    }

    /// Sends the request, and returns when it has been answered. When the calling task is cancelled the connection is
    /// reset, which ends the owner's work on it.
    func exchange(_ request: HopRequest, with address: SocketAddress) async -> Result<Outcome, Failure> {
        nextID += 1
        let id = nextID
        return await withTaskCancellationHandler(
            operation: { await withCheckedContinuation { begin(id, request, address, $0) } },
            onCancel: { loop.execute { self.assumeIsolated { $0.abandon(id, .left) } } })
    }

    private func begin(
        _ id: Int, _ request: HopRequest, _ address: SocketAddress,
        _ continuation: CheckedContinuation<Result<Outcome, Failure>, Never>
    ) {
        guard !isDraining else { return continuation.resume(returning: .failure(.unreachable)) }
        let isFull = request.kind == .upgrade && tunnels.count >= limits.tunnelsMax
        guard hops.count < limits.hopsMax, !isFull else { return continuation.resume(returning: .failure(.full)) }
        let hop = Hop(
            id: id, address: address, request: request, limits: limits,
            deadlineAt: now + limits.connectMillisecondsMax)
        hop.answered = continuation
        hops[id] = hop
        startTicking()
        if request.kind != .upgrade, let stream = takeIdle(address) {
            send(hop, on: stream)
            return
        }
        guard connecting < limits.connectsMax else { return abandon(id, .unreachable) }
        connecting += 1
        TCPStream.connect(to: address, on: loop) { result in
            self.connecting -= 1
            self.connected(id, result)
        }
    }

    private func connected(_ id: Int, _ result: Result<TCPStream, LoopError>) {
        switch result {
        case .success(let stream):
            guard let hop = hops[id] else { return stream.close() }
            send(hop, on: stream)
        case .failure: abandon(id, .unreachable)
        }
    }

    private func send(_ hop: Hop, on stream: TCPStream) {
        hop.stream = stream
        let seconds = hop.request.kind == .poll ? limits.pollSecondsMax : limits.answerSecondsMax
        hop.deadlineAt = now + UInt64(seconds) * 1000
        stream.onRead = { bytes in self.received(hop, bytes) }
        stream.onEnd = { self.abandon(hop.id, .broken) }
        stream.onClose = { _ in self.abandon(hop.id, .broken) }
        stream.write(hop.request.bytes)
        stream.startReading()
    }

    private func received(_ hop: Hop, _ bytes: UnsafeRawBufferPointer) {
        let event: AnswerParser.Event
        do throws(AnswerParser.Fault) {
            event = try hop.parser.feed(bytes)
        } catch {
            return abandon(hop.id, .broken)
        }
        switch event {
        case .needsMore: break
        case .answer(let answer, let mayStay):
            guard let stream = hop.stream else { return }
            if mayStay, hop.request.kind != .upgrade { keep(stream, hop.address) } else { letGo(stream) }
            finish(hop, .success(.answer(answer)))
        case .switched(let answer, let rest):
            guard let stream = hop.stream else { return }
            park(hop.id, stream, rest)
            finish(hop, .success(.tunnel(hop.id, answer)))
        }
    }

    private func finish(_ hop: Hop, _ result: Result<Outcome, Failure>) {
        hops[hop.id] = nil
        let answered = hop.answered
        hop.answered = nil
        hop.stream = nil
        answered?.resume(returning: result)
    }

    /// Ends a hop without an answer. The reset tells the owner at once, where an orderly end would not: a client may
    /// end its side and still wait for its answer.
    private func abandon(_ id: Int, _ failure: Failure) {
        guard let hop = hops[id] else {
            // The answer came in the turn of the cancellation: nobody will claim its tunnel.
            if failure == .left { endTunnel(id) }
            return
        }
        let stream = hop.stream
        finish(hop, .failure(failure))
        guard let stream else { return }
        detach(stream)
        stream.reset()
    }

    private func detach(_ stream: TCPStream) {
        stream.onRead = nil
        stream.onEnd = nil
        stream.onDrain = nil
        stream.onClose = nil
    }

    private func letGo(_ stream: TCPStream) {
        detach(stream)
        stream.close()
    }

    // MARK: Kept connections

    private func takeIdle(_ address: SocketAddress) -> TCPStream? {
        while let connection = idle[address]?.popLast() {
            idleCount -= 1
            if idle[address]?.isEmpty == true { idle[address] = nil }
            detach(connection.stream)
            if connection.stream.isOpen { return connection.stream }
        }
        return nil
    }

    private func keep(_ stream: TCPStream, _ address: SocketAddress) {
        guard idleCount < limits.idleConnectionsMax, !isDraining else { return letGo(stream) }
        let connection = IdleConnection(stream, since: now)
        // Whatever comes now was not asked for.
        stream.onRead = { _ in self.drop(connection, address) }
        stream.onEnd = { self.drop(connection, address) }
        stream.onClose = { _ in self.drop(connection, address) }
        idle[address, default: []].append(connection)
        idleCount += 1
    }

    private func drop(_ connection: IdleConnection, _ address: SocketAddress) {
        guard let index = idle[address]?.firstIndex(where: { $0 === connection }) else { return }
        idle[address]?.remove(at: index)
        if idle[address]?.isEmpty == true { idle[address] = nil }
        idleCount -= 1
        letGo(connection.stream)
    }

    // MARK: Time

    func startTicking() {
        guard ticker == nil else { return }
        let ticker = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.tick() } }
        ticker.start(milliseconds: limits.tickMilliseconds, repeating: limits.tickMilliseconds)
        self.ticker = ticker
    }

    private func tick() {
        let now = now
        for hop in Array(hops.values) where hop.deadlineAt <= now {
            abandon(hop.id, hop.stream == nil ? .unreachable : .tooSlow)
        }
        let idleMax = UInt64(limits.idleSecondsMax) * 1000
        for (address, connections) in idle {
            for connection in connections where connection.since + idleMax <= now { drop(connection, address) }
        }
        endOverdueTunnels(now)
        if hops.isEmpty, idle.isEmpty, tunnels.isEmpty { ticker = nil }
    }

    /// Ends what waits and what is tunnelled: clients come back to another instance. Nothing is passed on any more.
    func drain() {
        isDraining = true
        for id in Array(hops.keys) { abandon(id, .unreachable) }
        for (address, connections) in idle {
            for connection in connections { drop(connection, address) }
        }
        for id in Array(tunnels.keys) { endTunnel(id) }
    }
}

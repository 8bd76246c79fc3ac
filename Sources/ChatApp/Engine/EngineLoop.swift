import Crypto
import EventLoop
import HTTPServer
import ServiceKit
import SocketIO
import WebSocket

/// What the loops of one process share.
struct EngineParts: Sendable {
    let instance: String
    let limits: ChatLimits
    let counts: EngineCounts
    let random: any RandomSource
    let metrics: EngineMetrics
}

struct EngineMetrics: Sendable {
    let polling: Gauge
    let webSocket: Gauge
    let upgrades: Counter
    let polls: Counter
    let slowReaders: Counter

    init(_ metrics: Metrics) {
        let help = "Sessions of Socket.IO that are open, by transport."
        polling = metrics.gauge("martlet_socketio_sessions", help, labels: ["transport": "polling"])
        webSocket = metrics.gauge("martlet_socketio_sessions", help, labels: ["transport": "websocket"])
        upgrades = metrics.counter("martlet_socketio_upgrades_total", "Sessions that went from polling to WebSocket.")
        polls = metrics.counter("martlet_socketio_polls_total", "Polls that were answered with packets.")
        slowReaders = HubMetrics.slowReaders(metrics, protocolName: "socket.io")
    }
}

/// The sessions of Socket.IO that live on one loop: their polls and POSTs may come in on any loop of the process and
/// hop here, their WebSockets are moved here.
public actor EngineLoop {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Of an id: the lower bits are the place, the upper ones tell its owners apart.
    private static let slotBits = 31
    private static let slotMask = (1 << slotBits) - 1
    static let pingFrame = SharedFrame(packet: EnginePacket(.ping))

    let parts: EngineParts
    let delegate: any SocketIODelegate
    var limits: SocketIOLimits { parts.limits.socketIO }

    private var slots: [EngineConnection?] = []
    private var free: [Int] = []
    private var taken = 0
    private var bySecret: [String: EngineConnection] = [:]
    var bySocket: [Int: EngineConnection] = [:]
    /// For whom the WebSocket is that is being adopted.
    var adopting: Adopting?
    private var dirty: [EngineConnection] = []
    private var wheel: DeadlineWheel
    private var ticker: LoopTimer?
    private(set) var isDraining = false
    private var emptied: [CheckedContinuation<Void, Never>] = []

    enum Adopting {
        /// A new session, of a client of this address.
        case open(String?)
        case upgrade(String)
    }

    init(on loop: EventLoop, parts: EngineParts, delegate: any SocketIODelegate) {
        self.loop = loop
        self.parts = parts
        self.delegate = delegate
        let limits = parts.limits.socketIO
        wheel = DeadlineWheel(
            tickMilliseconds: DeadlineWheel.tickMilliseconds(
                for: (limits.pingIntervalMilliseconds, limits.pingTimeoutMilliseconds)),
            now: 0)
    }

    /// Runs soon, on the loop; calls keep their order.
    nonisolated func post(_ body: @escaping @Sendable (isolated EngineLoop) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    /// Runs at once on the loop's own thread, soon from another.
    nonisolated func run(_ body: @escaping @Sendable (isolated EngineLoop) -> Void) {
        if loop.isCurrent { assumeIsolated { body($0) } } else { post(body) }
    }

    var now: UInt64 { loop.nowMilliseconds }

    // MARK: Sessions

    /// Sessions that are not forgotten yet.
    var count: Int { bySecret.count }

    func connection(_ id: Int) -> EngineConnection? {
        let slot = id & Self.slotMask
        guard slot < slots.count, let connection = slots[slot], connection.id == id else { return nil }
        return connection
    }

    func connection(of secret: String) -> EngineConnection? { bySecret[secret] }

    func open(_ transport: EngineSession.Transport, from address: String?) -> EngineConnection {
        taken &+= 1
        let slot = free.popLast() ?? slots.count
        let secret = Base64URL.encode(parts.random.bytes(15))
        let connection = EngineConnection(
            id: (taken & Self.slotMask) << Self.slotBits | slot, secret: secret, address: address,
            transport: transport, limits: limits, now: now)
        if slot == slots.count { slots.append(connection) } else { slots[slot] = connection }
        bySecret[secret] = connection
        gauge(transport).add(1)
        startTicking()
        schedule(connection)
        return connection
    }

    func openPacket(_ connection: EngineConnection) -> EnginePacket {
        let sid = EngineSessionID(instance: parts.instance, loop: loop.index, secret: connection.secret)
        return EngineSession.openPacket(sid: sid.text, connection.session.transport, limits: limits)
    }

    private func forget(_ connection: EngineConnection) {
        guard bySecret.removeValue(forKey: connection.secret) != nil else { return }
        slots[connection.id & Self.slotMask] = nil
        free.append(connection.id & Self.slotMask)
        if let webSocket = connection.webSocket { bySocket[webSocket.id] = nil }
        connection.webSocket = nil
        // No request may be left without an answer, whatever ended its session.
        take(\.poll, connection) { EngineAnswer.payload([EnginePacket(.close)], origin: $0) }
        take(\.post, connection) { EngineAnswer.refusal(.unknownSession, origin: $0) }
        parts.counts.remove(connection.address, isStranger: connection.isStranger)
        gauge(connection.session.transport).add(-1)
        guard bySecret.isEmpty else { return }
        ticker = nil
        for continuation in emptied { continuation.resume() }
        emptied = []
    }

    func gauge(_ transport: EngineSession.Transport) -> Gauge {
        transport == .polling ? parts.metrics.polling : parts.metrics.webSocket
    }

    /// No stranger any more.
    func letIn(_ connection: EngineConnection) {
        guard connection.isStranger else { return }
        connection.isStranger = false
        parts.counts.signedIn(connection.address)
    }

    // MARK: Time

    private func startTicking() {
        guard ticker == nil else { return }
        _ = wheel.advance(to: now)
        let milliseconds = wheel.tickMilliseconds
        let ticker = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.tick() } }
        ticker.start(milliseconds: milliseconds, repeating: milliseconds)
        self.ticker = ticker
    }

    private func tick() {
        let now = now
        for entry in wheel.advance(to: now) {
            guard let connection = connection(entry.id), connection.wheelTick == entry.tick else { continue }
            connection.wheelTick = .max
            if !connection.isEnded, connection.sockets.isLate(now: now) {
                perform(connection.session.close(now: now), connection)
            }
            perform(connection.session.tick(now: now), connection)
        }
    }

    /// Sees to it that the session is looked at when it is time. A later deadline than the one it lies under is found
    /// when it is looked at.
    func schedule(_ connection: EngineConnection) {
        let tick = wheel.tick(for: connection.deadline)
        guard tick < connection.wheelTick, self.connection(connection.id) != nil else { return }
        connection.wheelTick = tick
        wheel.insert(connection.id, tick: tick)
    }

    // MARK: Doing

    func perform(_ actions: [EngineSession.Action], _ connection: EngineConnection) {
        var isGone = false
        for action in actions {
            switch action {
            case .answerPoll(let packets):
                parts.metrics.polls.add()
                take(\.poll, connection) { EngineAnswer.payload(packets, origin: $0) }
                if connection.session.buffered.packets == 0 { drained(connection) }
            case .refusePoll(let error): take(\.poll, connection) { EngineAnswer.refusal(error, origin: $0) }
            case .answerPost: take(\.post, connection) { EngineAnswer.ok(origin: $0) }
            case .refusePost(let error): take(\.post, connection) { EngineAnswer.refusal(error, origin: $0) }
            case .refuseBigPost: take(\.post, connection) { EngineAnswer.tooBig(origin: $0) }
            case .deliver(let packet): deliver(packet, connection)
            case .write(let packet):
                connection.webSocket?.send(packet.kind == .ping ? Self.pingFrame : SharedFrame(packet: packet))
            case .closeWebSocket: closeWebSocket(connection)
            case .ended: ended(connection)
            case .gone: isGone = true
            }
        }
        if isGone { forget(connection) } else { schedule(connection) }
    }

    private func take(
        _ place: ReferenceWritableKeyPath<EngineConnection, EngineConnection.Waiting?>, _ connection: EngineConnection,
        _ response: (String?) -> HTTPResponse
    ) {
        guard let waiting = connection[keyPath: place] else { return }
        connection[keyPath: place] = nil
        waiting.answer.send(response(waiting.origin))
    }

    private func closeWebSocket(_ connection: EngineConnection) {
        guard let webSocket = connection.webSocket else { return }
        connection.webSocket = nil
        bySocket[webSocket.id] = nil
        webSocket.close(isDraining ? .serviceRestart : .normal)
    }

    private func ended(_ connection: EngineConnection) {
        guard !connection.isEnded else { return }
        connection.isEnded = true
        for serial in connection.sockets.end() { delegate.disconnected(handle(connection, serial)) }
    }

    func drained(_ connection: EngineConnection) {
        guard !connection.isEnded else { return }
        for serial in connection.sockets.serials { delegate.drained(handle(connection, serial)) }
    }

    func handle(_ connection: EngineConnection, _ serial: Int32) -> SocketIOHandle {
        SocketIOHandle(id: .init(session: connection.id, serial: serial), engine: self)
    }

    // MARK: Sending

    /// Sends a packet whose frame is at hand.
    func send(_ packet: EnginePacket, _ frame: SharedFrame, to connection: EngineConnection) {
        switch connection.session.send(packet) {
        case .write: connection.webSocket?.send(frame)
        case .wait: markDirty(connection)
        case .dropped: break
        case .overflow: perform(connection.session.overflow(), connection)
        }
    }

    /// All that is due to a poll in one turn goes out in one answer.
    private func markDirty(_ connection: EngineConnection) {
        guard !connection.isDirty, connection.session.isPollWaiting else { return }
        connection.isDirty = true
        dirty.append(connection)
        if dirty.count == 1 { loop.atTurnEnd { self.flush() } }
    }

    private func flush() {
        let list = dirty
        dirty = []
        for connection in list {
            connection.isDirty = false
            perform(connection.session.flush(), connection)
        }
    }

    // MARK: Ending

    /// Ends every session, and takes no new ones: WebSockets are closed with 1012, polls answered with what is left and
    /// a `1`. Clients come back, to another instance.
    func drain() {
        isDraining = true
        let now = now
        for case let connection? in slots { perform(connection.session.close(now: now), connection) }
    }

    /// Returns when the last session has been told, or soon after.
    func untilEmpty() async {
        guard !bySecret.isEmpty else { return }
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.forgetAll() } }
        timer.start(milliseconds: parts.limits.engineDrainMillisecondsMax)
        await withCheckedContinuation { emptied.append($0) }
        timer.cancel()
    }

    /// Between its polls a client that is still there is away for milliseconds.
    private func forgetAll() {
        for case let connection? in slots { forget(connection) }
    }
}

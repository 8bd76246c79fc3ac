import EventLoop
import Glibc

/// The connections of one loop.
///
/// Pinned on the loop: libuv's callbacks enter it as what they are, synchronous calls on its thread, and a handler that
/// suspends resumes there.
actor HTTPLoop {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let limits: HTTPLimits
    let handler: HTTPHandler
    let onError: @Sendable (any Error, HTTPRequest) -> HTTPResponse
    let onRefusal: @Sendable (HTTPError) -> HTTPResponse
    let tracing: HTTPTracing?

    let heads = HeadParser()
    private var listener: TCPListener?
    private var tick: LoopTimer?
    private var slots: [HTTPConnection?] = []
    private var freeSlots: [Int32] = []
    private var generation: UInt32 = 0
    var open = 0
    var accepted = 0
    var draining = false
    var measured = HTTPMeasurements()
    var idleUntil: UInt64 = 0
    var drainTimer: LoopTimer?
    var drainWaiter: CheckedContinuation<Void, Never>?

    /// An empty output buffer kept for the next answer, so that idle connections hold none. One is enough: an answer is
    /// flushed before the next is written, but for pipelines.
    private var spare: [UInt8] = []
    static let spareBufferBytesMax = 64 * 1024

    /// With output to be flushed at the end of the turn.
    var unflushed: [HTTPConnection] = []

    private var dateLine: [UInt8] = []
    private var dateUntil: UInt64 = 0
    /// Deadlines are looked at this often; they are seconds, so nobody misses the precision.
    static let tickMilliseconds: UInt64 = 500
    /// Moves the clock of the deadlines forward, for tests.
    private var clockOffset: UInt64 = 0

    init(
        loop: EventLoop, limits: HTTPLimits, handler: @escaping HTTPHandler,
        onError: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse,
        onRefusal: @escaping @Sendable (HTTPError) -> HTTPResponse, tracing: HTTPTracing? = nil
    ) {
        self.loop = loop
        self.limits = limits
        self.handler = handler
        self.onError = onError
        self.onRefusal = onRefusal
        self.tracing = tracing
    }

    var now: UInt64 { loop.nowMilliseconds + clockOffset }

    // MARK: Accepting

    /// - Parameter joins: another loop of the same server listens there already.
    func listen(_ address: SocketAddress, joins: Bool) throws -> SocketAddress {
        let listener = try TCPListener(on: loop, address: address, joins: joins) { stream in self.accept(stream) }
        self.listener = listener
        let tick = LoopTimer(on: loop) { self.expire() }
        tick.start(milliseconds: Self.tickMilliseconds, repeating: Self.tickMilliseconds)
        self.tick = tick
        return listener.address
    }

    var isListening: Bool { listener != nil }

    func stopListening() {
        listener?.close()
        listener = nil
        if open == 0 { stopTicking() }
    }

    /// Clients whose connection the kernel has already accepted would be reset.
    func stopListeningOnceEmpty() {
        if listener?.isBacklogEmpty == true { stopListening() }
    }

    func stopTicking() {
        tick?.cancel()
        tick = nil
    }

    private func accept(_ stream: TCPStream) {
        accepted += 1
        guard open < limits.connectionsMax else {
            stream.close()
            return
        }
        open += 1
        generation &+= 1
        let slot = freeSlots.popLast() ?? Int32(slots.count)
        let connection = HTTPConnection(
            stream: stream, id: ConnectionID(slot: slot, generation: generation),
            parser: HTTPParser(limits: limits, heads: heads))
        if Int(slot) == slots.count { slots.append(connection) } else { slots[Int(slot)] = connection }
        stream.onRead = { bytes in self.received(connection, bytes) }
        stream.onEnd = { self.ended(connection) }
        stream.onDrain = { self.drained(connection) }
        stream.onClose = { _ in self.closed(connection) }
        // A client that connects and says nothing is as slow as one that stops in its head.
        arm(connection, .head, seconds: limits.headSecondsMax)
        stream.startReading()
    }

    func connection(_ id: ConnectionID) -> HTTPConnection? {
        guard let connection = slots[Int(id.slot)], connection.id == id else { return nil }
        return connection
    }

    /// Forgets a connection: it is closed, or it is somebody else's now.
    func release(_ connection: HTTPConnection) {
        noteEnd(connection)
        connection.phase = .gone
        slots[Int(connection.id.slot)] = nil
        freeSlots.append(connection.id.slot)
        open -= 1
        drainProgress()
    }

    /// Open connections, for draining.
    var connections: [HTTPConnection] { slots.compactMap { $0 } }

    // MARK: Time

    func arm(_ connection: HTTPConnection, _ deadline: HTTPConnection.Deadline, seconds: Int) {
        connection.deadline = deadline
        connection.deadlineAt = now + UInt64(seconds) * 1000
    }

    private func expire() {
        let now = now
        for connection in slots {
            guard let connection, connection.deadline != .none else { continue }
            if connection.deadlineAt <= now {
                expired(connection)
            } else if connection.deadline == .idle, connection.requestWaiter != nil {
                let since = connection.deadlineAt - UInt64(limits.idleSecondsMax) * 1000
                // An idle connection holds no task: it would be most of its memory.
                if now >= since + Self.idleTaskMilliseconds {
                    connection.isRetiring = true
                    connection.wakeTask()
                }
            }
        }
    }

    /// How long a task waits for the next request.
    private static let idleTaskMilliseconds: UInt64 = 2_000

    /// Lets time pass for the deadlines at once. For tests.
    func advanceClock(seconds: Int) {
        clockOffset += UInt64(seconds) * 1000
        expire()
    }

    /// The `Date` line, made anew at most once a second.
    var date: [UInt8] {
        let now = loop.nowMilliseconds
        if now >= dateUntil {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            dateLine = Array("Date: \(HTTPDate.text(time.tv_sec))\r\n".utf8)
            dateUntil = now + 1000 - UInt64(time.tv_nsec) / 1_000_000
        }
        return dateLine
    }

    // MARK: Buffers

    func takeBuffer() -> [UInt8] {
        let buffer = spare
        spare = []
        return buffer
    }

    func keepBuffer(_ buffer: consuming [UInt8]) {
        guard spare.capacity == 0, buffer.capacity <= Self.spareBufferBytesMax else { return }
        buffer.removeAll(keepingCapacity: true)
        spare = buffer
    }
}

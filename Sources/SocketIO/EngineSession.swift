/// One session of Engine.IO v4, server's side, without its connections: what happens goes in, what to do comes out.
///
/// The owner holds at most one poll, one POST and one WebSocket for it, does the actions in order, and calls `tick`
/// no later than `deadline`. Times are milliseconds of one monotonic clock.
public struct EngineSession: Sendable {
    public enum Transport: Sendable { case polling, webSocket }

    /// Why a session is over, for logs and tests.
    public enum Reason: Sendable, Equatable {
        case clientLeft, serverClosed, pingTimeout, overlap, badPacket, tooBig, slowReader, transportClosed
    }

    public enum Action: Sendable, Equatable {
        /// Ends the poll that waits, or the one that has just come: 200 with these.
        case answerPoll([EnginePacket])
        /// 400 to the poll that has just come; the one that waits is not meant.
        case refusePoll(EngineError)
        /// `ok` to the POST.
        case answerPost
        /// To the POST that has just come, or whose body has.
        case refusePost(EngineError)
        /// 413 to the POST.
        case refuseBigPost
        /// A message for the application.
        case deliver(EnginePacket)
        /// Over the WebSocket, which is the session's or is tried out.
        case write(EnginePacket)
        /// Closes the WebSocket that is the session's or is tried out, orderly.
        case closeWebSocket
        /// The session serves nobody any more: the application is told, and only a last poll may still come.
        case ended(Reason)
        /// The session is to be forgotten.
        case gone
    }

    /// What becomes of a packet that is sent.
    public enum Sending: Sendable {
        /// The owner writes it to the WebSocket.
        case write
        /// It waits; `flush()` is to be called when the turn's packets are all there.
        case wait
        /// The session is over.
        case dropped
        /// The reader is too slow: nothing is sent, and `overflow` is to be called.
        case overflow
    }

    enum State: UInt8 {
        case open
        /// Ended by us: a poll takes what waits, and a `1`.
        case closing
        /// The client said `1` in a POST that is not answered yet: a poll that it sent before may still come in.
        case leaving
        case over
    }

    enum Upgrade: UInt8 {
        case none
        /// A WebSocket is there, and has said nothing.
        case opened
        /// It said `2probe`: polls are ended, so that the client comes over.
        case probed
    }

    public internal(set) var transport: Transport
    var state = State.open
    var upgrade = Upgrade.none
    public internal(set) var isPollWaiting = false
    /// A POST has come, and is not answered yet.
    var isPosting = false
    var isAwaitingPong = false
    var waiting: [EnginePacket] = []
    var waitingBytes = 0
    /// The next ping, or when its pong is late.
    var heartbeatAt: UInt64
    var heardAt: UInt64
    /// Of the upgrade, or of the end.
    var stateUntil = UInt64.max
    let limits: SocketIOLimits

    /// Of the time for a pong: what a ping may be late without its client being given more.
    static let lateShare: UInt64 = 4

    /// A session that opens over a poll, or over a WebSocket. `open` makes its first packet.
    public init(_ transport: Transport, limits: SocketIOLimits, now: UInt64) {
        self.transport = transport
        self.limits = limits
        heartbeatAt = now + limits.pingIntervalMilliseconds
        heardAt = now
    }

    /// Bytes and packets that wait for the client.
    public var buffered: (packets: Int, bytes: Int) { (waiting.count, waitingBytes) }
    public var isOpen: Bool { state == .open }

    /// The packet that tells the client the rules: the first of a session. Keys and order as the reference.
    public static func openPacket(sid: String, _ transport: Transport, limits: SocketIOLimits) -> EnginePacket {
        let upgrades = transport == .polling ? #""websocket""# : ""
        let text =
            #"{"sid":"\#(sid)","upgrades":[\#(upgrades)],"pingInterval":\#(limits.pingIntervalMilliseconds),"#
            + #""pingTimeout":\#(limits.pingTimeoutMilliseconds),"maxPayload":\#(limits.payloadBytesMax)}"#
        return EnginePacket(.open, text.utf8)
    }

    // MARK: Sending

    /// A packet of the application's.
    public mutating func send(_ packet: EnginePacket) -> Sending {
        guard state == .open else { return .dropped }
        if transport == .webSocket { return .write }
        let size = EnginePayload.size(packet) + 1
        guard waiting.count < limits.waitingPacketsMax,
            waiting.isEmpty || waitingBytes + size <= limits.waitingBytesMax
        else { return .overflow }
        waiting.append(packet)
        waitingBytes += size
        return .wait
    }

    /// The client does not take what it is sent.
    public mutating func overflow() -> [Action] { abort(.slowReader) }

    /// Ends the poll that waits if there is something for it.
    public mutating func flush() -> [Action] {
        guard isPollWaiting, state == .open, !waiting.isEmpty else { return [] }
        isPollWaiting = false
        return [.answerPoll(takeWaiting())]
    }

    /// The oldest packets, as many as one payload may have.
    mutating func takeWaiting() -> [EnginePacket] {
        var count = 0
        var bytes = 0
        for packet in waiting.prefix(limits.packetsPerPollMax) {
            let size = EnginePayload.size(packet) + 1
            guard count == 0 || bytes + size <= limits.payloadBytesMax else { break }
            count += 1
            bytes += size
        }
        let taken = Array(waiting.prefix(count))
        if count == waiting.count {
            waiting = []
            waitingBytes = 0
        } else {
            waiting.removeFirst(count)
            waitingBytes -= bytes
        }
        return taken
    }

    // MARK: Ending

    /// The application is done with the client.
    public mutating func close(now: UInt64) -> [Action] {
        guard state == .open else { return [] }
        if transport == .webSocket { return end(.serverClosed) }
        var actions: [Action] = upgrade == .none ? [] : [.closeWebSocket]
        upgrade = .none
        state = .closing
        stateUntil = now + limits.closeMillisecondsMax
        actions.append(.ended(.serverClosed))
        if isPollWaiting { actions += lastAnswer() }
        return actions
    }

    /// What is left, then the `1`: over as many polls as it takes.
    mutating func lastAnswer() -> [Action] {
        isPollWaiting = false
        var packets = takeWaiting()
        // Where the end is the same either way a full payload may wait for its `1`.
        guard waiting.isEmpty, packets.count < limits.packetsPerPollMax else { return [.answerPoll(packets)] }
        packets.append(.close)
        return [.answerPoll(packets)] + end(.serverClosed)
    }

    /// Ends at once, telling a poll that waits and a WebSocket.
    mutating func abort(_ reason: Reason) -> [Action] {
        guard state != .over else { return [] }
        var actions: [Action] = []
        if isPollWaiting { actions.append(.answerPoll([.close])) }
        if state == .leaving, isPosting { actions.append(.answerPost) }
        return actions + end(reason)
    }

    /// What every end at once has: no transport is left, the application is told unless it was, nothing waits.
    mutating func end(_ reason: Reason) -> [Action] {
        var actions: [Action] = []
        if transport == .webSocket || upgrade != .none { actions.append(.closeWebSocket) }
        if state == .open { actions.append(.ended(reason)) }
        state = .over
        upgrade = .none
        isPollWaiting = false
        isPosting = false
        waiting = []
        waitingBytes = 0
        actions.append(.gone)
        return actions
    }

    // MARK: Time

    /// When `tick` has something to do next.
    public var deadline: UInt64 { state == .open ? min(heartbeatAt, stateUntil) : stateUntil }

    /// Heartbeats, and what took too long. Also called before every other event, so that none comes after its time.
    public mutating func tick(now: UInt64) -> [Action] {
        guard state != .over, now >= deadline else { return [] }
        switch state {
        case .closing: return end(.serverClosed)
        case .leaving:
            let answer: [Action] = isPosting ? [.answerPost] : []
            return answer + end(.clientLeft)
        case .open, .over: break
        }
        var actions: [Action] = []
        if now >= stateUntil {
            // The trial took too long; the session goes on over its polls.
            upgrade = .none
            stateUntil = .max
            actions.append(.closeWebSocket)
        }
        if now >= heartbeatAt { actions += heartbeat(now) }
        return actions
    }

    private mutating func heartbeat(_ now: UInt64) -> [Action] {
        if isAwaitingPong {
            // Whoever still sends lives: a pong may stand behind a large message.
            let heardUntil = heardAt + limits.pingTimeoutMilliseconds
            guard now < heardUntil else { return abort(.pingTimeout) }
            heartbeatAt = heardUntil
            return []
        }
        // Counted from when the ping was due, so that looks which are a little late do not add up; but a loop that was
        // held up must not take the time it lost from the client.
        let isOnTime = now - heartbeatAt <= limits.pingTimeoutMilliseconds / Self.lateShare
        heartbeatAt = (isOnTime ? heartbeatAt : now) + limits.pingTimeoutMilliseconds
        isAwaitingPong = true
        switch send(.ping) {
        case .write: return [.write(.ping)]
        case .wait: return flush()
        case .dropped: return []
        case .overflow: return abort(.slowReader)
        }
    }

    mutating func ponged(now: UInt64) {
        isAwaitingPong = false
        heartbeatAt = now + limits.pingIntervalMilliseconds
    }
}

@testable import SocketIO

/// A session driven as the server drives it, remembering what it does.
final class Machine {
    var session: EngineSession
    var now: UInt64 = 0
    /// Answers to polls, in order; the payload as text.
    var polls: [String] = []
    var refusedPolls: [EngineError] = []
    var posts: [String] = []
    var delivered: [EnginePacket] = []
    var written: [String] = []
    var closedSockets = 0
    var ended: [EngineSession.Reason] = []
    var isGone = false

    static var limits: SocketIOLimits {
        var limits = SocketIOLimits()
        limits.pingIntervalMilliseconds = 300
        limits.pingTimeoutMilliseconds = 200
        return limits
    }

    init(_ transport: EngineSession.Transport = .polling, limits: SocketIOLimits = Machine.limits) {
        session = EngineSession(transport, limits: limits, now: 0)
    }

    func perform(_ actions: [EngineSession.Action]) {
        for action in actions {
            switch action {
            case .answerPoll(let packets): polls.append(text(EnginePayload.encode(packets)))
            case .refusePoll(let error): refusedPolls.append(error)
            case .answerPost: posts.append("ok")
            case .refusePost: posts.append("400")
            case .refuseBigPost: posts.append("413")
            case .deliver(let packet): delivered.append(packet)
            case .write(let packet): written.append(packet.isBinary ? "binary" : text(packet.encoded))
            case .closeWebSocket: closedSockets += 1
            case .ended(let reason): ended.append(reason)
            case .gone: isGone = true
            }
        }
    }

    func poll() { perform(session.poll(now: now)) }

    func post(_ body: String) {
        let actions = session.postBegan(now: now)
        perform(actions)
        let isRefused = actions.contains { if case .refusePost = $0 { true } else { false } }
        if !isRefused { perform(session.postEnded(bytes(body), now: now)) }
    }

    func openSocket() -> Bool { session.webSocketOpened(now: now) }

    func frame(_ text: String) { perform(session.frame(bytes(text), isBinary: false, now: now)) }

    func tick(at time: UInt64) {
        now = time
        perform(session.tick(now: now))
    }

    func send(_ message: String) {
        switch session.send(EnginePacket(.message, message.utf8)) {
        case .write: written.append("4" + message)
        case .wait: perform(session.flush())
        case .dropped: break
        case .overflow: perform(session.overflow())
        }
    }

    /// The messages that came so far, as an echoing server would send them back.
    var texts: [String] { delivered.map { $0.isBinary ? "binary" : text($0.data) } }
}

/// A connection, so that a test may ask it within an expectation.
final class Client {
    var connection: SocketConnection

    init(_ limits: SocketIOLimits = SocketIOLimits()) { connection = SocketConnection(limits: limits, now: 0) }

    /// One that has joined a namespace.
    convenience init(joining packet: String) {
        self.init()
        _ = receive(packet)
        _ = accept(1)
    }

    func receive(_ packet: String) -> [SocketConnection.Action] {
        connection.received(EnginePacket(.message, packet.utf8), now: 0)
    }

    func receive(binary: [UInt8]) -> [SocketConnection.Action] {
        connection.received(EnginePacket(binary: binary), now: 0)
    }

    func accept(_ serial: Int32) -> String? { connection.accept(serial, sid: "x").map { text($0.encoded) } }

    func refuse(_ serial: Int32, _ message: String, data: String? = nil) -> String? {
        connection.refuse(serial, message: message, data: data.map { bytes($0) }).map { text($0.encoded) }
    }

    func disconnect(_ serial: Int32) -> String? { connection.disconnect(serial, now: 7).map { text($0.encoded) } }
    func end() -> [Int32] { connection.end() }
}

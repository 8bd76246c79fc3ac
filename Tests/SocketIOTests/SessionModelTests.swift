import Seeded
import Testing

@testable import SocketIO

/// A session under random events, and what must hold whatever they are.
private struct Walk {
    var session: EngineSession
    var random: SeededGenerator
    var now: UInt64 = 0
    var log: [String] = []
    var faults: [String] = []

    /// Numbers given to the session, and those that came out, by whatever way.
    var sent = 0
    var received: [Int] = []
    /// The same of what the client says.
    var said = 0
    var heard: [Int] = []
    var openPolls = 0
    var openPosts = 0
    var hasSocket = false
    var ended = 0
    var isGone = false

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        var limits = SocketIOLimits()
        limits.pingIntervalMilliseconds = 300
        limits.pingTimeoutMilliseconds = 200
        limits.upgradeMillisecondsMax = 250
        limits.waitingPacketsMax = 24
        limits.packetsPerPollMax = 4
        let isPolling = seed % 4 != 0
        session = EngineSession(isPolling ? .polling : .webSocket, limits: limits, now: 0)
        hasSocket = !isPolling
    }

    mutating func check(_ isTrue: Bool, _ what: String) {
        if !isTrue { faults.append(what) }
    }

    mutating func perform(_ actions: [EngineSession.Action]) {
        for action in actions {
            check(!isGone, "acts after it is gone: \(action)")
            switch action {
            case .answerPoll(let packets):
                openPolls -= 1
                check(!packets.isEmpty, "an empty answer")
                for packet in packets { take(packet) }
            case .refusePoll: openPolls -= 1
            case .answerPost, .refusePost, .refuseBigPost: openPosts -= 1
            case .deliver(let packet):
                check(ended == 0, "delivers after its end")
                if let number = Int(text(packet.data)) { heard.append(number) }
            case .write(let packet):
                check(hasSocket, "writes without a socket")
                take(packet)
            case .closeWebSocket:
                check(hasSocket, "closes no socket")
                hasSocket = false
            case .ended: ended += 1
            case .gone: isGone = true
            }
        }
        check(openPolls == (session.isPollWaiting ? 1 : 0), "\(openPolls) polls are open")
        check(openPolls >= 0 && openPolls <= 1 && openPosts >= 0 && openPosts <= 1, "more than one request")
        check(ended <= 1 && (!isGone || ended == 1), "ended \(ended) times")
        check(!isGone || (openPolls == 0 && !hasSocket), "something is left open")
        check(received == Array(0..<received.count), "lost, doubled or out of order: \(received)")
        check(heard == Array(heard.indices.map { heard[0] + $0 }), "heard \(heard)")
        if isGone == false { check(session.deadline > now || session.tick(now: now).isEmpty, "a deadline is missed") }
    }

    private mutating func take(_ packet: EnginePacket) {
        if packet.kind == .message, let number = Int(text(packet.data)) { received.append(number) }
    }

    mutating func step() {
        let event = Int.random(in: 0..<20, using: &random)
        log.append("\(event)@\(now)")
        switch event {
        case 0, 1, 2, 3: send()
        case 4, 5, 6: poll()
        case 7: leavePoll()
        case 8, 9, 10: beginOrEndPost()
        case 11, 12: openSocket()
        case 13, 14, 15, 16: frame()
        case 17: socketGone()
        case 18: advance(by: UInt64.random(in: 0..<150, using: &random))
        default: if Int.random(in: 0..<15, using: &random) == 0 { perform(session.close(now: now)) }
        }
    }

    mutating func send() {
        switch session.send(EnginePacket(.message, String(sent).utf8)) {
        case .write:
            check(hasSocket, "written to no socket")
            received.append(sent)
            sent += 1
            perform([])
        case .wait:
            sent += 1
            if Bool.random(using: &random) { perform(session.flush()) }
        case .dropped: check(ended == 1, "dropped while open")
        case .overflow:
            perform(session.overflow())
            check(isGone, "goes on after an overflow")
        }
    }

    mutating func poll() {
        guard !isGone else { return }
        // What time has made due belongs to the poll that waits, as the server does it.
        perform(session.tick(now: now))
        guard !isGone else { return }
        openPolls += 1
        perform(session.poll(now: now))
    }

    private mutating func leavePoll() {
        guard session.isPollWaiting, Int.random(in: 0..<4, using: &random) == 0 else { return }
        openPolls -= 1
        perform(session.pollLeft())
    }

    private mutating func beginOrEndPost() {
        guard !isGone else { return }
        if !session.isPosting || Int.random(in: 0..<30, using: &random) == 0 {
            openPosts += 1
            perform(session.postBegan(now: now))
        } else if session.state != .leaving {
            if Int.random(in: 0..<30, using: &random) == 0 { return perform(session.postFailed(isTooBig: false)) }
            let count = Int.random(in: 1..<4, using: &random)
            perform(session.postEnded(bytes((0..<count).map { _ in word() }.joined(separator: "\u{1E}")), now: now))
        }
    }

    /// What a client may say, mostly.
    private mutating func word() -> String {
        switch Int.random(in: 0..<40, using: &random) {
        case 0: return "1"
        case 1: return "x"
        case 2...4: return "6"
        case 5...14: return "3"
        default:
            said += 1
            return "4\(said - 1)"
        }
    }

    private mutating func openSocket() {
        guard !isGone, session.webSocketOpened(now: now) else { return }
        check(!hasSocket, "takes a second socket")
        hasSocket = true
    }

    private mutating func frame() {
        guard !isGone, hasSocket else { return }
        let trial = ["2probe", "2probe", "5", "5", "4early", "2x"]
        let place = Int.random(in: 0..<trial.count, using: &random)
        let frame = session.transport == .polling ? trial[place] : word()
        perform(session.frame(bytes(frame), isBinary: false, now: now))
    }

    private mutating func socketGone() {
        guard hasSocket, Int.random(in: 0..<6, using: &random) == 0 else { return }
        hasSocket = false
        perform(session.webSocketClosed())
    }

    mutating func advance(by milliseconds: UInt64) {
        now += milliseconds
        perform(session.tick(now: now))
    }

    /// What was sent to a client that goes on reading arrives.
    mutating func finish() {
        for _ in 0..<20 where !isGone && session.transport == .polling && session.buffered.packets > 0 { poll() }
        if session.isOpen { check(received.count == sent, "\(sent - received.count) of \(sent) did not arrive") }
        advance(by: 100_000)
        advance(by: 100_000)
        check(isGone, "never ends")
        // A body that still comes is answered, too.
        if openPosts == 1, session.postEnded([], now: now) == [.refusePost(.unknownSession)] { openPosts = 0 }
        check(openPolls == 0 && openPosts == 0, "\(openPolls) polls and \(openPosts) POSTs are never answered")
    }
}

@Suite("A session under random events")
struct SessionFuzz {
    @Test("has one poll at most, loses and doubles no packet, and ends once, whatever comes in which order")
    func sessions() throws {
        var upgraded = 0
        let rounds = try Fuzz("sessions", rounds: 6_000).run { fuzz in
            var walk = Walk(seed: fuzz.seed)
            let wasPolling = walk.session.transport == .polling
            for _ in 0..<120 where !walk.isGone && walk.faults.isEmpty { walk.step() }
            if wasPolling, walk.session.transport == .webSocket { upgraded += 1 }
            if walk.faults.isEmpty { walk.finish() }
            try fuzz.check(walk.faults.isEmpty, "\(walk.faults) after \(walk.log.suffix(12))")
        }
        // The walk reaches what it is about.
        #expect(rounds < 6_000 || upgraded > 500)
    }
}

import Core
import SocketIO
import WebSocket

/// What clients of the chat may take. Every bound of the module is here.
public struct ChatLimits: Sendable {
    /// From the opening of a socket to its `hello`; then 4408.
    public var helloSecondsMax = 10
    /// From the CONNECT of a Socket.IO client to its answer: reading its rooms takes milliseconds. Then it is refused.
    public var connectMillisecondsMax: UInt64 = 5_000
    /// The list of conversations goes to a Socket.IO client at most once in this time (contracts/01).
    public var pushMilliseconds: UInt64 = 1_000
    /// A POST that is refused is read to its end up to this size, eight of the largest one: a proxy that is cut off
    /// while it still sends tells its client that nobody is there, and not what was wrong.
    public var refusedBytesMax = 8 << 20
    /// Of one user in one process: browsers, phones and their tabs. The next one is closed with 4429.
    public var socketsPerUserMax = 20
    /// Of one address, where it is known, of both protocols: an office behind one router. Beyond, new ones are answered
    /// 429, and so they are beyond those that have not signed in.
    public var socketsPerAddressMax = 1_000
    public var strangersPerAddressMax = 200
    /// Rooms that a user's sockets follow: the newest. Older ones are read by `history`.
    public var roomsPerUserMax = 2_000
    /// Of one user on one loop: a fast typist with a script's patience.
    public var sendsPerSecond = 20
    public var sendsBurstMax = 60
    /// Of one address, as many as so many users: who has many accounts is still one.
    public var sendersPerAddressMax = 20
    var sendsPerAddressPerSecond: Int { sendersPerAddressMax * sendsPerSecond }
    var sendsPerAddressBurstMax: Int { sendersPerAddressMax * sendsBurstMax }
    /// Of one socket, for everything but `send`; of a Socket.IO client for all together, on top of its sends.
    public var framesPerSecond = 20
    public var framesBurstMax = 100
    /// Frames refused one after the other before the socket is closed with 4429.
    public var refusalsMax = 200
    /// Rooms whose typing and presence one socket watches, or that a Socket.IO client has open.
    public var focusMax = 16
    /// Questions (`history`, `join`) of one socket that wait for the database.
    public var questionsMax = 8
    public var historyPageMax = 100
    /// Missed messages of one room that a resume brings; beyond, the client is told to start over by `reset`.
    public var resumeMessagesMax: Int64 = 1_000
    /// Messages of one room in one read: of the feed, and of a hub for those who are behind.
    public var feedMessagesMax = 200
    public var catchUpMessagesMax = 100
    /// What waits for a slow reader of `martlet.v1`, in our memory; more closes it with 1013.
    public var outboundBytesMax = 256 * 1024
    /// What may wait for a socket that is being brought along: half of that, so that live messages find room.
    var stallBytes: Int { outboundBytesMax / 2 }
    /// Sends that wait for the batch before them; more are answered `unavailable`.
    public var sendsWaitingMax = 20_000
    /// Of one transaction, in rows and in bytes of bodies: what keeps the rooms' locks short.
    public var batchSendsMax = 512
    public var batchBytesMax = 4 * 1024 * 1024
    /// How long after a batch the next one waits for those who were answered: within it they mostly send again, if they
    /// do. Whoever sends later, or alone, does not wait.
    public var gatherMilliseconds: UInt64 = 1
    /// So many go at once: beyond, a commit more costs less than what the service and the database do side by side.
    public var gatherSendsMax = 24
    /// How long read marks gather before they are written: scrolling makes many.
    public var marksMilliseconds: UInt64 = 100
    /// At most one wake-up for typing in this time from one process.
    public var typingMilliseconds: UInt64 = 250
    /// The net below the wake-ups, where somebody is connected, and where nobody is.
    public var pollMilliseconds: UInt64 = 250
    public var idlePollMilliseconds: UInt64 = 5_000
    /// Clients come back after a restart spread over this time.
    public var retryAfterMillisecondsMax = 10_000

    /// Of who is online, and which instances live.
    public var presence = PresenceLimits()

    /// Of the protocol of Socket.IO, and what one of its clients may take.
    public var socketIO = SocketIOLimits()
    /// Sessions of Socket.IO of one process.
    public var engineSessionsMax = 40_000
    /// How long an ending process waits for polls to which it can say so.
    public var engineDrainMillisecondsMax: UInt64 = 2_000

    public init() {}

    /// A message whose every byte the client chose to escape, and the frame around it.
    static let frameBytesMax = Message.bodyBytesMax * 6 + 4_096

    public var webSocket: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.messageBytesMax = Self.frameBytesMax
        limits.outboundBytesMax = outboundBytesMax
        // What waits beyond a stall was offered to the kernel and not taken: the socket is told when it is.
        limits.dueBytesMax = min(limits.dueBytesMax, stallBytes)
        return limits
    }

    /// Heartbeats are the protocol's own there, so the frames' pings rest; silence is only a backstop.
    var engineWebSocket: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.messageBytesMax = socketIO.payloadBytesMax
        limits.outboundBytesMax = socketIO.waitingBytesMax
        limits.pingAfterSeconds = .max
        let silence = socketIO.pingIntervalMilliseconds + 2 * socketIO.pingTimeoutMilliseconds
        limits.silenceSecondsMax = Int(silence / 1000) + 10
        return limits
    }
}

extension CloseCode {
    static let unauthenticated = CloseCode(rawValue: 4401)
    static let tooSlowToGreet = CloseCode(rawValue: 4408)
    static let tooMany = CloseCode(rawValue: 4429)
}

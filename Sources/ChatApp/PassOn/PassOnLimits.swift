/// What one process may pass on. Every bound of the folder is here.
public struct PassOnLimits: Sendable {
    /// An owner is on the same network: it accepts within a millisecond, or it is gone. A lost SYN is sent again after
    /// one second, so two let one be lost.
    public var connectMillisecondsMax: UInt64 = 2_000
    /// Connections that the kernel is still trying to make, those that nobody waits for any more included.
    public var connectsMax = 1_000
    /// From request to answer of a GET: a poll ends with the owner's next ping, and a session that has not been pinged
    /// for its interval and timeout (25 s + 20 s) is lost to the client anyway.
    public var pollSecondsMax = 60
    /// From request to answer of anything else, which an owner answers at once.
    public var answerSecondsMax = 10
    /// Of a request's body: Engine.IO's maxPayload, beyond which an owner would refuse as well.
    public var bodyBytesMax = 1_000_000
    /// Of all bodies that one loop holds at a time: a session id that names a living instance costs nothing to invent.
    /// Packets are small; this is room for thousands.
    public var bodiesBytesMax = 64 * 1024 * 1024
    public var headBytesMax = 16 * 1024
    /// Of an answer's body: more than an owner lets pile up for a slow reader.
    public var answerBytesMax = 8 * 1024 * 1024
    /// Requests of one loop that wait for an owner.
    public var hopsMax = 10_000
    /// Connections of one loop that are kept open for the next request, of all owners together.
    public var idleConnectionsMax = 256
    /// Well before the owner's server closes them (75 s), so that no request is sent into a closing connection.
    public var idleSecondsMax = 30

    /// WebSockets of one loop that are passed on.
    public var tunnelsMax = 10_000
    /// Bytes that one side of a tunnel has not taken; the other side is not read beyond.
    public var tunnelBytesMax = 256 * 1024
    /// A tunnel in which nothing moved: two of Engine.IO's pings (25 s + 20 s) are overdue.
    public var tunnelIdleSecondsMax = 90
    /// From one side's end to the other's, and from the owner's 101 to the client's connection being handed over.
    public var tunnelEndSecondsMax = 5

    /// The addresses of instances are read again after this time, and at once when an owner is not found there …
    public var directorySecondsMax = 5
    /// … but not more often than this, since clients can ask for names that do not exist.
    public var directoryMillisecondsMin: UInt64 = 100

    /// Between two looks at all deadlines.
    public var tickMilliseconds: UInt64 = 250

    public init() {}
}

extension ChatLimits {
    /// What is passed on takes as long, and is as large, as the owner's Socket.IO lets it be.
    var passOn: PassOnLimits {
        var limits = PassOnLimits()
        let lost = socketIO.pingIntervalMilliseconds + socketIO.pingTimeoutMilliseconds
        limits.pollSecondsMax = Int(lost / 1000) + 15
        limits.tunnelIdleSecondsMax = 2 * Int(lost / 1000) + 1
        limits.bodyBytesMax = socketIO.payloadBytesMax
        // One packet may go beyond what lets a reader count as slow.
        limits.answerBytesMax = max(limits.answerBytesMax, 2 * socketIO.payloadBytesMax + socketIO.waitingBytesMax)
        return limits
    }
}

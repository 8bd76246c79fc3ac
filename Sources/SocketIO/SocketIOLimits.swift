/// What one client may take of the protocol, and its times. Every bound of the module is here.
public struct SocketIOLimits: Sendable {
    // Told to clients in the open packet.
    /// Between two pings of the server.
    public var pingIntervalMilliseconds: UInt64 = 25_000
    /// From a ping to its pong; then the client is taken for gone.
    public var pingTimeoutMilliseconds: UInt64 = 20_000
    /// Of one POST's body, and of one WebSocket message.
    public var payloadBytesMax = 1_000_000

    /// From the opening of the second transport to its `5`. As the reference server.
    public var upgradeMillisecondsMax: UInt64 = 10_000
    /// From the opening to the first namespace; also from the leaving of the last one to the next. As the reference.
    public var connectMillisecondsMax: UInt64 = 45_000
    /// How long a session that we ended waits for the poll that takes what is left and the `1`.
    public var closeMillisecondsMax: UInt64 = 10_000
    /// How long the answer to a client's `1` waits for a poll that was sent before it, over another connection.
    public var leaveMillisecondsMax: UInt64 = 50

    /// Of one POST: the Swift client joins all it has waiting, without a bound of its own.
    public var packetsPerPostMax = 1_000
    /// Of one answer to a poll: the Python client refuses a payload of more.
    public var packetsPerPollMax = 16
    /// What waits for a client: for a poll, an upgrade, or for its kernel to take it. More is a client that does not
    /// read, and ends its session. One packet may go beyond the bytes alone; two of `payloadBytesMax` have room.
    public var waitingPacketsMax = 1_000
    public var waitingBytesMax = 2 * 1024 * 1024

    /// Connected at once; a client has one, as a rule.
    public var namespacesMax = 8
    public var namespaceBytesMax = 128
    /// Of one binary packet, as the reference parser; together they are at most `payloadBytesMax`.
    public var attachmentsMax = 10
    /// Of an acknowledgement's id: what an Int64 holds for certain.
    public var ackDigitsMax = 18
    /// Of the JSON of one packet.
    public var depthMax = 32
    public var valuesMax = 20_000

    public init() {}
}

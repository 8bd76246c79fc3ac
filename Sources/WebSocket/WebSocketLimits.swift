/// What one socket may take. Every bound of the module is here, so that a service can state its own.
public struct WebSocketLimits: Sendable {
    /// Of one message, before and after inflating; more is answered 1009.
    public var messageBytesMax = 1024 * 1024
    /// What waits for a slow reader, in our memory; more closes it with 1013. A frame may go beyond it alone.
    public var outboundBytesMax = 256 * 1024
    /// What is due to one socket is offered to the kernel within a turn from this size on.
    public var dueBytesMax = 64 * 1024
    /// Of one loop. Beyond, sockets are closed with 1013 as they come.
    public var socketsMax = 20_000
    /// Silence after which a ping is sent: proxies cut connections that are silent for a minute, and of a crowd that
    /// says nothing pings are nearly all the work.
    public var pingAfterSeconds = 40
    /// Silence, our pings notwithstanding, after which the peer is taken for dead.
    public var silenceSecondsMax = 60
    /// From our close frame to the peer's.
    public var closeSecondsMax = 5
    /// Agree to permessage-deflate with those who offer it.
    public var compression = true
    /// Messages shorter than this do not gain enough to be compressed.
    public var compressBytesMin = 1024

    public init() {}
}

/// What one connection may take. Every bound of the server is here, so that a service can state its own.
public struct HTTPLimits: Sendable {
    /// Request line and headers. Browsers stay under 8 KiB; offsets into a head are 16 bits wide, so 65535 at most.
    public var headBytesMax = 16 * 1024
    /// The target alone: longer ones are answered 414 as soon as they are seen to be longer.
    public var targetBytesMax = 8 * 1024
    public var headersMax = 100
    /// Unless a route states its own.
    public var bodyBytesMax = 1024 * 1024
    /// Of a chunk's size line, extensions included, and of all trailers together: nobody needs either.
    public var chunkLineBytesMax = 256
    public var trailerBytesMax = 4 * 1024

    /// From the first byte of a head to its last.
    public var headSecondsMax = 10
    /// Between two pieces of a body, and between two pieces of an answer that the client takes.
    public var bodySecondsMax = 30
    /// Between two requests.
    public var idleSecondsMax = 75
    /// A connection that lives for ever never moves to a freshly started instance.
    public var requestsPerConnectionMax = 10_000
    /// Of one loop. Beyond, connections are closed as they come.
    public var connectionsMax = 20_000

    /// Body bytes that have arrived and that the handler has not read; reading stops beyond.
    public var unreadBytesMax = 64 * 1024
    /// Bytes of requests that wait behind one that is being answered; reading stops beyond.
    public var pipelinedBytesMax = 64 * 1024
    /// Bytes of an answer that the client has not taken; the writer waits beyond.
    public var unsentBytesMax = 256 * 1024
    /// What is read and thrown away after an answer to keep the connection; with more to come it is closed instead.
    public var discardedBytesMax = 256 * 1024
    /// How long a connection that is being closed is read on, so that the client sees the answer and not a reset.
    public var lingerSecondsMax = 2

    public init() {}
}

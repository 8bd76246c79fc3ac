import EventLoop

/// Names a connection without holding it. A slot is used again, a generation is not.
struct ConnectionID: Sendable, Equatable {
    let slot: Int32
    let generation: UInt32
}

/// One connection's state. A plain class of its loop: only `HTTPLoop`, which owns it, touches it.
///
/// Requests are answered one after the other. While one is being answered, what else arrives waits unparsed in
/// `pending`, so that a pipelining client costs no more than a bounded buffer.
final class HTTPConnection {
    enum Phase {
        /// For a head.
        case waiting
        /// A handler has the request, or its answer is being sent.
        case answering
        /// The answer is out; the rest of the request's body is thrown away.
        case discarding
        /// A 101 was sent; `HTTPLoop.handOver` follows.
        case upgrading
        /// Our side has ended. Read on for a moment: closing with unread bytes would reset the connection, and the
        /// client would lose the answer (RFC 9112 §9.6).
        case lingering
        case gone
    }

    enum Deadline {
        case none, head, body, idle, write, linger
    }

    /// How the end of the answer's body is marked.
    enum AnswerFraming {
        case length(Int)
        case chunked
        case untilClose
    }

    let stream: TCPStream
    let id: ConnectionID
    let parser: HTTPParser
    var phase = Phase.waiting

    /// Counts requests, so that the handle of an old one does not reach the next.
    var serial: UInt32 = 0
    /// Runs the handlers. Nil until the first request, and again once the connection has been idle for a while.
    var task: Task<Void, Never>?
    /// For the task to take.
    var request: HTTPRequest?
    var requestWaiter: UnsafeContinuation<Void, Never>?
    var isRetiring = false
    /// Of the request being answered.
    var minor: UInt8 = 1
    var isHead = false
    /// When it came, by `EventLoop.nanoseconds`; 0 when none is being answered.
    var beganAt: UInt64 = 0
    /// The answer's status, and the number of the route that gave it, -1 when there is none.
    var status = 0
    var route: Int32 = -1
    /// Of the request being answered; nil where nothing is traced.
    var span: RequestSpan?
    /// Whether the connection ends with this answer.
    var closing = false

    /// Bytes that arrived and are not parsed yet.
    var pending: [UInt8] = []
    /// `HTTPLoop.advance` is at work on this connection: no second one may start.
    var isAdvancing = false
    var peerEnded = false

    // The request's body.
    var bodyEnded = true
    /// What Content-Length says is still to come; nil when chunked.
    var bodyLeft: Int?
    var bodyError: HTTPError?
    var unread: [UInt8] = []
    var delivered = 0
    var needsContinue = false
    var bodyWaiter: CheckedContinuation<Void, Never>?

    // The answer.
    var out: [UInt8] = []
    var framing = AnswerFraming.length(0)
    var writeWaiter: CheckedContinuation<Void, Never>?
    var upgrade: (@Sendable (sending UpgradedStream) -> Void)?
    /// The answer comes later; this is called if the client leaves before.
    var departure: (@Sendable () -> Void)?

    var discarded = 0
    var deadline = Deadline.none
    var deadlineAt: UInt64 = .max
    /// Unsent bytes when the write deadline was set; fewer at the deadline are progress.
    var unsentSeen = 0

    init(stream: TCPStream, id: ConnectionID, parser: HTTPParser) {
        self.stream = stream
        self.id = id
        self.parser = parser
    }

    /// Between requests, with nothing of the next.
    var isIdle: Bool { phase == .waiting && !parser.isInsideHead }

    func wakeTask() {
        guard let waiter = requestWaiter else { return }
        requestWaiter = nil
        waiter.resume()
    }

    func wakeReader() {
        guard let waiter = bodyWaiter else { return }
        bodyWaiter = nil
        waiter.resume()
    }

    func wakeWriter() {
        guard let waiter = writeWaiter else { return }
        writeWaiter = nil
        waiter.resume()
    }
}

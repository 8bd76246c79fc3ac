import EventLoop

/// One socket of a loop. It has no buffer while nothing is under way.
final class Socket {
    enum State: UInt8 {
        case open
        /// Our close frame is due or sent; the peer's is awaited.
        case closing
        /// The peer broke the protocol: what it sends is thrown away until it goes.
        case failed
        case gone
    }

    let id: Int
    /// Holds this socket until its stream is over.
    let owner: WebSocketLoop
    let stream: TCPStream
    /// Messages up to this length may go compressed; without compression none.
    let compressBytesMax: Int
    var state = State.open
    var reader: FrameReader
    /// Frames of this turn. Nearly always one: it needs no array.
    var due: [UInt8] = []
    var more: [[UInt8]] = []
    var dueBytes = 0
    /// In the list of those that the turn's end flushes.
    var isDirty = false
    /// Seconds of the loop's clock.
    var heardAt: UInt32
    var closesAt: UInt32 = 0
    var isPinged = false
    /// The delegate is told at the end of the turn, not from within its own call.
    var unreported: CloseCode?

    init(
        id: Int, owner: WebSocketLoop, stream: TCPStream, limits: WebSocketLimits, compression: Compression?,
        now: UInt32
    ) {
        self.id = id
        self.owner = owner
        self.stream = stream
        compressBytesMax = compression?.messageBytesMax ?? -1
        reader = FrameReader(messageBytesMax: limits.messageBytesMax, compression: compression != nil)
        heardAt = now
    }

    var bufferedBytes: Int { dueBytes + stream.pendingBytes }

    func append(_ bytes: [UInt8]) {
        if dueBytes == 0 { due = bytes } else { more.append(bytes) }
        dueBytes += bytes.count
    }

    func dropDue() {
        due = []
        more = []
        dueBytes = 0
    }
}

/// What its stream tells. Each closure holds the socket and nothing else: a closure of one object needs no memory of
/// its own, and there are four of them for each of ten thousand idle sockets.
extension Socket {
    func listen() {
        stream.onRead = { [self] in read($0) }
        stream.onEnd = { [self] in ended() }
        stream.onDrain = { [self] in drained() }
        stream.onClose = { [self] _ in closed() }
    }

    private func read(_ bytes: UnsafeRawBufferPointer) {
        nonisolated(unsafe) let (socket, bytes) = (self, bytes)
        owner.assumeIsolated { $0.received(socket, bytes) }
    }

    private func ended() {
        nonisolated(unsafe) let socket = self
        owner.assumeIsolated { $0.peerEnded(socket) }
    }

    private func drained() {
        nonisolated(unsafe) let socket = self
        owner.assumeIsolated { $0.drained(socket) }
    }

    private func closed() {
        nonisolated(unsafe) let socket = self
        owner.assumeIsolated { $0.streamClosed(socket) }
    }
}

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

    init(id: Int, stream: TCPStream, limits: WebSocketLimits, compression: Compression?, now: UInt32) {
        self.id = id
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

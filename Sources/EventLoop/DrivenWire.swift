import Glibc

/// The other end of a connection of a driven loop, and the network between: in memory, byte by byte. What it is told
/// reaches the stream with the next turn of its loop. On the driving thread only.
public final class DrivenWire {
    /// Bytes that are on the way to the peer before the stream has to wait, as a kernel's buffers hold them.
    private let capacity: Int
    private let loop: EventLoop
    private weak var stream: TCPStream?

    /// On the way to the stream.
    private var incoming: [UInt8] = []
    private var hasEnded = false
    private var isBroken = false
    private var isWoken = false
    /// On the way to the peer, and behind it what the stream keeps.
    private var outgoing: [UInt8] = []
    private var queued: [[UInt8]] = []
    private var taken = 0

    /// The stream has ended its side, or is closed: after `outgoing` nothing comes.
    public private(set) var isShutDown = false
    /// The stream has thrown its peer out: what was on the way is lost.
    public private(set) var isReset = false

    private init(on loop: EventLoop, capacity: Int) {
        self.loop = loop
        self.capacity = capacity
    }

    /// A connection that has just been accepted.
    /// - Parameter capacity: bytes that the network takes while the peer does not read.
    public static func connect(
        to loop: EventLoop, from peer: SocketAddress, capacity: Int
    ) -> (stream: TCPStream, wire: DrivenWire) {
        precondition(loop.isDriven, "a wire is for driven loops")
        let wire = DrivenWire(on: loop, capacity: capacity)
        let stream = TCPStream(on: loop, wire: wire, peer: peer)
        wire.stream = stream
        return (stream, wire)
    }

    // MARK: The peer

    public func send(_ bytes: some Sequence<UInt8>) {
        guard !hasEnded, !isBroken else { return }
        incoming += bytes
        wake()
    }

    /// The peer sends no more, and reads on.
    public func end() {
        hasEnded = true
        wake()
    }

    /// The peer is gone: what was on the way, in both directions, is lost.
    public func cut() {
        isBroken = true
        incoming = []
        outgoing = []
        wake()
    }

    /// Bytes that `read` would give.
    public var readable: Int { outgoing.count }

    public func read(max count: Int) -> [UInt8] {
        let bytes = Array(outgoing.prefix(count))
        outgoing.removeFirst(bytes.count)
        if !bytes.isEmpty, !queued.isEmpty { wake() }
        return bytes
    }

    // MARK: The stream

    /// Something is to be told to the stream: with the loop's next turn.
    func wake() {
        guard !isWoken else { return }
        isWoken = true
        nonisolated(unsafe) let wire = self
        // It holds the stream, as libuv's handle does.
        nonisolated(unsafe) let stream = stream
        loop.execute { stream.map(wire.tell) }
    }

    private func tell(_ stream: TCPStream) {
        isWoken = false
        flush(stream)
        guard stream.isOpen else { return }
        if isBroken { return stream.close(LoopError(code: -ECONNRESET, doing: "read")) }
        guard stream.isReading else { return }
        if !incoming.isEmpty {
            let bytes = incoming
            incoming = []
            bytes.withUnsafeBytes { stream.received($0) }
        }
        if hasEnded, stream.isOpen, stream.isReading { stream.ended() }
    }

    /// As `send` on a socket: how many bytes were taken; -1 and `errno` when the peer is gone.
    func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard !isBroken, !isShutDown else {
            errno = EPIPE
            return -1
        }
        let count = min(bytes.count, max(0, capacity - outgoing.count))
        outgoing += bytes.prefix(count)
        return count
    }

    func queue(_ bytes: UnsafeRawBufferPointer) { queued.append(Array(bytes)) }

    var unsentBytes: Int { queued.reduce(0) { $0 + $1.count } - taken }

    private func flush(_ stream: TCPStream) {
        while let first = queued.first, !isBroken {
            let count = min(first.count - taken, max(0, capacity - outgoing.count))
            outgoing += first[taken..<taken + count]
            taken += count
            guard taken == first.count else { return }
            taken = 0
            queued.removeFirst()
            stream.wrote(first.count, 0)
        }
    }

    func shutdown() { isShutDown = true }

    func reset() {
        isReset = true
        outgoing = []
    }

    func close() {
        isShutDown = true
        queued = []
        taken = 0
    }
}

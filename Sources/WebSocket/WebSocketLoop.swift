import EventLoop
import HTTPServer

/// The sockets of one loop: it owns their connections, reads, writes, keeps them alive and ends them.
public actor WebSocketLoop {
    public nonisolated let loop: EventLoop
    public nonisolated let limits: WebSocketLimits
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Seconds between two looks at all sockets: pings and deadlines are as coarse as this.
    private static let tickSeconds = 1
    /// Of an id: the lower bits are the place, the upper ones tell its owners apart.
    private static let slotBits = 31
    static let slotMask = (1 << slotBits) - 1

    private let delegate: any WebSocketDelegate
    /// An id is the place of a socket here and how often the place was taken: found without hashing.
    private var slots: [Socket?] = []
    var direct = DirectTable()
    private var free: [Int] = []
    private var taken = 0
    /// Sockets that are not gone, those that are being closed included.
    public private(set) var count = 0
    private var dirty: [Socket] = []
    private var gather: [UInt8] = []
    private var ticker: LoopTimer?
    private var deflater: Deflater?
    private var inflater: Inflater?
    private let pingFrame = SharedFrame.ping([])
    private var departures: [Departure] = []

    public init(on loop: EventLoop, limits: WebSocketLimits = WebSocketLimits(), delegate: any WebSocketDelegate) {
        self.loop = loop
        self.limits = limits
        self.delegate = delegate
    }

    /// Somebody who waits for these sockets to go.
    private struct Departure {
        var left: Set<Int>
        let over: CheckedContinuation<Void, Never>
    }

    /// Returns when the sockets that are there now are gone, whoever comes meanwhile: clients that come back at once
    /// would keep a process from ending. Sockets that are being closed are gone after `closeSecondsMax`.
    public func untilGone() async {
        let present = Set(slots.lazy.compactMap { $0?.id })
        guard !present.isEmpty else { return }
        await withCheckedContinuation { departures.append(Departure(left: present, over: $0)) }
    }

    private func departed(_ id: Int) {
        for index in departures.indices { departures[index].left.remove(id) }
        for departure in departures where departure.left.isEmpty { departure.over.resume() }
        departures.removeAll { $0.left.isEmpty }
    }

    // MARK: Opening

    /// Answers an upgrade with 101; the socket is the delegate's from then.
    /// - Throws: `HTTPError` 400 or 426, see `WebSocketHandshake`.
    public nonisolated func respond(
        to request: HTTPRequest, protocols: [String]
    ) throws(HTTPError) -> HTTPResponse {
        let handshake = try WebSocketHandshake(request, protocols: protocols, compression: limits.compression)
        let compression = handshake.compression
        return HTTPResponse(
            status: 101, headers: handshake.headers,
            body: .upgrade { upgraded in
                nonisolated(unsafe) let upgraded = upgraded
                self.assumeIsolated {
                    $0.adopt(upgraded.stream, leftover: upgraded.leftover, compression: compression)
                }
            })
    }

    /// Takes a connection whose handshake is done.
    /// - Parameter leftover: what the peer sent behind its handshake.
    public func adopt(_ stream: TCPStream, leftover: [UInt8], compression: Compression?) {
        guard stream.isOpen else { return }
        let id = makeID()
        let socket = Socket(
            id: id, owner: self, stream: stream, limits: limits, compression: compression, now: now)
        socket.listen()
        slots[id & Self.slotMask] = socket
        count += 1
        if ticker == nil {
            let ticker = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.tick() } }
            ticker.start(milliseconds: UInt64(Self.tickSeconds) * 1000, repeating: UInt64(Self.tickSeconds) * 1000)
            self.ticker = ticker
        }
        stream.startReading()
        refresh(socket)
        guard count <= limits.socketsMax else {
            beginClose(socket, .tryAgainLater, "Too many connections.")
            return
        }
        delegate.opened(handle(id))
        if !leftover.isEmpty { leftover.withUnsafeBytes { received(socket, $0) } }
    }

    private func makeID() -> Int {
        taken &+= 1
        if let slot = free.popLast() { return (taken & Self.slotMask) << Self.slotBits | slot }
        slots.append(nil)
        direct.append()
        return (taken & Self.slotMask) << Self.slotBits | slots.count - 1
    }

    @inline(__always)
    func socket(_ id: Int) -> Socket? {
        let slot = id & Self.slotMask
        guard slot < slots.count, let socket = slots[slot], socket.id == id else { return nil }
        return socket
    }

    private func handle(_ id: Int) -> WebSocketHandle { WebSocketHandle(id: id, actor: self) }
    private var now: UInt32 { UInt32(truncatingIfNeeded: loop.nowMilliseconds / 1000) }

    // MARK: Reading

    func received(_ socket: Socket, _ bytes: UnsafeRawBufferPointer) {
        socket.heardAt = now
        socket.isPinged = false
        // The reader is in use while it calls us, so what ends it waits until it returns.
        var fault: WebSocketFault?
        do throws(WebSocketFault) {
            try socket.reader.feed(bytes) { event in
                if fault == nil { fault = handle(event, of: socket) }
            }
        } catch {
            fault = fault ?? error
        }
        if let fault { fail(socket, fault) }
    }

    private func handle(_ event: FrameReader.Event, of socket: Socket) -> WebSocketFault? {
        switch event {
        case .close(let code, _):
            peerCloses(socket, code)
        case .pong:
            break
        case .ping(let payload):
            if socket.state == .open { write(SharedFrame.pong(payload).bytes, to: socket) }
        case .message(let isText, let isCompressed, let bytes):
            // A message that crosses our close frame is nobody's any more.
            guard socket.state == .open else { break }
            guard isCompressed else {
                deliver(bytes, isText: isText, to: socket)
                break
            }
            do throws(WebSocketFault) {
                deliver(try inflate(bytes, isText: isText), isText: isText, to: socket)
            } catch {
                return error
            }
        }
        return nil
    }

    private func deliver(_ bytes: [UInt8], isText: Bool, to socket: Socket) {
        if isText {
            delegate.received(handle(socket.id), text: bytes)
        } else {
            delegate.received(handle(socket.id), binary: bytes)
        }
    }

    private func inflate(_ bytes: [UInt8], isText: Bool) throws(WebSocketFault) -> [UInt8] {
        let inflater = inflater ?? Inflater()
        self.inflater = inflater
        let whole = try inflater.inflate(bytes, bytesMax: limits.messageBytesMax)
        if isText {
            var utf8 = UTF8Checker()
            guard whole.withUnsafeBytes({ utf8.feed($0) }), utf8.isComplete else {
                throw WebSocketFault(.invalidData, "Text that is not UTF-8.")
            }
        }
        return whole
    }

    private func peerCloses(_ socket: Socket, _ code: CloseCode) {
        switch socket.state {
        case .open:
            // §5.5.1: the code comes back; the server closes the connection first.
            write(SharedFrame.close(code, reason: "").bytes, to: socket)
            socket.state = .closing
            socket.unreported = code
            flush(socket)
            socket.stream.closeAfterFlush()
        case .closing:
            flush(socket)
            socket.stream.closeAfterFlush()
        case .failed, .gone:
            break
        }
    }

    func peerEnded(_ socket: Socket) {
        if socket.state == .open { socket.unreported = .abnormal }
        socket.stream.close()
    }

    func streamClosed(_ socket: Socket) {
        let id = socket.id
        guard slots[id & Self.slotMask] === socket else { return }
        slots[id & Self.slotMask] = nil
        direct[id & Self.slotMask] = .none
        free.append(id & Self.slotMask)
        count -= 1
        if socket.state == .open, socket.unreported == nil { socket.unreported = .abnormal }
        socket.state = .gone
        socket.dropDue()
        if socket.unreported != nil { markDirty(socket) }
        if count == 0 { ticker = nil }
        departed(id)
    }

    // MARK: Writing

    func bufferedBytes(_ id: Int) -> Int { socket(id)?.bufferedBytes ?? 0 }

    func send(_ frame: SharedFrame, to id: Int) {
        guard let socket = socket(id), socket.state == .open else { return }
        guard frame.payloadCount <= socket.compressBytesMax else { return write(frame.bytes, to: socket) }
        let deflater = deflater ?? Deflater()
        self.deflater = deflater
        write(frame.deflated(by: deflater, from: limits.compressBytesMin), to: socket)
    }

    private func write(_ bytes: [UInt8], to socket: Socket) {
        if isTooMuch(bytes.count, for: socket) {
            // What is due has not been offered to the kernel: only what that does not take waits for the reader.
            flush(socket)
            guard socket.state == .open else { return }
            guard !isTooMuch(bytes.count, for: socket) else { return closeSlow(socket) }
        }
        append(bytes, to: socket)
        if socket.dueBytes >= limits.dueBytesMax { flush(socket) }
    }

    private func isTooMuch(_ count: Int, for socket: Socket) -> Bool {
        let waiting = socket.bufferedBytes
        return waiting > 0 && waiting + count > limits.outboundBytesMax
    }

    /// What waits is at a frame's boundary, so the close frame can stand behind what the kernel has not taken yet.
    private func closeSlow(_ socket: Socket) {
        socket.dropDue()
        socket.unreported = .tryAgainLater
        beginClose(socket, .tryAgainLater, "Too slow a reader.")
    }

    private func append(_ bytes: [UInt8], to socket: Socket) {
        socket.append(bytes)
        direct[socket.id & Self.slotMask].descriptor = -1
        markDirty(socket)
    }

    private func markDirty(_ socket: Socket) {
        guard !socket.isDirty else { return }
        socket.isDirty = true
        dirty.append(socket)
        if dirty.count == 1 { loop.atTurnEnd { self.flushAll() } }
    }

    private func flushAll() {
        let list = dirty
        dirty = []
        for socket in list {
            socket.isDirty = false
            flush(socket)
            if let code = socket.unreported {
                socket.unreported = nil
                delegate.closed(handle(socket.id), code)
            }
        }
    }

    private func flush(_ socket: Socket) {
        if socket.dueBytes > 0 { writeDue(socket) }
        if socket.state == .failed { halfClose(socket) }
    }

    private func writeDue(_ socket: Socket) {
        if socket.more.isEmpty {
            socket.stream.write(socket.due)
        } else {
            gather.removeAll(keepingCapacity: true)
            gather += socket.due
            for bytes in socket.more { gather += bytes }
            socket.stream.write(gather)
        }
        socket.dropDue()
        refresh(socket)
    }

    func drained(_ socket: Socket) {
        refresh(socket)
        switch socket.state {
        case .open: delegate.drained(handle(socket.id))
        case .failed: halfClose(socket)
        case .closing, .gone: break
        }
    }

    // MARK: Closing

    func close(_ id: Int, _ code: CloseCode, _ reason: String) {
        guard let socket = socket(id), socket.state == .open else { return }
        beginClose(socket, code, reason)
    }

    private func beginClose(_ socket: Socket, _ code: CloseCode, _ reason: String) {
        guard socket.state == .open else { return }
        socket.state = .closing
        socket.closesAt = now + UInt32(limits.closeSecondsMax)
        append(SharedFrame.close(code, reason: reason).bytes, to: socket)
    }

    private func fail(_ socket: Socket, _ fault: WebSocketFault) {
        socket.reader.end()
        if socket.state == .open {
            socket.unreported = fault.code
            beginClose(socket, fault.code, fault.reason)
        }
        guard socket.state == .closing else { return }
        socket.state = .failed
        socket.closesAt = now + UInt32(limits.closeSecondsMax)
        markDirty(socket)
    }

    /// Our side ends, and the peer's is read on: a connection closed with bytes unread is reset, and the close frame
    /// with its reason would be lost on the way.
    private func halfClose(_ socket: Socket) {
        socket.stream.halfClose()
    }

    private func tick() {
        let now = now
        for case let socket? in slots {
            switch socket.state {
            case .open:
                let silent = Int(now &- socket.heardAt)
                if silent >= limits.silenceSecondsMax {
                    socket.unreported = .abnormal
                    socket.stream.reset()
                } else if silent >= limits.pingAfterSeconds, !socket.isPinged {
                    socket.isPinged = true
                    write(pingFrame.bytes, to: socket)
                }
            case .closing, .failed:
                if now >= socket.closesAt { socket.stream.reset() }
            case .gone:
                break
            }
        }
    }
}

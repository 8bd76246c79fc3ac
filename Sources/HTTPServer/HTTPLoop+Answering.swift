import EventLoop
import Tracing

/// What goes out: handlers, answers, streams, upgrades.
extension HTTPLoop {
    /// Gives a request to the connection's task, which runs before the loop waits again.
    func begin(_ connection: HTTPConnection, _ parsed: ParsedHead) {
        connection.phase = .answering
        connection.serial &+= 1
        connection.deadline = .none
        connection.minor = parsed.minor
        connection.isHead = parsed.method == .head
        connection.closing = !parsed.keepAlive
        connection.bodyError = nil
        connection.delivered = 0
        connection.discarded = 0
        connection.needsContinue = parsed.expectsContinue
        noteBegin(connection)
        var body = HTTPBody.empty
        connection.bodyEnded = parsed.framing == .none
        if !connection.bodyEnded {
            var length: Int?
            if case .length(let count) = parsed.framing { length = count }
            connection.bodyLeft = length
            body = HTTPBody(
                contentLength: length, max: limits.bodyBytesMax,
                source: ConnectionBody(owner: self, id: connection.id, serial: connection.serial))
        }
        connection.request = HTTPRequest(
            method: parsed.method, path: parsed.path, head: parsed.head, body: body, peer: connection.stream.peer,
            loop: loop)
        if connection.task == nil {
            // Without the preference a continuation resumes on the global pool first, and every wait of a handler costs
            // two thread switches (measured: 15 µs a request instead of 8). Child tasks stay on the loop by it, too.
            let id = connection.id
            connection.task = Task(executorPreference: loop) { await self.run(id) }
        } else {
            connection.wakeTask()
        }
    }

    /// The task of a connection: one request after the other. Kept between requests, because to make a task costs three
    /// times what it costs to suspend and resume one; given up when the connection idles.
    private func run(_ id: ConnectionID) async {
        guard let connection = connection(id) else { return }
        while true {
            guard let request = connection.request.take() else {
                if connection.phase == .gone || connection.isRetiring { break }
                await withUnsafeContinuation { connection.requestWaiter = $0 }
                continue
            }
            let response: HTTPResponse
            do {
                if let tracing, let span = tracing.begin(request) {
                    connection.span = span
                    response = try await TraceContext.$current.withValue(span.span.context) {
                        try await handler(request)
                    }
                } else {
                    response = try await handler(request)
                }
            } catch {
                // Nobody is left to hear that nobody is left.
                let isGone = error is CancellationError || error as? HTTPError == .aborted
                if isGone, connection.phase == .gone { break }
                response = answer(to: error, request, connection.span)
            }
            guard connection.phase == .answering else { break }
            connection.route = request.head.route.load(ordering: .relaxed)
            switch response.body {
            case .empty, .bytes: send(connection, response)
            case .upgrade(let callee):
                startUpgrade(connection, response, callee)
                if connection.phase != .answering { continue }
            case .later(let begin):
                connection.task = nil
                wait(connection, begin)
                return
            case .file, .stream:
                if let span = connection.span {
                    await TraceContext.$current.withValue(span.span.context) {
                        await sendStream(connection, response)
                    }
                } else {
                    await sendStream(connection, response)
                }
            }
            finish(connection)
        }
        connection.isRetiring = false
        connection.task = nil
    }

    /// What is logged of it names the span, as what the handler logs.
    private func answer(to error: any Error, _ request: HTTPRequest, _ span: RequestSpan?) -> HTTPResponse {
        guard let span else { return onError(error, request) }
        return TraceContext.$current.withValue(span.span.context) { onError(error, request) }
    }

    /// Lets a request wait for its answer without a task.
    private func wait(_ connection: HTTPConnection, _ begin: @Sendable (HTTPAnswer) -> @Sendable () -> Void) {
        connection.departure = {}
        let departure = begin(HTTPAnswer(owner: self, id: connection.id, serial: connection.serial))
        // The answer may have come from within.
        guard connection.departure != nil else { return }
        guard connection.phase == .answering else { return departure() }
        connection.departure = departure
        if connection.peerEnded { connection.stream.close() }
    }

    func answerLater(_ id: ConnectionID, _ serial: UInt32, _ response: HTTPResponse) {
        guard let connection = connection(id), connection.serial == serial, connection.departure != nil else { return }
        connection.departure = nil
        var response = response
        switch response.body {
        case .empty, .bytes: break
        case .file, .stream, .upgrade, .later: response = HTTPError(500, "The answer cannot come later.").response
        }
        send(connection, response)
        finish(connection)
    }

    /// The answer is out, or cut off: on to the next request.
    private func finish(_ connection: HTTPConnection) {
        guard connection.phase == .answering else { return }
        noteEnd(connection)
        connection.unread = []
        if connection.closing {
            linger(connection)
            return
        }
        connection.phase = connection.bodyEnded ? .waiting : .discarding
        if connection.pending.isEmpty { settle(connection) } else { resume(connection) }
    }

    /// Puts an answer of known size into the output. Flushing is `settle`'s affair, so that the answers to one read
    /// go out in one write.
    func send(_ connection: HTTPConnection, _ response: HTTPResponse) {
        decideClosing(connection, response)
        let hasBody = Self.mayHaveBody(response.status)
        var framing = ResponseHead.Framing.none
        switch response.body {
        case .bytes(let bytes) where hasBody: framing = .length(bytes.count)
        case .empty where hasBody && !(connection.isHead && response.headers.contains("Content-Length")):
            framing = .length(0)
        default: break
        }
        // Taken out and put back: changed in place, each access to the property would be checked at run time.
        var out = takeOutput(connection)
        appendHead(connection, response, framing, to: &out)
        if case .bytes(let bytes) = response.body, hasBody, !connection.isHead { out.append(contentsOf: bytes) }
        connection.out = out
    }

    private func takeOutput(_ connection: HTTPConnection) -> [UInt8] {
        let out = connection.out
        connection.out = []
        return out.capacity == 0 ? takeBuffer() : out
    }

    static func mayHaveBody(_ status: Int) -> Bool { status >= 200 && status != 204 && status != 304 }

    private func appendHead(
        _ connection: HTTPConnection, _ response: HTTPResponse, _ framing: ResponseHead.Framing, to out: inout [UInt8]
    ) {
        connection.status = response.status
        var said = ResponseHead.Connection.implied
        if connection.phase == .upgrading {
            said = .handlers
        } else if connection.closing {
            said = .close
        } else if connection.minor == 0 {
            said = .keepAlive
        }
        ResponseHead.append(to: &out, response, framing: framing, connection: said, date: date)
    }

    /// A connection ends with this answer if either side wishes it, or if the rest of the request is not worth reading.
    private func decideClosing(_ connection: HTTPConnection, _ response: HTTPResponse) {
        if connection.closing { return }
        var closing = draining || connection.serial >= limits.requestsPerConnectionMax || connection.bodyError != nil
        if !connection.bodyEnded {
            // A client that was not told to continue may send its body or not: what follows would be a guess.
            closing = closing || connection.needsContinue || (connection.bodyLeft ?? 0) > limits.discardedBytesMax
        }
        connection.closing =
            closing
            || (response.headers.contains("Connection") && response.headers.hasElement("Connection", "close"))
    }

    // MARK: Streams

    private func sendStream(_ connection: HTTPConnection, _ response: HTTPResponse) async {
        decideClosing(connection, response)
        var framing = ResponseHead.Framing.none
        if case .file(let file) = response.body {
            framing = .length(file.count)
            connection.framing = .length(file.count)
        } else if let length = response.headers["Content-Length"].flatMap({ Int($0) }), length >= 0 {
            connection.framing = .length(length)
        } else if connection.minor == 0 {
            connection.closing = true
            connection.framing = .untilClose
        } else {
            framing = .chunked
            connection.framing = .chunked
        }
        var out = takeOutput(connection)
        appendHead(connection, response, framing, to: &out)
        connection.out = out
        guard !connection.isHead, Self.mayHaveBody(response.status) else { return }
        do {
            switch response.body {
            case .stream(let body):
                let sink = ConnectionSink(owner: self, id: connection.id, serial: connection.serial)
                try await body(HTTPBodyWriter(sink))
            case .file(let file): try await sendFile(connection, file)
            case .empty, .bytes, .upgrade, .later: break
            }
            try endStream(connection)
        } catch {
            // The status is out; only a cut connection tells the client that the body is not whole.
            connection.status = 0
            connection.stream.reset()
        }
    }

    private func endStream(_ connection: HTTPConnection) throws(HTTPError) {
        switch connection.framing {
        case .length(let left):
            guard left == 0 else { throw HTTPError(500, "The answer is shorter than was announced.") }
        case .chunked: connection.out.append(contentsOf: "0\r\n\r\n".utf8)
        case .untilClose: break
        }
    }

    /// A piece of the answer to request `serial`, for its `HTTPBodyWriter`.
    func writeBody(_ id: ConnectionID, _ serial: UInt32, _ bytes: [UInt8]) async throws {
        guard let connection = connection(id), connection.serial == serial, connection.phase == .answering else {
            throw HTTPError.aborted
        }
        try await write(connection, bytes)
    }

    private func write(_ connection: HTTPConnection, _ bytes: [UInt8]) async throws(HTTPError) {
        guard connection.writeWaiter == nil else {
            throw HTTPError(500, "The answer is written by two tasks at once.")
        }
        var out = takeOutput(connection)
        switch connection.framing {
        case .length(let left):
            guard bytes.count <= left else { throw HTTPError(500, "The answer is longer than was announced.") }
            connection.framing = .length(left - bytes.count)
            out.append(contentsOf: bytes)
        case .chunked:
            ResponseHead.appendHexadecimal(bytes.count, to: &out)
            out.append(contentsOf: "\r\n".utf8)
            out.append(contentsOf: bytes)
            out.append(contentsOf: "\r\n".utf8)
        case .untilClose: out.append(contentsOf: bytes)
        }
        connection.out = out
        flush(connection)
        if connection.phase == .answering, connection.stream.pendingBytes > limits.unsentBytesMax {
            await withCheckedContinuation { continuation in
                connection.writeWaiter = continuation
                if !connection.isAdvancing { settle(connection) }
            }
        }
        guard connection.phase == .answering else { throw HTTPError.aborted }
    }

    private func sendFile(_ connection: HTTPConnection, _ file: FileBody) async throws {
        var offset = file.offset
        let end = file.offset + file.count
        while offset < end {
            let piece = try await file.file.read(at: offset, count: min(FileBody.pieceBytes, end - offset), on: loop)
            guard !piece.isEmpty else { throw HTTPError(500, "The file is shorter than it was.") }
            guard connection.phase == .answering else { throw HTTPError.aborted }
            offset += piece.count
            try await write(connection, piece)
        }
    }

    // MARK: Output

    /// Flushes at the end of the turn: the answers to requests that came in one piece go out in one piece, but none of
    /// them waits for a handler that waits.
    func flushLater(_ connection: HTTPConnection) {
        if unflushed.isEmpty { loop.atTurnEnd { self.flushGathered() } }
        unflushed.append(connection)
    }

    private func flushGathered() {
        let gathered = unflushed
        unflushed = []
        for connection in gathered where connection.phase != .gone { settle(connection) }
    }

    /// Hands the gathered output to the kernel.
    func flush(_ connection: HTTPConnection) {
        guard !connection.out.isEmpty else { return }
        let out = connection.out
        connection.out = []
        measured.sentBytes += out.count
        connection.stream.write(out)
        keepBuffer(out)
    }

    /// Ends our side, and the connection once the client has seen it.
    func linger(_ connection: HTTPConnection) {
        guard connection.phase != .gone, connection.phase != .lingering else { return }
        connection.phase = .lingering
        connection.discarded = 0
        connection.pending = []
        connection.deadline = .none
        flush(connection)
        if connection.peerEnded {
            connection.stream.closeAfterFlush()
        } else {
            connection.stream.shutdown()
        }
        if !connection.isAdvancing { settle(connection) }
    }

    // MARK: Upgrades

    private func startUpgrade(
        _ connection: HTTPConnection, _ response: HTTPResponse,
        _ callee: @escaping @Sendable (sending UpgradedStream) -> Void
    ) {
        guard connection.bodyEnded else {
            connection.closing = true
            send(connection, onRefusal(HTTPError(400, "A request with a body cannot change the protocol.")))
            return
        }
        connection.phase = .upgrading
        connection.upgrade = callee
        var out = takeOutput(connection)
        appendHead(connection, response, .none, to: &out)
        connection.out = out
        if !connection.isAdvancing { settle(connection) }
    }

    /// Lets the stream go, with what arrived behind the request.
    func handOver(_ connection: HTTPConnection) {
        flush(connection)
        guard connection.phase == .upgrading, let callee = connection.upgrade else { return }
        guard !connection.peerEnded else {
            connection.stream.close()
            return
        }
        let stream = connection.stream
        stream.stopReading()
        stream.onRead = nil
        stream.onEnd = nil
        stream.onDrain = nil
        stream.onClose = nil
        connection.upgrade = nil
        // Nothing of this actor refers to the stream from here on; the compiler cannot see it through the connection.
        nonisolated(unsafe) let upgraded = UpgradedStream(stream: stream, leftover: connection.pending)
        connection.pending = []
        release(connection)
        callee(upgraded)
    }
}

/// A request's body as it comes in on its connection.
struct ConnectionBody: HTTPBodySource {
    let owner: HTTPLoop
    let id: ConnectionID
    let serial: UInt32

    func next(max: Int) async throws -> [UInt8]? { try await owner.nextBody(id, serial, max: max) }
}

/// A streaming answer's way to its connection.
struct ConnectionSink: HTTPBodySink {
    let owner: HTTPLoop
    let id: ConnectionID
    let serial: UInt32

    func write(_ bytes: [UInt8]) async throws { try await owner.writeBody(id, serial, bytes) }
}

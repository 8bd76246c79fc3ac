import HTTPServer
import SocketIO
import WebSocket

/// Requests and WebSockets of the sessions, from whatever loop they came in on.
extension EngineLoop {
    // MARK: Polling

    func openPolling(_ waiting: EngineConnection.Waiting, from address: String?) {
        if let refusal = parts.counts.add(address, now: now) {
            return waiting.answer.send(EngineAnswer.refusal(refusal, origin: waiting.origin))
        }
        let connection = open(.polling, from: address)
        waiting.answer.send(EngineAnswer.payload([openPacket(connection)], origin: waiting.origin))
    }

    func poll(_ secret: String, _ waiting: EngineConnection.Waiting) {
        guard let connection = connection(of: secret) else {
            return waiting.answer.send(EngineAnswer.refusal(.unknownSession, origin: waiting.origin))
        }
        // What time has made due is the business of the poll that waits.
        perform(connection.session.tick(now: now), connection)
        var actions = connection.session.poll(now: now)
        if connection.poll == nil {
            connection.poll = waiting
        } else {
            // A second one: it is refused, and the first one told with the session's end.
            waiting.answer.send(EngineAnswer.refusal(.badRequest, origin: waiting.origin))
            actions.removeAll { if case .refusePoll = $0 { true } else { false } }
        }
        perform(actions, connection)
    }

    /// Whoever sent this poll is gone.
    func pollLeft(_ secret: String, _ answer: HTTPAnswer) {
        guard let connection = connection(of: secret), connection.poll?.answer == answer else { return }
        connection.poll = nil
        perform(connection.session.pollLeft(), connection)
    }

    /// A POST may come in with its body only when there is no other.
    /// - Returns: why not, for its answer.
    func beginPost(_ secret: String) -> EngineError? {
        guard let connection = connection(of: secret) else { return .unknownSession }
        var refusal: EngineError?
        let actions = connection.session.postBegan(now: now).filter {
            guard case .refusePost(let error) = $0 else { return true }
            refusal = error
            return false
        }
        perform(actions, connection)
        return refusal
    }

    func endPost(_ secret: String, _ body: [UInt8], _ waiting: EngineConnection.Waiting) {
        guard let connection = connection(of: secret) else {
            return waiting.answer.send(EngineAnswer.refusal(.unknownSession, origin: waiting.origin))
        }
        connection.post = waiting
        perform(connection.session.postEnded(body, now: now), connection)
    }

    /// The body was too big, or did not come whole; the request is answered where it is.
    func failPost(_ secret: String, isTooBig: Bool) {
        guard let connection = connection(of: secret) else { return }
        perform(connection.session.postFailed(isTooBig: isTooBig), connection)
    }

    func knows(_ secret: String) -> Bool { connection(of: secret) != nil }
    func isPollWaiting(_ secret: String) -> Bool { connection(of: secret)?.poll != nil }

    // MARK: WebSockets

    /// The WebSocket that opens next is for this.
    func expect(_ purpose: Adopting) { adopting = purpose }

    /// It has opened, or it will not: the loop is full, or the connection has gone in the meantime.
    func stopExpecting() { adopting = nil }

    func webSocketOpened(_ webSocket: WebSocketHandle) {
        let purpose = adopting
        adopting = nil
        switch purpose {
        case .open(let address)?:
            guard !isDraining, parts.counts.add(address, now: now) == nil else {
                return webSocket.close(.tryAgainLater)
            }
            let connection = open(.webSocket, from: address)
            connection.webSocket = webSocket
            bySocket[webSocket.id] = connection
            webSocket.send(SharedFrame(packet: openPacket(connection)))
        case .upgrade(let secret)?:
            guard let connection = connection(of: secret), connection.session.webSocketOpened(now: now) else {
                return webSocket.close(.normal)
            }
            connection.webSocket = webSocket
            bySocket[webSocket.id] = connection
            schedule(connection)
        case nil: webSocket.close(.normal)
        }
    }

    func received(_ webSocket: WebSocketHandle, _ bytes: [UInt8], isBinary: Bool) {
        guard let connection = bySocket[webSocket.id] else { return }
        let transport = connection.session.transport
        let actions = connection.session.frame(bytes, isBinary: isBinary, now: now)
        guard connection.session.transport != transport else { return perform(actions, connection) }
        parts.metrics.upgrades.add()
        gauge(transport).add(-1)
        gauge(.webSocket).add(1)
        perform(actions, connection)
        // What waited for a poll goes to the WebSocket at the turn's end; if the kernel takes it all at once, nobody
        // else tells of it.
        loop.atTurnEnd {
            if connection.webSocket?.bufferedBytes == 0 { self.drained(connection) }
        }
    }

    func webSocketClosed(_ webSocket: WebSocketHandle, _ code: CloseCode) {
        guard let connection = bySocket.removeValue(forKey: webSocket.id) else { return }
        connection.webSocket = nil
        if code == .tryAgainLater { parts.metrics.slowReaders.add() }
        perform(connection.session.webSocketClosed(isTooBig: code == .tooBig), connection)
    }
}

extension EngineLoop: WebSocketDelegate {
    public nonisolated func opened(_ socket: WebSocketHandle) {
        assumeIsolated { $0.webSocketOpened(socket) }
    }

    public nonisolated func received(_ socket: WebSocketHandle, text: [UInt8]) {
        assumeIsolated { $0.received(socket, text, isBinary: false) }
    }

    public nonisolated func received(_ socket: WebSocketHandle, binary: [UInt8]) {
        assumeIsolated { $0.received(socket, binary, isBinary: true) }
    }

    public nonisolated func drained(_ socket: WebSocketHandle) {
        assumeIsolated { engine in
            if let connection = engine.bySocket[socket.id] { engine.drained(connection) }
        }
    }

    public nonisolated func closed(_ socket: WebSocketHandle, _ code: CloseCode) {
        assumeIsolated { $0.webSocketClosed(socket, code) }
    }
}

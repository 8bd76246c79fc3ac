/// What clients do. Every event first does what time has made due.
extension EngineSession {
    // MARK: Polling

    /// A GET has come: it waits, or is answered or refused at once.
    public mutating func poll(now: UInt64) -> [Action] {
        let due = tick(now: now)
        switch state {
        case .over: return due + [.refusePoll(.unknownSession)]
        case .leaving:
            // It was sent before the `1` that overtook it.
            return due + [.answerPoll([.noop])] + (isPosting ? [.answerPost] : []) + end(.clientLeft)
        case .open where transport == .webSocket: return due + [.refusePoll(.badRequest)]
        case .open, .closing: break
        }
        guard !isPollWaiting else { return due + [.refusePoll(.badRequest)] + abort(.overlap) }
        if state == .closing { return due + lastAnswer() }
        if !waiting.isEmpty { return due + [.answerPoll(takeWaiting())] }
        // The client is to come over to its WebSocket: no poll may wait.
        if upgrade == .probed { return due + [.answerPoll([.noop])] }
        isPollWaiting = true
        return due
    }

    /// Whoever sent the poll that waits is gone. What it would have been answered is not lost, but a client whose poll
    /// fails is done with its session (engine.io, the Swift and the Python client alike), so it is over at once.
    public mutating func pollLeft() -> [Action] {
        guard isPollWaiting, state == .open else { return [] }
        isPollWaiting = false
        // On its way to a WebSocket it may as well drop the poll.
        return upgrade == .none ? abort(.transportClosed) : []
    }

    /// A POST has come, its body has not. `postEnded` or `postFailed` follows unless it is refused.
    public mutating func postBegan(now: UInt64) -> [Action] {
        let due = tick(now: now)
        switch state {
        case .over, .leaving: return due + [.refusePost(.unknownSession)]
        case .open where transport == .webSocket: return due + [.refusePost(.badRequest)]
        case .open, .closing: break
        }
        guard !isPosting else { return due + [.refusePost(.badRequest)] + abort(.overlap) }
        isPosting = true
        return due
    }

    /// The body of the POST is there.
    public mutating func postEnded(_ body: [UInt8], now: UInt64) -> [Action] {
        let due = tick(now: now)
        guard isPosting else { return due + [.refusePost(.unknownSession)] }
        guard state == .open else {
            // We have ended the session: what it says is nobody's any more.
            isPosting = false
            return due + [.answerPost]
        }
        let packets: [EnginePacket]
        do throws(EngineFault) {
            packets = try EnginePayload.parse(body, packetsMax: limits.packetsPerPostMax)
        } catch {
            return due + refuseAndAbort(.refusePost(.badRequest), .badPacket)
        }
        // Before anything is done: a payload counts whole or not at all.
        guard packets.allSatisfy(isWelcome) else {
            return due + refuseAndAbort(.refusePost(.badRequest), .badPacket)
        }
        heardAt = now
        var actions = due
        for packet in packets {
            if packet.kind == .close { return actions + leave(now: now) }
            actions += take(packet, now: now)
        }
        isPosting = false
        return actions + [.answerPost]
    }

    /// The body of the POST did not come whole, or was too big.
    public mutating func postFailed(isTooBig: Bool) -> [Action] {
        guard isPosting else { return isTooBig ? [.refuseBigPost] : [.refusePost(.badRequest)] }
        let answer: Action = isTooBig ? .refuseBigPost : .refusePost(.badRequest)
        return refuseAndAbort(answer, isTooBig ? .tooBig : .transportClosed)
    }

    private mutating func refuseAndAbort(_ answer: Action, _ reason: Reason) -> [Action] {
        isPosting = false
        return [answer] + abort(reason)
    }

    /// The client's `1` in a POST: the poll that waits ends with a noop, as the reference ends it.
    private mutating func leave(now: UInt64) -> [Action] {
        // After an upgrade no poll can come any more.
        if isPollWaiting || transport == .webSocket {
            let answers: [Action] = isPollWaiting ? [.answerPoll([.noop]), .answerPost] : [.answerPost]
            return answers + end(.clientLeft)
        }
        var actions: [Action] = upgrade == .none ? [] : [.closeWebSocket]
        upgrade = .none
        waiting = []
        waitingBytes = 0
        state = .leaving
        stateUntil = now + limits.leaveMillisecondsMax
        actions.append(.ended(.clientLeft))
        return actions
    }

    // MARK: Packets

    /// In v4 only the server pings, and opens. A `5` or `6` where it means nothing does no harm: the reference lets it
    /// pass, and the Swift client may send a `6`.
    private func isWelcome(_ packet: EnginePacket) -> Bool {
        switch packet.kind {
        case .message, .pong, .close, .noop, .upgrade: true
        case .open, .ping: false
        }
    }

    private mutating func take(_ packet: EnginePacket, now: UInt64) -> [Action] {
        switch packet.kind {
        case .message: return [.deliver(packet)]
        case .pong:
            ponged(now: now)
            return []
        case .open, .close, .ping, .upgrade, .noop: return []
        }
    }

    // MARK: WebSockets

    /// A WebSocket wants to become the session's.
    /// - Returns: false when there is one already, on trial or for good: the new one is to be closed.
    public mutating func webSocketOpened(now: UInt64) -> Bool {
        guard state == .open, transport == .polling, upgrade == .none else { return false }
        upgrade = .opened
        stateUntil = now + limits.upgradeMillisecondsMax
        return true
    }

    /// A frame of the WebSocket that is the session's or on trial.
    public mutating func frame(_ bytes: [UInt8], isBinary: Bool, now: UInt64) -> [Action] {
        let due = tick(now: now)
        guard state == .open else { return due }
        if transport == .polling {
            guard upgrade != .none else { return due }
            return due + trialFrame(bytes, isBinary: isBinary, now: now)
        }
        if isBinary {
            heardAt = now
            return due + [.deliver(EnginePacket(binary: bytes))]
        }
        guard let packet = try? EnginePacket(frame: bytes), isWelcome(packet) else { return due + end(.badPacket) }
        heardAt = now
        guard packet.kind != .close else { return due + end(.clientLeft) }
        return due + take(packet, now: now)
    }

    private mutating func trialFrame(_ bytes: [UInt8], isBinary: Bool, now: UInt64) -> [Action] {
        let packet = isBinary ? nil : try? EnginePacket(frame: bytes)
        switch packet?.kind {
        case .ping? where packet?.data.elementsEqual(EnginePacket.probeText) == true:
            upgrade = .probed
            heardAt = now
            guard isPollWaiting else { return [.write(.probeAnswer)] }
            isPollWaiting = false
            return [.write(.probeAnswer), .answerPoll(waiting.isEmpty ? [.noop] : takeWaiting())]
        case .upgrade?:
            return upgraded(now: now)
        default:
            // A failed trial: the session stays where it was.
            upgrade = .none
            stateUntil = .max
            return [.closeWebSocket]
        }
    }

    /// The `5`: from now on everything goes over the WebSocket, what waits first.
    private mutating func upgraded(now: UInt64) -> [Action] {
        transport = .webSocket
        upgrade = .none
        stateUntil = .max
        heardAt = now
        var actions: [Action] = []
        if isPollWaiting {
            isPollWaiting = false
            actions.append(.answerPoll([.noop]))
        }
        actions += waiting.map { .write($0) }
        waiting = []
        waitingBytes = 0
        return actions
    }

    /// The WebSocket is gone: the session with it, unless it was only on trial.
    public mutating func webSocketClosed(isTooBig: Bool = false) -> [Action] {
        guard state == .open else { return [] }
        guard transport == .webSocket else {
            upgrade = .none
            stateUntil = .max
            return []
        }
        // There is nothing to close any more.
        return end(isTooBig ? .tooBig : .transportClosed).filter { $0 != .closeWebSocket }
    }
}

import EventLoop

/// What arrives: parsing, bodies, deadlines, ends.
extension HTTPLoop {
    func received(_ connection: HTTPConnection, _ bytes: UnsafeRawBufferPointer) {
        measured.receivedBytes += bytes.count
        guard connection.pending.isEmpty, !connection.isAdvancing else {
            connection.pending.append(contentsOf: bytes)
            if !connection.isAdvancing { resume(connection) }
            return
        }
        var position = 0
        connection.isAdvancing = true
        advance(connection, bytes, &position)
        connection.isAdvancing = false
        if position < bytes.count {
            connection.pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[position...]))
        }
        settle(connection)
    }

    /// Goes on with the bytes that had to wait.
    func resume(_ connection: HTTPConnection) {
        if !connection.pending.isEmpty {
            let bytes = connection.pending
            connection.pending = []
            var position = 0
            connection.isAdvancing = true
            bytes.withUnsafeBytes { advance(connection, $0, &position) }
            connection.isAdvancing = false
            if position == 0 {
                connection.pending = bytes
            } else if position < bytes.count {
                connection.pending = Array(bytes[position...])
            }
            // The task has the next request at hand, and its answer may go out with this one.
            if connection.request != nil, !connection.out.isEmpty {
                flushLater(connection)
                return
            }
        }
        settle(connection)
    }

    /// Takes bytes as far as the connection's state lets it.
    private func advance(
        _ connection: HTTPConnection, _ bytes: UnsafeRawBufferPointer, _ position: inout Int
    ) {
        while true {
            switch connection.phase {
            case .gone:
                position = bytes.count
                return
            case .lingering:
                connection.discarded += bytes.count - position
                position = bytes.count
                if connection.discarded > limits.discardedBytesMax { connection.stream.reset() }
                return
            case .upgrading: return
            case .waiting:
                if connection.stream.pendingBytes > limits.unsentBytesMax { return }
                if connection.out.count > limits.unsentBytesMax { flush(connection) }
            case .answering:
                let mayRead = !connection.bodyEnded && connection.bodyError == nil
                // A body that is all here has its end still to be told, and no byte will come to tell it.
                let isFull = connection.unread.count >= limits.unreadBytesMax && connection.bodyLeft != 0
                if !mayRead || isFull { return }
            case .discarding: break
            }
            let before = position
            do throws(HTTPError) {
                let event = try connection.parser.next(bytes, &position)
                if connection.phase == .discarding { connection.discarded += position - before }
                switch event {
                case .needsMore: return
                case .head(let parsed): begin(connection, parsed)
                case .body(let range): take(connection, UnsafeRawBufferPointer(rebasing: bytes[range]))
                case .end: endBody(connection)
                }
            } catch {
                position = bytes.count
                refuse(connection, error)
                return
            }
        }
    }

    private func take(_ connection: HTTPConnection, _ bytes: UnsafeRawBufferPointer) {
        connection.needsContinue = false
        if let left = connection.bodyLeft { connection.bodyLeft = left - bytes.count }
        if connection.phase == .discarding {
            if connection.discarded > limits.discardedBytesMax { linger(connection) }
            return
        }
        connection.unread.append(contentsOf: bytes)
        connection.wakeReader()
    }

    private func endBody(_ connection: HTTPConnection) {
        connection.bodyEnded = true
        if connection.phase == .discarding {
            connection.phase = .waiting
        } else {
            connection.wakeReader()
        }
    }

    /// What came cannot be understood, and so nothing that follows it can.
    func refuse(_ connection: HTTPConnection, _ error: HTTPError) {
        switch connection.phase {
        case .answering:
            connection.bodyError = error
            connection.wakeReader()
        case .waiting:
            connection.minor = 1
            connection.isHead = false
            connection.bodyEnded = true
            connection.closing = true
            var response = onRefusal(error)
            if case .bytes = response.body {} else { response.body = .empty }
            measured.refused(status: response.status)
            send(connection, response)
            linger(connection)
        case .discarding: linger(connection)
        case .upgrading, .lingering, .gone: break
        }
    }

    // MARK: Bodies

    /// The next piece of the body of request `serial`, for its `HTTPBody`.
    func nextBody(_ id: ConnectionID, _ serial: UInt32, max: Int) async throws -> [UInt8]? {
        guard let connection = connection(id), connection.serial == serial else { throw HTTPError.aborted }
        while true {
            if !connection.unread.isEmpty {
                let piece = connection.unread
                connection.unread = []
                connection.delivered += piece.count
                if !connection.isAdvancing { resume(connection) }
                guard connection.delivered <= max else {
                    connection.closing = true
                    throw HTTPError.bodyTooLarge
                }
                return piece
            }
            if let error = connection.bodyError { throw error }
            if connection.bodyEnded { return nil }
            guard connection.bodyWaiter == nil else {
                throw HTTPError(500, "The request body is read by two tasks at once.")
            }
            await withCheckedContinuation { continuation in
                connection.bodyWaiter = continuation
                if !connection.isAdvancing { settle(connection) }
            }
            guard connection.serial == serial else { throw HTTPError.aborted }
        }
    }

    // MARK: Deadlines and ends

    /// Brings what follows from a connection's state up to date: output, deadline, reading, end.
    func settle(_ connection: HTTPConnection) {
        if connection.phase == .upgrading {
            handOver(connection)
            return
        }
        // Only now is it sure that the body did not arrive with the head.
        if connection.needsContinue, connection.bodyWaiter != nil, connection.phase == .answering {
            connection.needsContinue = false
            connection.out.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
        }
        flush(connection)
        if connection.peerEnded { settleEnded(connection) }
        switch connection.phase {
        case .waiting:
            if connection.stream.pendingBytes > 0 {
                armWrite(connection)
            } else if connection.parser.isInsideHead {
                if connection.deadline != .head { arm(connection, .head, seconds: limits.headSecondsMax) }
            } else if connection.serial > 0 {
                arm(connection, .idle, seconds: limits.idleSecondsMax)
            }
        case .answering:
            if connection.bodyWaiter != nil {
                arm(connection, .body, seconds: limits.bodySecondsMax)
            } else if connection.writeWaiter != nil {
                armWrite(connection)
            } else {
                connection.deadline = .none
            }
        case .discarding:
            if connection.deadline != .body { arm(connection, .body, seconds: limits.bodySecondsMax) }
        case .lingering:
            if connection.stream.pendingBytes > 0 {
                armWrite(connection)
            } else if connection.deadline != .linger {
                arm(connection, .linger, seconds: limits.lingerSecondsMax)
            }
        case .upgrading, .gone: return
        }
        if wantsReading(connection) {
            if !connection.peerEnded { connection.stream.startReading() }
        } else {
            connection.stream.stopReading()
        }
    }

    private func wantsReading(_ connection: HTTPConnection) -> Bool {
        switch connection.phase {
        case .waiting: connection.stream.pendingBytes <= limits.unsentBytesMax
        case .answering:
            connection.bodyEnded || connection.bodyError != nil
                ? connection.pending.count < limits.pipelinedBytesMax
                : connection.unread.count < limits.unreadBytesMax
        case .discarding, .lingering: true
        case .upgrading, .gone: false
        }
    }

    private func armWrite(_ connection: HTTPConnection) {
        guard connection.deadline != .write else { return }
        connection.unsentSeen = connection.stream.unsentBytes
        arm(connection, .write, seconds: limits.bodySecondsMax)
    }

    func expired(_ connection: HTTPConnection) {
        let deadline = connection.deadline
        connection.deadline = .none
        switch deadline {
        case .none: break
        case .head where connection.parser.isInsideHead && connection.phase == .waiting:
            refuse(connection, HTTPError(408, "The request head came too slowly."))
            settle(connection)
        case .body where connection.phase == .answering:
            connection.bodyError = .bodyTooSlow
            connection.wakeReader()
        case .write:
            let unsent = connection.stream.unsentBytes
            if unsent < connection.unsentSeen { armWrite(connection) } else { connection.stream.reset() }
        case .head, .body, .idle, .linger: connection.stream.close()
        }
    }

    func ended(_ connection: HTTPConnection) {
        connection.peerEnded = true
        if !connection.isAdvancing { settle(connection) }
    }

    /// The client sends no more. Requests that arrived whole are still answered: it may have ended its side only.
    private func settleEnded(_ connection: HTTPConnection) {
        switch connection.phase {
        case .waiting:
            // What is left is less than a head, unless the client does not take its answers.
            let mayGoOn = !connection.pending.isEmpty && connection.stream.pendingBytes > 0
            if !mayGoOn { closeAfterFlush(connection) }
        case .answering where !connection.bodyEnded && connection.pending.isEmpty && connection.bodyError == nil:
            connection.bodyError = .aborted
            connection.wakeReader()
        case .discarding, .lingering: closeAfterFlush(connection)
        // Nobody waits this long with one side closed: the client has gone.
        case .answering where connection.departure != nil: connection.stream.close()
        case .answering, .upgrading, .gone: break
        }
    }

    private func closeAfterFlush(_ connection: HTTPConnection) {
        if connection.phase != .lingering { connection.phase = .lingering }
        connection.stream.closeAfterFlush()
    }

    func drained(_ connection: HTTPConnection) {
        if connection.deadline == .write { connection.deadline = .none }
        connection.wakeWriter()
        if !connection.isAdvancing { resume(connection) }
    }

    func closed(_ connection: HTTPConnection) {
        guard connection.phase != .gone else { return }
        let task = connection.task
        let departure = connection.departure
        connection.departure = nil
        connection.request = nil
        // Whatever was said of it, it was not heard.
        connection.status = 0
        connection.bodyError = connection.bodyError ?? .aborted
        connection.unread = []
        connection.pending = []
        connection.deadline = .none
        release(connection)
        task?.cancel()
        departure?()
        connection.wakeReader()
        connection.wakeWriter()
        connection.wakeTask()
    }
}

import EventLoop

/// Ending without losing a request.
extension HTTPLoop {
    /// How often a draining loop looks whether the backlog has run dry.
    static let drainTickMilliseconds: UInt64 = 10

    /// Idle connections are kept this long at least: a client that is about to send on one gets an answer, and is told
    /// that it was the last.
    static let idleMilliseconds: UInt64 = 1_000

    /// Starts to drain, and returns when no connection is left, or when `graceSeconds` are over and what was left has
    /// been cut off.
    func drain(graceSeconds: Int) async {
        guard !draining else { return }
        draining = true
        idleUntil = now + Self.idleMilliseconds
        let end = now + UInt64(graceSeconds) * 1000
        await withCheckedContinuation { continuation in
            drainWaiter = continuation
            let timer = LoopTimer(on: loop) {
                self.stopListeningOnceEmpty()
                if self.now >= end { self.cutOff() }
                self.drainProgress()
            }
            drainTimer = timer
            timer.start(milliseconds: 0, repeating: Self.drainTickMilliseconds)
        }
        stopTicking()
    }

    /// Called whenever a connection has gone.
    func drainProgress() {
        guard draining, !isListening, drainWaiter != nil else { return }
        if open == 0 {
            drainTimer?.cancel()
            drainTimer = nil
            let waiting = drainWaiter
            drainWaiter = nil
            waiting?.resume()
            return
        }
        // Idle connections are last: until then a client may still send on one and be told that it is over.
        let left = connections
        guard now >= idleUntil, left.allSatisfy(\.isIdle) else { return }
        for connection in left { linger(connection) }
    }

    private func cutOff() {
        stopListening()
        for connection in connections { connection.stream.reset() }
    }
}

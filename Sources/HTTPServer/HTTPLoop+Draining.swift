import EventLoop

/// Ending without losing a request.
extension HTTPLoop {
    /// How often a draining loop looks whether the backlog has run dry.
    static let drainTickMilliseconds: UInt64 = 50

    /// Starts to drain, and returns when no connection is left, or when `graceSeconds` are over and what was left has
    /// been cut off.
    func drain(graceSeconds: Int) async {
        guard !draining else { return }
        draining = true
        let end = now + UInt64(graceSeconds) * 1000
        var seen = accepted
        await withCheckedContinuation { continuation in
            drainWaiter = continuation
            let timer = LoopTimer(on: loop) {
                // A tick in which nobody came: the kernel's backlog is empty.
                if self.accepted == seen { self.stopListening() }
                seen = self.accepted
                if self.now >= end { self.cutOff() }
                self.drainProgress()
            }
            drainTimer = timer
            timer.start(milliseconds: Self.drainTickMilliseconds, repeating: Self.drainTickMilliseconds)
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
        guard left.allSatisfy({ $0.phase == .waiting && !$0.parser.isInsideHead && $0.serial > 0 }) else { return }
        for connection in left { linger(connection) }
    }

    private func cutOff() {
        stopListening()
        for connection in connections { connection.stream.reset() }
    }
}

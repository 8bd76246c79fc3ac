import Core
import EventLoop

/// What this process writes of itself and its users, and what it sees of the other processes.
extension PresenceFeed {
    var hintOfAll: String? { notify ? WakeHint.text(sender: sender, users: nil) : nil }

    /// A process whose lock is held needs no lease: what is written is gone when the lock is.
    /// Nor may it have a long one while it has users there, though they have left: it may be killed before that is
    /// written.
    /// - Parameter batch: what is written with it.
    private func leaseSeconds(with batch: PresenceLedger.Batch? = nil) -> Int {
        if holdsLock { return 0 }
        return ledger.isEmpty(after: batch) ? limits.idleLeaseSeconds : limits.leaseSeconds
    }

    // MARK: Users

    /// At once when nothing was written for a while: who comes alone is not kept waiting.
    func writeSoon() {
        guard isRunning, isKnown, !isWriting, writeTimer == nil, ledger.hasDue else { return }
        let since = loop.nowMilliseconds - wroteAt
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.writeNow() } }
        timer.start(milliseconds: since < limits.writeMilliseconds ? limits.writeMilliseconds - since : 0)
        writeTimer = timer
    }

    private func writeNow() {
        writeTimer = nil
        guard isRunning, isKnown, !isWriting else { return }
        isWriting = true
        _ = Task(executorPreference: loop) { await self.write() }
    }

    private func write() async {
        let batch = ledger.take(max: limits.writeUsersMax)
        var isWritten = false
        do {
            isKnown = try await presence.write(
                process, online: batch.online, offline: batch.offline, lease: leaseSeconds(with: batch),
                notify: notify ? WakeHint.text(sender: sender, users: batch.online + batch.offline) : nil)
            isWritten = isKnown
            writes.add()
        } catch {
            // The next look tries again.
            log.debug("presence could not be written", ["error": .string(String(describing: error))])
        }
        if isWritten {
            ledger.done(batch)
            changed(batch.offline)
        } else {
            ledger.failed(batch)
        }
        isWriting = false
        wroteAt = loop.nowMilliseconds
        if isWritten { writeSoon() }
        if !isKnown { look() }
    }

    // MARK: Processes

    func setLooking() {
        guard isRunning else { return }
        let interval = ledger.connected.isEmpty ? limits.idleLookMilliseconds : limits.lookMilliseconds
        guard interval != lookInterval || lookTimer == nil else { return }
        let timer = lookTimer ?? LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.look() } }
        timer.start(milliseconds: interval, repeating: interval)
        lookTimer = timer
        lookInterval = interval
    }

    func look() {
        guard isRunning, !isLooking else { return }
        isLooking = true
        _ = Task(executorPreference: loop) { await self.lookAtAll() }
    }

    private func lookAtAll() async {
        do {
            let states = try await presence.look()
            alive.set(states.count(where: \.isAlive))
            let (own, dead) = processes.judge(states, own: process, now: loop.nowMilliseconds)
            if isRunning { try await settle(own) }
            if !dead.isEmpty { try await bury(dead) }
            if looksFail { log.info("the chat sees the other instances again") }
            looksFail = false
        } catch {
            processes.forget()
            if !looksFail {
                log.warning("the chat cannot see the instances", ["error": .string(String(describing: error))])
            }
            looksFail = true
        }
        isLooking = false
        if !looksFail { writeSoon() }
    }

    private func settle(_ own: ProcessWatch.Own) async throws {
        switch own {
        case .here(let state):
            isKnown = true
            holdsLock = state.isLocked
            let lease = leaseSeconds()
            // A longer one was written before somebody came.
            let fits = Double(lease) * 0.7...Double(lease)
            guard !holdsLock, !fits.contains(state.leaseSeconds) else { return }
            try await presence.renew(process, lease: lease)
        case .missing:
            isKnown = try await presence.start(process, lease: leaseSeconds(), takesName: false, notify: hintOfAll)
            // It ended meanwhile, and its row was deleted before it was written.
            guard isRunning else { return try await presence.stop(process, notify: hintOfAll) }
            guard isKnown else { return }
            log.warning("the other instances took this one for dead; it is back")
            ledger.forget()
        case .replaced:
            if isKnown { log.warning("another process has this instance's name; its users are not shown as online") }
            isKnown = false
        }
    }

    private func bury(_ dead: [ChatProcessState]) async throws {
        guard try await presence.bury(dead.map(\.run), notify: hintOfAll) > 0 else { return }
        let names = dead.map(\.name).joined(separator: " ")
        log.warning("instances are gone, and their users with them", ["names": .string(names)])
        lookAround()
    }
}

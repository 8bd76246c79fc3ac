import Core
import EventLoop

/// What goes to the sockets: built once for all who are due.
extension SocketIOHub {
    /// How often those are looked at whose time had not come, or who were behind.
    private static let lookMilliseconds: UInt64 = 100
    /// Beyond this a socket is behind: it gets the newest state when it has taken what waits, not each one on the way.
    private static let aheadBytesMax = 64 * 1024

    /// What changes in one turn goes out together.
    func flushSoon() {
        guard !isFlushing else { return }
        isFlushing = true
        loop.atTurnEnd { self.flush() }
    }

    private func flush() {
        isFlushing = false
        tellRooms()
        let now = loop.nowMilliseconds
        let due = changed
        changed = []
        push(due, now: now)
        setTimer()
        // What is missing for those who wait.
        read()
    }

    /// Those whose turn it may be by now.
    private func look() {
        pushTimer = nil
        let due = waiting
        waiting = []
        tellRooms()
        push(due, now: loop.nowMilliseconds)
        setTimer()
        read()
    }

    private func setTimer() {
        guard pushTimer == nil, !waiting.isEmpty || !lateRooms.isEmpty else { return }
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.look() } }
        timer.start(milliseconds: Self.lookMilliseconds)
        pushTimer = timer
    }

    private func isClogged(_ socket: SocketIOSocket) -> Bool { socket.handle.bufferedBytes > Self.aheadBytesMax }

    // MARK: Open rooms

    private func tellRooms() {
        var told = 0
        for id in lateRooms {
            guard let room = rooms[id], !room.late.isEmpty else {
                lateRooms.remove(id)
                continue
            }
            guard !room.isBehind, let texts = room.texts else {
                unread.insert(id)
                continue
            }
            let before = room.late.count
            room.late = emit(to: room.late) { SharedEvent(json: RoomPackets.room(room, texts)) }
            if room.late.isEmpty { lateRooms.remove(id) }
            told += before - room.late.count
        }
        parts.measures.delivered.add(told)
    }

    /// All at once: hundreds, perhaps, for whom the engine is asked once.
    /// - Returns: those who are behind.
    private func emit(to sockets: [SocketIOSocket], _ event: () -> SharedEvent) -> [SocketIOSocket] {
        guard let engine = sockets.first?.handle.engine else { return [] }
        var ids = sockets.map(\.handle.id)
        let behind = engine.assumeIsolated { [ids] engine in
            ids.map { engine.bufferedBytes($0) > Self.aheadBytesMax }
        }
        if behind.contains(true) { ids = zip(ids, behind).filter { !$0.1 }.map(\.0) }
        guard !ids.isEmpty else { return sockets }
        let built = event()
        engine.assumeIsolated { [ids] in $0.emit(built, to: ids) }
        return ids.count == sockets.count ? [] : zip(sockets, behind).filter(\.1).map(\.0)
    }

    // MARK: Lists

    private func push(_ due: [SocketIOSocket], now: UInt64) {
        // Users of the same rooms have the same list.
        var events: [[Room.ID]: SharedEvent] = [:]
        for socket in due where sockets[socket.number] === socket {
            guard socket.pace.isDue(now: now, interval: limits.pushMilliseconds), !isClogged(socket),
                let event = list(of: socket.user, &events)
            else {
                waiting.append(socket)
                continue
            }
            socket.handle.emit(event)
            socket.pace.pushed(now: now)
        }
    }

    /// Nil while something of it has to be read.
    private func list(of user: SocketIOUser, _ events: inout [[Room.ID]: SharedEvent]) -> SharedEvent? {
        relist(user)
        let key = user.list.map(\.id)
        if let event = events[key] { return event }
        guard !user.list.contains(where: \.isBehind) else { return nil }
        let event = SharedEvent(json: RoomPackets.messages(user.list.compactMap { $0.listedRow() }))
        events[key] = event
        return event
    }
}

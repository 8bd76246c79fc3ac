import Core

/// Which rooms the hub's users follow, and what is known of them.
///
/// One task reads whatever is due: users' rooms first, then texts. Those who come while a read is under way are served
/// by the next one together.
extension SocketIOHub {
    /// Users whose rooms are read by one statement.
    private static let usersMax = 128
    /// Rooms whose texts are read by one statement: a few megabytes at the worst.
    private static func roomsMax(_ depth: RoomTexts.Depth) -> Int { depth == .list ? 128 : 8 }

    /// After a read that failed.
    private static let retryMilliseconds: UInt64 = 400

    /// Their rooms may have changed.
    func refresh(_ ids: [User.ID]) {
        for id in ids where users[id] != nil { reads.insert(id) }
        read()
    }

    func membersChanged(_ room: Room.ID, _ members: Set<User.ID>) {
        let here = rooms[room]?.users ?? [:]
        refresh(
            reads.membersChanged(room, members, here: here.keys) { id in
                users[id].map { $0.rooms[room] == nil } ?? false
            })
    }

    /// The feed follows these rooms for us, and delivers from these positions on.
    func held(_ positions: [(Room.ID, Int64)]) {
        for (id, position) in positions {
            guard let room = rooms[id], position > room.position else { continue }
            room.position = position
            change(room)
        }
        flushSoon()
    }

    func deliver(_ deliveries: [HubDelivery]) {
        for delivery in deliveries {
            guard let room = rooms[delivery.room], let last = delivery.messages.last else { continue }
            // What was read a moment ago has been told.
            guard last.seq > room.position else { continue }
            for message in delivery.messages { room.texts?.apply(message) }
            room.position = last.seq
            room.activeAt = max(room.activeAt, last.createdAt)
            change(room)
        }
        flushSoon()
    }

    /// Everybody who looks at the room is to be given what it has now.
    private func change(_ room: SocketIORoom) {
        room.row = nil
        if !room.joined.isEmpty {
            room.late = room.joined
            lateRooms.insert(room.id)
        }
        for user in room.users.values { change(user) }
    }

    private func change(_ user: SocketIOUser) {
        for socket in user.sockets where socket.isAccepted && socket.pace.change() { changed.append(socket) }
    }

    // MARK: Reading

    func read() {
        guard !reads.isUnderWay, reads.hasDue || !unread.isEmpty, loop.nowMilliseconds >= readsAgainAt else { return }
        reads.isUnderWay = true
        _ = Task(executorPreference: loop) { await self.readAll() }
    }

    private func readAll() async {
        while reads.hasDue || !unread.isEmpty {
            let batch = takeBatch()
            do {
                if !batch.users.isEmpty {
                    let lists = try await parts.rooms.activeRooms(
                        of: batch.users, limitPerUser: limits.roomsPerUserMax)
                    for id in batch.users { apply(lists[id], to: id) }
                    for id in batch.users where users[id] != nil {
                        reads.applied((lists[id] ?? []).lazy.map(\.id), of: id)
                    }
                }
                while !unread.isEmpty { try await readTexts() }
                for socket in batch.sockets { greet(socket) }
                for waiting in batch.acts {
                    if let socket = sockets[waiting.socket] { perform(waiting, socket, isLast: true) }
                }
            } catch {
                giveUp(batch)
                break
            }
        }
        reads.ended()
        flushSoon()
    }

    private struct Batch {
        let users: [User.ID]
        let sockets: [SocketIOSocket]
        let acts: [WaitingAct]
    }

    private func takeBatch() -> Batch {
        let (users, sockets) = reads.take(max: Self.usersMax) {
            self.sockets[$0.number] === $0 ? $0.user.id : nil
        }
        let read = Set(users)
        let acts = waitingActs.filter { self.sockets[$0.socket].map { read.contains($0.user.id) } ?? true }
        waitingActs.removeAll { self.sockets[$0.socket].map { read.contains($0.user.id) } ?? true }
        return Batch(users: users, sockets: sockets, acts: acts)
    }

    /// The tick tries again for those who are connected.
    private func giveUp(_ batch: Batch) {
        readsAgainAt = loop.nowMilliseconds + Self.retryMilliseconds
        for socket in batch.sockets where sockets[socket.number] === socket { refuse(socket, Self.away) }
        for waiting in batch.acts {
            if let socket = sockets[waiting.socket] { fail(socket, waiting.act.room, Self.away, waiting.ack) }
        }
        for id in batch.users where users[id] != nil { reads.insert(id) }
    }

    /// The user's rooms as they are now: those that are new are followed, those that are gone are left.
    /// - Parameter list: nil: there is no such user, or not any more.
    private func apply(_ list: [ActiveRoom]?, to id: User.ID) {
        guard let user = users[id] else { return }
        guard let list else {
            for socket in user.sockets { expel(socket, Self.unauthorized) }
            return
        }
        let ids = Set(list.map(\.id))
        let gone = user.rooms.keys.filter { !ids.contains($0) }
        let fresh = list.filter { user.rooms[$0.id] == nil }
        leave(user, gone)
        enter(user, fresh)
        relist(user)
        if !gone.isEmpty || !fresh.isEmpty { change(user) }
    }

    private func enter(_ user: SocketIOUser, _ list: [ActiveRoom]) {
        var held: [(room: Room.ID, lastSeq: Int64)] = []
        for found in list {
            let room: SocketIORoom
            if let known = rooms[found.id] {
                room = known
            } else {
                room = SocketIORoom(found)
                rooms[found.id] = room
                held.append((found.id, found.lastSeq))
            }
            room.users[user.id] = user
            user.rooms[found.id] = room
        }
        guard !held.isEmpty else { return }
        let (asked, place) = (held, place)
        parts.feed.post { $0.hold(asked, hub: place, number: 0) }
    }

    func leave(_ user: SocketIOUser, _ list: [Room.ID]) {
        var released: [Room.ID] = []
        for id in list {
            guard let room = user.rooms.removeValue(forKey: id) else { continue }
            room.users[user.id] = nil
            for socket in user.sockets where socket.joined.contains(id) { leave(socket, id) }
            if let index = user.list.firstIndex(where: { $0 === room }) {
                user.list.remove(at: index)
                unlist(room)
            }
            guard room.users.isEmpty else { continue }
            rooms[id] = nil
            unread.remove(id)
            lateRooms.remove(id)
            released.append(id)
        }
        guard !released.isEmpty else { return }
        let (gone, place) = (released, place)
        parts.feed.post { $0.release(gone, hub: place) }
    }

    private func unlist(_ room: SocketIORoom) {
        room.listedBy -= 1
        room.reach()
    }

    /// The user's list: its most recently active rooms, in order. What is behind is read.
    func relist(_ user: SocketIOUser) {
        let before = user.list
        let isSame = before.count == user.rooms.count
        user.list = Array(
            user.rooms.values.sorted { ($0.activeAt, $0.id) > ($1.activeAt, $1.id) }.prefix(RoomPackets.rowsMax))
        if !isSame {
            for room in user.list { room.listedBy += 1 }
            for room in before { unlist(room) }
        }
        for room in user.list where room.isBehind { unread.insert(room.id) }
    }

    private func readTexts() async throws {
        // The rooms that are open first: somebody waits for an answer.
        let depth: RoomTexts.Depth = unread.contains { rooms[$0]?.wanted == .room } ? .room : .list
        let asked = unread.filter { (rooms[$0]?.wanted ?? .list) == depth }.prefix(Self.roomsMax(depth)).map { id in
            (id: id, position: rooms[id]?.position ?? 0)
        }
        let found = try await parts.rooms.lastMessages(
            of: asked.map(\.id), limitPerRoom: depth.textsMax, bytesPerRoom: depth.bytesMax)
        for (id, position) in asked {
            unread.remove(id)
            guard let room = rooms[id], room.wanted != nil else { continue }
            // A room that is not there any more has nothing to say; its members are told in a moment.
            let last = found[id] ?? LastMessages(lastSeq: position, messages: [], isWhole: true)
            // What the feed has not told yet comes to those who do not look at the texts in this moment, too.
            if last.lastSeq > room.position { change(room) }
            // What was committed before we asked is in it, or it is not there any more. What was delivered meanwhile
            // may not be: then the room is read once more.
            room.position = room.position == position ? last.lastSeq : max(room.position, last.lastSeq)
            if let newest = last.messages.last { room.activeAt = max(room.activeAt, newest.createdAt) }
            room.texts = RoomTexts(last, depth: depth)
            room.row = nil
            room.reach()
            if room.isBehind { unread.insert(id) }
        }
    }

    private func greet(_ socket: SocketIOSocket) {
        guard sockets[socket.number] === socket, !socket.isAccepted else { return }
        socket.isAccepted = true
        socket.handle.accept()
        if socket.pace.change() { changed.append(socket) }
    }
}

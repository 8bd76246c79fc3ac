import Core
import WebSocket

/// Which rooms the hub's users follow.
extension ChatHub {
    /// Users whose rooms are read by one statement.
    private static let loadMax = 128

    /// Their rooms may have changed.
    func refresh(_ ids: [User.ID]) {
        for id in ids where users[id] != nil { reads.insert(id) }
        load()
    }

    /// The members of a room as they are now.
    func membersChanged(_ room: Room.ID, _ members: Set<User.ID>) {
        let here = rooms[room]?.users ?? [:]
        refresh(
            reads.membersChanged(room, members, here: here.keys) { id in
                users[id].map { !$0.rooms.contains(room) } ?? false
            })
    }

    func load() {
        guard !reads.isUnderWay, reads.hasDue else { return }
        reads.isUnderWay = true
        _ = Task(executorPreference: loop) { await self.loadAll() }
    }

    private func loadAll() async {
        while reads.hasDue {
            let batch = reads.take(max: Self.loadMax) { $0.user?.id }
            do {
                let lists = try await parts.rooms.rooms(
                    of: batch.users, limitPerUser: limits.roomsPerUserMax)
                for user in batch.users { apply(lists[user] ?? [], to: user) }
                for socket in batch.sockets { greet(socket) { lists[$0] ?? [] } }
                for user in batch.users where users[user] != nil {
                    reads.applied((lists[user] ?? []).lazy.map(\.id), of: user)
                }
            } catch {
                for socket in batch.sockets {
                    close(socket, .tryAgainLater, "The service is not available for the moment.")
                }
                // The tick tries again for those who are connected.
                for user in batch.users where users[user] != nil { reads.insert(user) }
                break
            }
        }
        reads.ended()
    }

    /// The user's rooms as they are now: those that are new are followed, those that are gone are left.
    private func apply(_ list: [Room], to id: User.ID) {
        guard let user = users[id] else { return }
        let ids = Set(list.map(\.id))
        let gone = user.rooms.subtracting(ids)
        let fresh = list.filter { !user.rooms.contains($0.id) }
        user.rooms = ids
        leave(user, Array(gone))
        // At the limit a room may have been pushed out by newer ones, which is not the same as being left.
        if list.count < limits.roomsPerUserMax {
            for room in gone {
                for socket in user.sockets where socket.connection.state == .ready {
                    socket.handle.send(text: ServerFrame.left(room))
                }
            }
        }
        enter(user, fresh)
        for socket in user.sockets where socket.connection.state == .ready {
            for room in fresh {
                socket.handle.send(text: ServerFrame.room(room))
                // All of it is new to this client.
                setCursor(socket, room, at: 0)
            }
        }
    }

    private func enter(_ user: HubUser, _ list: [Room]) {
        var held: [(room: Room.ID, lastSeq: Int64)] = []
        holds += 1
        for room in list {
            if let known = rooms[room.id] {
                known.users[user.id] = user
            } else {
                let hubRoom = HubRoom(hold: holds)
                hubRoom.users[user.id] = user
                rooms[room.id] = hubRoom
                held.append((room.id, room.lastSeq))
            }
        }
        guard !held.isEmpty else { return }
        let (asked, index, number) = (held, index, holds)
        parts.feed.post { $0.hold(asked, hub: index, number: number) }
    }

    func leave(_ user: HubUser, _ list: [Room.ID]) {
        var released: [Room.ID] = []
        for room in list {
            guard let hubRoom = rooms[room] else { continue }
            hubRoom.users[user.id] = nil
            for socket in user.sockets { detach(socket, room) }
            for socket in user.sockets { unfocus(socket, room) }
            if hubRoom.users.isEmpty {
                rooms[room] = nil
                released.append(room)
            }
        }
        guard !released.isEmpty else { return }
        let (gone, index) = (released, index)
        parts.feed.post { $0.release(gone, hub: index) }
    }

    private func greet(_ socket: HubSocket, _ list: (User.ID) -> [Room]) {
        guard socket.connection.state == .loading, let user = socket.user else { return }
        let rooms = list(user.id)
        socket.connection.loaded()
        socket.handle.send(text: ServerFrame.ready(user: user.id, instance: parts.instance, rooms: rooms))
        let resume = socket.resume
        socket.resume = [:]
        if !resume.isEmpty { parts.measures.resumes.add() }
        for room in rooms { setCursor(socket, room, at: resume[room.id] ?? room.lastSeq) }
    }

    /// From where the socket is to be given the room.
    private func setCursor(_ socket: HubSocket, _ room: Room, at seq: Int64) {
        // Too far behind to be brought along, or ahead of a table that was restored.
        if seq > room.lastSeq || room.lastSeq - seq > limits.resumeMessagesMax {
            socket.handle.send(text: ServerFrame.reset(room.id, lastSeq: room.lastSeq))
            parts.measures.resets.add()
            socket.cursors[room.id] = room.lastSeq
        } else {
            socket.cursors[room.id] = seq
        }
        rooms[room.id]?.apart.append(socket)
        resolve(socket, room.id)
    }
}

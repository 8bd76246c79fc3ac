import Core
import WebSocket

/// A socket that has less of a room than the hub has delivered.
struct BehindEntry: Hashable {
    let socket: Int
    let room: Room.ID
}

/// What goes to the sockets. A socket without a cursor in a room is where the room is, and is given what comes next;
/// one with a cursor is behind, and is brought along from the table, or ahead, and skips what it has.
extension ChatHub {
    /// Rooms of one read.
    private static let catchUpRoomsMax = 128

    /// The feed follows these rooms for us and delivers from these positions on.
    func held(_ number: Int, _ positions: [(Room.ID, Int64)]) {
        for (room, position) in positions {
            // An answer to a former hold of the room, let go and taken up again meanwhile, is about positions that
            // the feed has forgotten.
            guard let hubRoom = rooms[room], hubRoom.hold == number, hubRoom.position == nil else { continue }
            hubRoom.position = position
            for user in hubRoom.users.values {
                for socket in user.sockets { resolve(socket, room) }
            }
        }
    }

    func deliver(_ deliveries: [HubDelivery]) {
        for delivery in deliveries {
            guard let room = rooms[delivery.room], let start = room.position else { continue }
            var position = start
            var frames: [SharedFrame] = []
            for (seq, frame) in delivery.frames where seq > start {
                // The feed leaves no gap; were there one, nothing goes out rather than the wrong thing.
                guard seq == position + 1 else { break }
                position = seq
                frames.append(frame)
                guard !room.apart.isEmpty else { continue }
                let arrived = room.apart.filter { $0.cursors[delivery.room] == seq }
                guard !arrived.isEmpty else { continue }
                // Ahead until now, and where the room is from here on.
                give(frames, to: room, at: position)
                frames = []
                for socket in arrived { settle(socket, delivery.room) }
            }
            give(frames, to: room, at: position)
        }
    }

    private func give(_ frames: [SharedFrame], to room: HubRoom, at position: Int64) {
        guard !frames.isEmpty else { return }
        room.position = position
        let live = room.live
        socketLoop?.assumeIsolated { $0.send(frames, to: live) }
        parts.measures.delivered.add(frames.count * live.count)
    }

    /// From here on the socket is given what the room is given.
    private func settle(_ socket: HubSocket, _ room: Room.ID) {
        socket.forget(room)
        guard let hubRoom = rooms[room] else { return }
        hubRoom.rejoins(socket)
        hubRoom.live.append(socket.handle.id)
    }

    /// The socket is given nothing more of the room, live or read.
    func detach(_ socket: HubSocket, _ room: Room.ID) {
        guard let hubRoom = rooms[room] else { return }
        if socket.cursors[room] != nil {
            socket.forget(room)
            hubRoom.rejoins(socket)
        } else if let index = hubRoom.live.firstIndex(of: socket.handle.id) {
            hubRoom.live.swapAt(index, hubRoom.live.count - 1)
            hubRoom.live.removeLast()
        }
    }

    /// Compares a socket's cursor with the room.
    func resolve(_ socket: HubSocket, _ room: Room.ID) {
        guard let cursor = socket.cursors[room], let position = rooms[room]?.position else { return }
        if cursor == position {
            settle(socket, room)
        } else if cursor < position {
            behind.append(BehindEntry(socket: socket.handle.id, room: room))
            catchUp()
        }
    }

    /// The socket has taken all that waited for it.
    func unstall(_ id: Int) {
        guard let socket = sockets[id], socket.isStalled else { return }
        socket.isStalled = false
        for room in Array(socket.cursors.keys) { resolve(socket, room) }
    }

    func catchUp() {
        guard !isCatchingUp, !behind.isEmpty else { return }
        isCatchingUp = true
        _ = Task(executorPreference: loop) { await self.catchAllUp() }
    }

    private func catchAllUp() async {
        while !behind.isEmpty {
            let (entries, cursors) = takeBehind()
            guard !cursors.isEmpty else { continue }
            do {
                let messages = try await parts.rooms.messages(
                    after: cursors.map { (room: $0.key, seq: $0.value) }, limitPerRoom: limits.catchUpMessagesMax)
                bring(entries, MessagePage.split(messages, limit: limits.catchUpMessagesMax))
            } catch {
                // The tick tries again.
                behind += entries
                break
            }
        }
        isCatchingUp = false
    }

    /// One read for many sockets: of each room, from the one that is furthest behind.
    private func takeBehind() -> (entries: Set<BehindEntry>, cursors: [Room.ID: Int64]) {
        var entries: Set<BehindEntry> = []
        var cursors: [Room.ID: Int64] = [:]
        var rest: [BehindEntry] = []
        for entry in behind {
            guard let socket = sockets[entry.socket], !socket.isStalled, let cursor = socket.cursors[entry.room],
                let position = rooms[entry.room]?.position, cursor < position
            else { continue }
            if cursors[entry.room] == nil, cursors.count >= Self.catchUpRoomsMax {
                rest.append(entry)
            } else {
                cursors[entry.room] = min(cursor, cursors[entry.room] ?? cursor)
                entries.insert(entry)
            }
        }
        behind = rest
        return (entries, cursors)
    }

    private func bring(_ entries: Set<BehindEntry>, _ pages: [MessagePage]) {
        var byRoom: [Room.ID: (frames: [(seq: Int64, frame: SharedFrame)], isWhole: Bool)] = [:]
        for page in pages {
            byRoom[page.room] = (
                page.messages.map { ($0.seq, SharedFrame(text: ServerFrame.message($0))) }, page.isWhole
            )
        }
        for entry in entries {
            let page = byRoom[entry.room] ?? ([], true)
            bring(entry, page.frames, isWhole: page.isWhole)
        }
    }

    private func bring(_ entry: BehindEntry, _ frames: [(seq: Int64, frame: SharedFrame)], isWhole: Bool) {
        guard let socket = sockets[entry.socket], let start = socket.cursors[entry.room],
            let position = rooms[entry.room]?.position
        else { return }
        var cursor = start
        for (seq, frame) in frames where seq > start {
            guard seq == cursor + 1 else { break }
            guard socket.handle.bufferedBytes <= limits.stallBytes else {
                socket.isStalled = true
                break
            }
            socket.handle.send(frame)
            cursor = seq
        }
        parts.measures.caughtUp.add(Int(cursor - start))
        socket.cursors[entry.room] = cursor
        if cursor == start, isWhole, !socket.isStalled, cursor < position {
            // Committed once and not there any more: nothing can be brought, and the client must know.
            socket.handle.send(text: ServerFrame.reset(entry.room, lastSeq: position))
            parts.measures.resets.add()
            socket.cursors[entry.room] = position
        }
        if !socket.isStalled { resolve(socket, entry.room) }
    }

    // MARK: What is not a message

    func marked(_ mark: ReadMark) {
        let frame = SharedFrame(text: ServerFrame.read(mark))
        for user in rooms[mark.room]?.users.values ?? [:].values {
            for socket in user.sockets where socket.connection.state == .ready { socket.handle.send(frame) }
        }
    }

    func typing(_ room: Room.ID, _ user: User.ID) {
        guard let focused = rooms[room]?.focused, !focused.isEmpty else { return }
        let frame = SharedFrame(text: ServerFrame.typing(room, user))
        for socket in focused where socket.user?.id != user { socket.handle.send(frame) }
    }
}

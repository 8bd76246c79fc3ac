import Core
import WebSocket

/// Who watches which rooms, and what they are told of those who are in them.
extension ChatHub {
    /// From here on the socket is told who types in the room, who comes and who goes; first, who is there.
    func join(_ socket: HubSocket, _ room: Room.ID) {
        guard socket.user?.rooms.contains(room) == true, let hubRoom = rooms[room] else { return forbid(socket, room) }
        guard socket.questions < limits.questionsMax else {
            return refuse(socket, .tooMany, "Too many questions at once.", room: room)
        }
        if !socket.focus.contains(room) {
            guard socket.focus.count < limits.focusMax else {
                return refuse(socket, .tooMany, "At most \(limits.focusMax) rooms can be watched.", room: room)
            }
            socket.focus.append(room)
            hubRoom.focused.append(socket)
        }
        socket.connection.accepted()
        socket.questions += 1
        let (id, index) = (socket.handle.id, index)
        parts.presence.post { $0.join(room, hub: index, socket: id) }
    }

    func joined(_ id: Int, _ room: Room.ID, _ online: [User.ID]) {
        guard let socket = sockets[id] else { return }
        socket.questions -= 1
        // It may have left meanwhile, or the room may have been taken from it.
        guard socket.focus.contains(room) else { return }
        socket.handle.send(text: ServerFrame.joined(room, online: online))
    }

    func joinFailed(_ id: Int, _ room: Room.ID, _ error: any Error) {
        guard let socket = sockets[id] else { return }
        socket.questions -= 1
        fail(id, room, error)
    }

    /// The socket does not watch the room any more.
    func unfocus(_ socket: HubSocket, _ room: Room.ID) {
        guard let place = socket.focus.firstIndex(of: room) else { return }
        socket.focus.remove(at: place)
        guard let hubRoom = rooms[room] else { return }
        hubRoom.focused.removeAll { $0 === socket }
        guard hubRoom.focused.isEmpty else { return }
        let index = index
        parts.presence.post { $0.unwatch(room, hub: index) }
    }

    /// Once to each socket, in however many of its rooms the user is.
    func presence(_ events: [PresenceWatch.Event]) {
        for event in events {
            let frame = SharedFrame(text: ServerFrame.presence(event.user, online: event.isOnline))
            var told: Set<Int> = []
            for room in event.rooms {
                for socket in rooms[room]?.focused ?? [] where socket.user?.id != event.user {
                    if told.insert(socket.handle.id).inserted { socket.handle.send(frame) }
                }
            }
        }
    }
}

import Core

/// Whose rooms a hub is to read: those of sockets that arrive, and of users whose rooms may have changed. Those who
/// come while a read is under way are served by the next one together: a thousand clients that come back at once cost
/// a few statements. It does no I/O.
struct RoomReads<Socket> {
    var arriving: [Socket] = []
    private(set) var stale: Set<User.ID> = []
    /// Members of rooms that were told while lists were read, which may be older.
    private var membersMeanwhile: [Room.ID: Set<User.ID>] = [:]
    /// From the first `take` to `ended`.
    var isUnderWay = false

    var hasDue: Bool { !arriving.isEmpty || !stale.isEmpty }

    mutating func insert(_ user: User.ID) { stale.insert(user) }
    mutating func remove(_ user: User.ID) { stale.remove(user) }

    /// The members of a room as they are now.
    /// - Parameters:
    ///   - here: the users of the hub who are in the room, as far as it knows.
    ///   - lacks: whether one of its users is not in the room, as far as it knows.
    /// - Returns: whose rooms have changed.
    mutating func membersChanged(
        _ room: Room.ID, _ members: Set<User.ID>, here: some Sequence<User.ID>, lacks: (User.ID) -> Bool
    ) -> [User.ID] {
        if isUnderWay { membersMeanwhile[room] = members }
        return Array(members.filter(lacks)) + here.filter { !members.contains($0) }
    }

    /// - Parameters:
    ///   - max: users whose rooms are read by one statement.
    ///   - user: nil for a socket that has gone.
    mutating func take(max: Int, user: (Socket) -> User.ID?) -> (users: [User.ID], sockets: [Socket]) {
        membersMeanwhile = [:]
        var ids: Set<User.ID> = []
        var sockets: [Socket] = []
        var rest: [Socket] = []
        for socket in arriving {
            guard let id = user(socket) else { continue }
            if ids.contains(id) || ids.count < max {
                ids.insert(id)
                sockets.append(socket)
            } else {
                rest.append(socket)
            }
        }
        arriving = rest
        for id in stale {
            guard ids.count < max else { break }
            ids.insert(id)
        }
        stale.subtract(ids)
        return (Array(ids), sockets)
    }

    /// A list that does not agree with what was told of a room's members while it was read is to be read again: the
    /// user has left the room, or left it and come back, and the list is from before or from between.
    mutating func applied(_ rooms: some Sequence<Room.ID>, of user: User.ID) {
        guard !membersMeanwhile.isEmpty else { return }
        let rooms = Set(rooms)
        if membersMeanwhile.contains(where: { $1.contains(user) != rooms.contains($0) }) { stale.insert(user) }
    }

    mutating func ended() {
        isUnderWay = false
        membersMeanwhile = [:]
    }
}

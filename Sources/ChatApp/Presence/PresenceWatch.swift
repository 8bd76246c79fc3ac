import Core

/// The rooms whose presence somebody here watches, and what was told of their members. It does no I/O.
struct PresenceWatch {
    /// A member of watched rooms who came or went.
    struct Event: Equatable {
        let user: User.ID
        let isOnline: Bool
        let rooms: [Room.ID]
        let hubs: HubSet
    }

    private struct WatchedRoom {
        var hubs = HubSet()
        var members: [User.ID] = []
        /// Counts what is learnt of the members, so that nothing newer gives way to a read that took its time.
        var version = 0
    }

    private struct WatchedUser {
        /// Nil: nobody was told anything yet.
        var isOnline: Bool?
        var rooms: Set<Room.ID> = []
    }

    private var rooms: [Room.ID: WatchedRoom] = [:]
    private var users: [User.ID: WatchedUser] = [:]

    var isEmpty: Bool { rooms.isEmpty }
    var watched: [User.ID] { Array(users.keys) }
    func watches(_ user: User.ID) -> Bool { users[user] != nil }

    mutating func watch(_ room: Room.ID, hub: Int) {
        rooms[room, default: WatchedRoom()].hubs.insert(hub)
    }

    mutating func unwatch(_ room: Room.ID, hub: Int) {
        rooms[room]?.hubs.remove(hub)
        guard let gone = rooms[room], gone.hubs.isEmpty else { return }
        rooms[room] = nil
        for user in gone.members { release(user, room) }
    }

    private mutating func release(_ user: User.ID, _ room: Room.ID) {
        users[user]?.rooms.remove(room)
        if users[user]?.rooms.isEmpty == true { users[user] = nil }
    }

    /// What to pass with members that are read from now on; nil when nobody watches the room.
    func version(of room: Room.ID) -> Int? { rooms[room]?.version }

    /// The members of a room as they were read for those who begin to watch it, and who will be told who is online.
    /// - Returns: what others who watch it already are to be told.
    mutating func read(_ room: Room.ID, _ members: [User.ID], version: Int?) -> [Event] {
        guard let watched = rooms[room], watched.version == version else { return [] }
        // They have been told of the members before: whoever is new is news to them.
        let isFirst = watched.version == 0
        let events = isFirst ? [] : news(room, members)
        set(room, members, isOnline: isFirst ? nil : false)
        return events
    }

    /// Members of a room who are new there and known to be online, as another room has them too: nothing more will be
    /// learnt of them, and whoever watches only this room has not been told.
    private func news(_ room: Room.ID, _ members: [User.ID]) -> [Event] {
        guard let watched = rooms[room] else { return [] }
        return members.filter { users[$0]?.isOnline == true && users[$0]?.rooms.contains(room) == false }
            .map { Event(user: $0, isOnline: true, rooms: [room], hubs: watched.hubs) }
    }

    /// The members of a room as they are now.
    /// - Returns: those of whom those who watch it have not been told, and what they can be told at once.
    mutating func changed(_ room: Room.ID, _ members: [User.ID]) -> (new: [User.ID], known: [Event]) {
        guard let before = rooms[room]?.members else { return ([], []) }
        let known = news(room, members)
        // Whoever is new is offline, as far as anybody was told.
        set(room, members, isOnline: false)
        return (members.filter { !before.contains($0) }, known)
    }

    private mutating func set(_ room: Room.ID, _ members: [User.ID], isOnline: Bool?) {
        guard let before = rooms[room]?.members else { return }
        rooms[room]?.version += 1
        rooms[room]?.members = members
        for user in members {
            users[user, default: WatchedUser(isOnline: isOnline)].rooms.insert(room)
            if users[user]?.isOnline == nil { users[user]?.isOnline = isOnline }
        }
        for user in Set(before).subtracting(members) { release(user, room) }
    }

    func members(of asked: [Room.ID]) -> Set<User.ID> {
        asked.reduce(into: Set()) { $0.formUnion(rooms[$1]?.members ?? []) }
    }

    func online(in room: Room.ID) -> [User.ID] {
        (rooms[room]?.members ?? []).filter { users[$0]?.isOnline == true }
    }

    /// - Parameter quietly: whoever watches a member of whom nobody was told anything is about to be told.
    /// - Returns: what others are to be told.
    mutating func learn(_ user: User.ID, isOnline: Bool, quietly: Bool = false) -> Event? {
        guard let known = users[user], known.isOnline != isOnline else { return nil }
        users[user]?.isOnline = isOnline
        guard known.isOnline != nil || (isOnline && !quietly) else { return nil }
        var hubs = HubSet()
        for room in known.rooms { hubs.formUnion(rooms[room]?.hubs ?? HubSet()) }
        return Event(user: user, isOnline: isOnline, rooms: Array(known.rooms), hubs: hubs)
    }
}

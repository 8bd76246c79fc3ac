import Core

/// Who is online, who types, and how much is unread.
extension SimClient {
    // MARK: Watching

    func watch(_ room: Room.ID) {
        guard isWatcher, state == .ready, last[room] != nil, asking.insert(room).inserted else { return }
        say(#"{"type":"join","room":\#(room)}"#)
        if world.chance(30) { say(#"{"type":"typing","room":\#(room)}"#) }
    }

    /// A question was refused: that about a room, or that of the end.
    func askAgain(_ room: Room.ID?) {
        let number = connection
        world.after(UInt64(20 + world.below(100))) { [weak self] in
            guard let self, number == connection, state == .ready else { return }
            if let room, asking.remove(room) != nil { watch(room) }
            if room == nil, isCounting, counts == nil { count() }
        }
    }

    func joined(_ frame: SimFrame) {
        let room = Room.ID(frame.room ?? 0)
        // Twice for one who left the room and came back before the first answer.
        guard hasBeenMember(room), asking.contains(room) || watched.contains(room) else {
            return fail("joined room \(room), unasked")
        }
        asking.remove(room)
        let members = Set((database.rooms[room]?.former ?? [:]).keys)
        if let user = frame.online.first(where: { !members.contains($0) }) {
            fail("user \(user) is online in room \(room), where they never were")
        }
        // Of who is in another watched room it has been told everything: they may have entered this one since.
        let known = watched.subtracting([room]).compactMap { database.rooms[$0]?.former.keys }.joined()
        online.subtract(members.subtracting(known))
        online.formUnion(frame.online)
        watched.insert(room)
    }

    func presence(_ frame: SimFrame) {
        guard let id = frame.user, let isOnline = frame.isOnline else { return fail("a broken presence") }
        let user = User.ID(id)
        guard user != self.user else { return fail("was told of itself") }
        guard database.rooms.values.contains(where: { $0.former[user] != nil && hasBeenMember($0.id) }) else {
            return fail("was told of user \(user), a stranger")
        }
        if isOnline { online.insert(user) } else { online.remove(user) }
    }

    func typed(_ frame: SimFrame) {
        let (room, user) = (Room.ID(frame.room ?? 0), User.ID(frame.user ?? 0))
        guard hasBeenMember(room), user != self.user, database.rooms[room]?.former[user] != nil else {
            return fail("user \(user) types in room \(room)")
        }
    }

    /// Nil when it knows who is online, of those it watches. Of who left a room and came back it may know less.
    func unrestOfPresence(_ connected: Set<User.ID>) -> String? {
        guard isWatcher, state == .ready else { return nil }
        for (room, row) in database.rooms.sorted(by: { $0.key < $1.key }) where row.members[user] != nil {
            guard watched.contains(room) else { return "\(name) (user \(user)) does not watch room \(room)" }
            for other in row.members.keys.sorted() where other != user {
                guard !database.rooms.values.contains(where: { $0.wasLeft.contains(other) }) else { continue }
                let isSo = connected.contains(other)
                if online.contains(other) != isSo {
                    return
                        "\(name) (user \(user)): user \(other) is \(isSo ? "online" : "offline"), unknown to it"
                }
            }
        }
        return nil
    }

    // MARK: Unread

    /// Asks of all rooms there are.
    func count() {
        counts = nil
        let rooms = database.rooms.keys.sorted().map { "\($0)" }.joined(separator: ",")
        say(#"{"type":"unread","rooms":[\#(rooms)]}"#)
    }

    func counted(_ frame: SimFrame) {
        for (room, count) in frame.counts {
            guard hasBeenMember(room), let row = database.rooms[room] else {
                return fail("counts of room \(room), which is not theirs")
            }
            let most = row.messages.count { $0.kind == .text && $0.senderID != user }
            if count < 0 || count > most { fail("room \(room) has \(count) unread texts, of \(most)") }
        }
        counts = frame.counts
    }

    /// Nil when it counts as the table does. Only where nothing changes any more.
    func unrestOfCounts() -> String? {
        guard state == .ready else { return nil }
        guard let counts else { return "\(name) (user \(user)) has no counts" }
        var expected: [Room.ID: Int] = [:]
        for room in database.rooms.keys { expected[room] = database.unread(user, room) }
        return counts == expected ? nil : "\(name) (user \(user)) counts \(counts), not \(expected)"
    }
}

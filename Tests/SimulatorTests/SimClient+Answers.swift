import Core

@testable import ChatApp

/// What the client makes of answers, and of what it asked for.
extension SimClient {
    private func answered(_ frame: SimFrame) -> Send? {
        guard let id = frame.id else { return nil }
        guard !awaited.isEmpty, awaited[0].id == id, awaited[0].room.value == frame.room else {
            fail("an answer to \(id) while \(awaited.first?.id ?? "none") was the first to be answered")
            return nil
        }
        return awaited.removeFirst()
    }

    func acknowledged(_ frame: SimFrame) {
        guard let send = answered(frame) else { return fail("an answer to nothing") }
        guard let row = database.rooms[send.room], let seq = frame.seq, seq >= 1, seq <= row.messages.count else {
            return fail("\(send.id) was acknowledged and is not in the table")
        }
        let message = row.messages[Int(seq) - 1]
        guard message.clientID == send.id, message.senderID == user else {
            return fail("\(send.id) was acknowledged as message \(seq), which is another")
        }
        unanswered.removeAll { $0 === send }
    }

    func refused(_ frame: SimFrame) {
        guard frame.id != nil else {
            // A question about a room that they have just left, or the database was away.
            if !["forbidden", "unavailable"].contains(frame.code) { fail("refused with \(frame.code ?? "nothing")") }
            return askAgain(frame.room.map { Room.ID($0) })
        }
        guard let send = answered(frame) else { return }
        switch frame.code {
        case "unavailable":
            world.after(UInt64(20 + world.below(100))) { [weak self] in
                guard let self, state == .ready, unanswered.contains(where: { $0 === send }) else { return }
                guard send.connection != connection || !awaited.contains(where: { $0 === send }) else { return }
                offer(send)
            }
        case "forbidden":
            if !wasOut(of: send.room, since: send.firstAt ?? 0) { fail("\(send.id) was refused to a member") }
            unanswered.removeAll { $0 === send }
        case "not_found":
            if case .text = send.content { fail("\(send.id) has no target and was refused for it") }
            unanswered.removeAll { $0 === send }
        case "invalid":
            if !send.isPoison { fail("\(send.id) was refused as invalid") }
            unanswered.removeAll { $0 === send }
        default: fail("\(send.id) was refused with \(frame.code ?? "nothing")")
        }
    }

    /// Whether they were no member at some time since then, or had been one before: a refusal may be an old one.
    private func wasOut(of room: Room.ID, since time: UInt64) -> Bool {
        guard let row = database.rooms[room], row.members[user] != nil else { return true }
        return row.wasLeft.contains(user) || row.joined[user] ?? 0 >= time
    }

    func marked(_ frame: SimFrame) {
        guard let id = frame.room, let reader = frame.user, let seq = frame.seq else { return fail("a broken mark") }
        let room = Room.ID(id)
        guard last[room] != nil else { return fail("a mark of room \(room), which is not theirs") }
        // Who left and came back begins anew; an older mark may still be on its way.
        let row = database.rooms[room]
        let hasLeft = row?.wasLeft.contains(User.ID(reader)) ?? true
        if let read = row?.members[User.ID(reader)], seq > read, !hasLeft {
            fail("room \(room): user \(reader) has read \(seq), of which the table has \(read)")
        }
        marks[room, default: [:]][User.ID(reader)] = max(seq, marks[room]?[User.ID(reader)] ?? 0)
    }

    /// Texts as they are now, one after the other.
    func history(_ frame: SimFrame) {
        let room = Room.ID(frame.room ?? 0)
        guard hasBeenMember(room), let row = database.rooms[room] else {
            return fail("the history of room \(room), which is not theirs")
        }
        var former: Int64?
        for message in frame.messages {
            let seq = message.seq ?? 0
            guard seq > former ?? 0, seq <= row.messages.count else { return fail("history: message \(seq)") }
            let skipped = row.messages[Int(former ?? seq - 1)..<Int(seq) - 1]
            if skipped.contains(where: { $0.kind == .text }) { fail("history: a gap before message \(seq)") }
            let known = row.messages.filter { $0.seq == seq || $0.targetSeq == seq }.map { row.bodies[Int($0.seq) - 1] }
            if !known.contains(message.body ?? "") { fail("history: message \(seq) is not what the table has") }
            former = seq
        }
    }
}

// MARK: - In the end

extension SimClient {
    /// What this client does not have yet; nil when it has all that is for it, and nothing else.
    func unrest() -> String? {
        if isAway { return nil }
        if database.sessionsEnded.contains(session) {
            return isSignedOut ? nil : "\(name) (user \(user)) is not signed out: \(state)"
        }
        guard state == .ready else { return "\(name) (user \(user)) is not connected: \(state)" }
        guard unanswered.isEmpty else { return "\(name) (user \(user)) has no answer to \(unanswered[0].id)" }
        for (id, row) in database.rooms {
            guard row.members[user] != nil else {
                guard last[id] == nil else { return "\(name) (user \(user)) has not left room \(id)" }
                continue
            }
            guard let known = last[id] else { return "\(name) (user \(user)) is not in room \(id)" }
            guard known == row.lastSeq else {
                return "\(name) (user \(user)) has room \(id) up to \(known), not \(row.lastSeq)"
            }
            if let unrest = unrestOfMarks(id, row) { return "\(name) (user \(user)), room \(id): \(unrest)" }
        }
        return nil
    }

    /// Marks that moved while it was there have been told. Who left and came back begins anew, and may be told less.
    private func unrestOfMarks(_ room: Room.ID, _ row: SimDatabase.RoomRow) -> String? {
        for (reader, seq) in row.members.sorted(by: { $0.key < $1.key }) where !row.wasLeft.contains(reader) {
            guard let at = row.marked[reader], at > knownSince[room] ?? .max else { continue }
            let told = marks[room]?[reader] ?? 0
            guard told == seq else { return "user \(reader) has read \(seq), and it was told \(told)" }
        }
        return nil
    }
}

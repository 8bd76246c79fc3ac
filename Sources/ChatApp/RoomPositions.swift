import Core

/// Which fronts of the process: bit by place.
struct HubSet: Equatable {
    /// The fronts of a process that this can tell apart: two on each of 64 loops, and MARTLET_LOOPS goes no further.
    static let hubsMax = 128

    private(set) var bits: UInt128 = 0
    var isEmpty: Bool { bits == 0 }

    mutating func insert(_ hub: Int) { bits |= 1 << UInt128(hub) }
    mutating func remove(_ hub: Int) { bits &= ~(1 << UInt128(hub)) }
    func contains(_ hub: Int) -> Bool { bits & (1 << UInt128(hub)) != 0 }
    func intersects(_ other: HubSet) -> Bool { bits & other.bits != 0 }
    mutating func formUnion(_ other: HubSet) { bits |= other.bits }
}

/// How far each room that somebody here follows has been delivered, and which must be read. It decides what goes out,
/// in what order, once; it does no I/O.
struct RoomPositions {
    /// Messages to deliver, in order and without a gap behind what was delivered before.
    struct Delivery: Equatable {
        let room: Room.ID
        let messages: [Message]
        let hubs: HubSet
    }

    private struct Entry {
        // Before what is smaller, or there are 16 bytes of nothing in it.
        var hubs = HubSet()
        var position: Int64
        var marks: [User.ID: Int64] = [:]
    }

    private var rooms: [Room.ID: Entry] = [:]
    /// Rooms that may have messages beyond their position.
    private var due: [Room.ID] = []
    private var isDue: Set<Room.ID> = []

    var count: Int { rooms.count }
    var hasDue: Bool { !isDue.isEmpty }

    func hubs(of room: Room.ID) -> HubSet { rooms[room]?.hubs ?? HubSet() }

    /// A hub follows a room whose last seq it has just read.
    /// - Returns: the position from which it will be given everything.
    mutating func hold(_ room: Room.ID, lastSeq: Int64, hub: Int) -> Int64 {
        if rooms[room] == nil {
            rooms[room] = Entry(position: lastSeq)
            // What was committed between that read and now woke nobody for this room.
            markDue(room)
        }
        rooms[room]?.hubs.insert(hub)
        return rooms[room]?.position ?? lastSeq
    }

    mutating func release(_ room: Room.ID, hub: Int) {
        rooms[room]?.hubs.remove(hub)
        if rooms[room]?.hubs.isEmpty == true {
            rooms[room] = nil
            isDue.remove(room)
        }
    }

    /// This process has committed messages of a room, in order. What lies between is somebody else's: it is read first.
    mutating func published(_ room: Room.ID, _ messages: [Message]) -> Delivery? {
        guard let entry = rooms[room], let last = messages.last, last.seq > entry.position else { return nil }
        let delivery = advance(room, messages)
        if rooms[room]?.position ?? 0 < last.seq { markDue(room) }
        return delivery
    }

    /// The room may have messages, up to `lastSeq` if that is known.
    /// - Returns: false when nobody here follows it.
    mutating func changed(_ room: Room.ID, lastSeq: Int64?) -> Bool {
        guard let entry = rooms[room] else { return false }
        if lastSeq.map({ $0 > entry.position }) ?? true { markDue(room) }
        return true
    }

    mutating func allChanged() {
        for room in rooms.keys { markDue(room) }
    }

    /// The next rooms to read, and after which seq.
    mutating func takeDue(max: Int) -> [(room: Room.ID, seq: Int64)] {
        var taken: [(room: Room.ID, seq: Int64)] = []
        let asked = due.prefix(max)
        for room in asked {
            // It may have been released since, or be in the list twice.
            guard isDue.remove(room) != nil, let entry = rooms[room] else { continue }
            taken.append((room, entry.position))
        }
        due.removeFirst(asked.count)
        if due.isEmpty {
            // Ten thousand rooms may have been due at once, when their users came.
            due = []
            isDue = []
        }
        return taken
    }

    /// The read failed: it is still to be done.
    mutating func giveBack(_ cursors: [(room: Room.ID, seq: Int64)]) {
        for (room, _) in cursors where rooms[room] != nil { markDue(room) }
    }

    /// What a room had after a seq, in order.
    /// - Parameter isWhole: false when there may be more than was read.
    mutating func fetched(_ room: Room.ID, _ messages: [Message], isWhole: Bool) -> Delivery? {
        guard rooms[room] != nil else { return nil }
        if !isWhole { markDue(room) }
        return advance(room, messages)
    }

    /// Marks of a room's members; gives those that moved.
    mutating func marks(_ room: Room.ID, _ members: [Room.Member]) -> [ReadMark] {
        guard var entry = rooms[room] else { return [] }
        var moved: [ReadMark] = []
        for member in members where member.lastReadSeq > entry.marks[member.user] ?? 0 {
            entry.marks[member.user] = member.lastReadSeq
            moved.append(ReadMark(room: room, user: member.user, seq: member.lastReadSeq))
        }
        rooms[room] = entry
        return moved
    }

    private mutating func advance(_ room: Room.ID, _ messages: [Message]) -> Delivery? {
        guard let entry = rooms[room] else { return nil }
        var position = entry.position
        var fresh: [Message] = []
        for message in messages where message.seq == position + 1 {
            position = message.seq
            fresh.append(message)
        }
        guard !fresh.isEmpty else { return nil }
        rooms[room]?.position = position
        return Delivery(room: room, messages: fresh, hubs: entry.hubs)
    }

    private mutating func markDue(_ room: Room.ID) {
        if isDue.insert(room).inserted { due.append(room) }
    }
}

import Core
import Foundation

/// What a chat's PostgreSQL is to it: rows, row locks taken in order, commits in whatever order the locks allow,
/// snapshots and the transactions that they do not see yet, and wake-ups to those who listen.
final class SimDatabase {
    struct RoomRow {
        let id: Room.ID
        var lastSeq: Int64 = 0
        /// Members, and how far they have read.
        var members: [User.ID: Int64] = [:]
        /// What was committed, by seq from 1 on.
        var messages: [Message] = []
        /// The bodies as they were sent: a deletion empties those of the rows.
        var bodies: [String] = []
        /// When each membership began that is.
        var joined: [User.ID: UInt64] = [:]
        /// Who was a member at any time, and when that ended last; `.max` while they are.
        var former: [User.ID: UInt64] = [:]
        /// When each mark moved last.
        var marked: [User.ID: UInt64] = [:]
        /// Whose membership ended at any time.
        var wasLeft: Set<User.ID> = []
    }

    struct ClientKey: Hashable {
        let room: Room.ID
        let sender: User.ID
        let id: String
    }

    /// A transaction that writes messages, from its first lock to its commit.
    final class Transaction {
        let drafts: [Message.Draft]
        let hint: String?
        let done: ([Message.Outcome]) -> Void
        /// Rooms that are not locked yet, in order.
        var wanted: [Room.ID]
        var held: [Room.ID] = []
        var xid: UInt64?
        var isOver = false

        init(
            _ drafts: [Message.Draft], _ hint: String?, _ wanted: [Room.ID],
            _ done: @escaping ([Message.Outcome]) -> Void
        ) {
            self.drafts = drafts
            self.hint = hint
            self.wanted = wanted
            self.done = done
        }
    }

    let world: World
    private(set) var rooms: [Room.ID: RoomRow] = [:]
    private(set) var sessionsEnded: [Session.ID] = []
    private var byClient: [ClientKey: Int64] = [:]
    private var changes: [(xid: UInt64, ids: [Int64])] = []
    private var nextXID: UInt64 = 100
    private var running: Set<UInt64> = []
    private var owners: [Room.ID: Transaction] = [:]
    private var waiters: [Room.ID: [Transaction]] = [:]
    /// Told of each commit that says something to those who listen.
    var notify: (String) -> Void = { _ in }
    let milliseconds: Int
    let presence: SimPresenceTable

    init(_ world: World, milliseconds: Int) {
        self.world = world
        self.milliseconds = milliseconds
        presence = SimPresenceTable(world)
    }

    private func begin() -> UInt64 {
        nextXID += 1
        running.insert(nextXID - 1)
        return nextXID - 1
    }

    /// As time is in the database.
    var date: Date { Date(timeIntervalSince1970: Double(SimClock.start) + Double(world.now) / 1000) }

    // MARK: Sending

    /// Locks, numbers, commits; each step when the schedule says.
    func send(
        _ drafts: [Message.Draft], notify hint: String?, _ done: @escaping ([Message.Outcome]) -> Void
    ) -> Transaction {
        let wanted = Set(drafts.map(\.roomID)).filter { rooms[$0] != nil }.sorted()
        let transaction = Transaction(drafts, hint, wanted, done)
        lockNext(transaction)
        return transaction
    }

    private func lockNext(_ transaction: Transaction) {
        guard !transaction.isOver else { return }
        guard let room = transaction.wanted.first else {
            return world.after(world.delay(upTo: milliseconds)) { self.insert(transaction) }
        }
        if let owner = owners[room], owner !== transaction {
            waiters[room, default: []].append(transaction)
            return
        }
        owners[room] = transaction
        transaction.wanted.removeFirst()
        transaction.held.append(room)
        if transaction.xid == nil { transaction.xid = begin() }
        lockNext(transaction)
    }

    /// A snapshot of its own, taken when the locks are held.
    private func insert(_ transaction: Transaction) {
        guard !transaction.isOver else { return }
        var lastSeqs: [Room.ID: Int64] = [:]
        var fresh: [Message] = []
        var known: [ClientKey: Int64] = [:]
        // Texts that the batch deletes: rooms have few messages, and a number too many does no harm.
        var gone: Set<Int64> = []
        let outcomes = transaction.drafts.map { draft -> Message.Outcome in
            guard let row = rooms[draft.roomID], row.members[draft.senderID] != nil else { return .forbidden }
            let key = ClientKey(room: draft.roomID, sender: draft.senderID, id: draft.clientID)
            if let seq = byClient[key] ?? known[key] { return .duplicate(seq: seq) }
            if let target = draft.targetSeq {
                guard isText(target, of: draft.senderID, in: row), !gone.contains(target) else {
                    return .refused(.target)
                }
                if draft.kind == .delete { gone.insert(target) }
            }
            let seq = (lastSeqs[draft.roomID] ?? row.lastSeq) + 1
            lastSeqs[draft.roomID] = seq
            known[key] = seq
            let at = date
            fresh.append(
                Message(
                    roomID: draft.roomID, seq: seq, senderID: draft.senderID, clientID: draft.clientID,
                    kind: draft.kind, targetSeq: draft.targetSeq, body: draft.body, createdAt: at))
            return .sent(seq: seq, createdAt: at)
        }
        world.after(world.delay(upTo: milliseconds)) { self.commit(transaction, fresh, outcomes) }
    }

    private func commit(_ transaction: Transaction, _ fresh: [Message], _ outcomes: [Message.Outcome]) {
        guard !transaction.isOver else { return }
        for message in fresh { append(message) }
        if !fresh.isEmpty, let xid = transaction.xid {
            changes.append((xid, Array(Set(fresh.map(\.roomID.value))).sorted()))
        }
        world.note(
            "commit", Int64(fresh.count), Int64(transaction.xid ?? 0),
            fresh.map { "\($0.roomID)#\($0.seq)" }.joined(separator: " "))
        end(transaction)
        if !fresh.isEmpty, let hint = transaction.hint { notify(hint) }
        transaction.done(outcomes)
    }

    private func isText(_ seq: Int64, of sender: User.ID, in row: RoomRow) -> Bool {
        guard seq >= 1, seq <= row.messages.count else { return false }
        let message = row.messages[Int(seq) - 1]
        return message.kind == .text && message.senderID == sender && !message.body.isEmpty
    }

    private func append(_ message: Message) {
        if message.kind == .delete, let target = message.targetSeq { empty(message.roomID, target) }
        rooms[message.roomID]?.messages.append(message)
        rooms[message.roomID]?.bodies.append(message.body)
        rooms[message.roomID]?.lastSeq = message.seq
        if let id = message.clientID {
            byClient[ClientKey(room: message.roomID, sender: message.senderID, id: id)] = message.seq
        }
    }

    /// Of a text that is deleted nothing stays, in its edits neither.
    private func empty(_ room: Room.ID, _ target: Int64) {
        for (index, message) in (rooms[room]?.messages ?? []).enumerated()
        where message.seq == target || message.targetSeq == target {
            rooms[room]?.messages[index] = Message(
                roomID: room, seq: message.seq, senderID: message.senderID, clientID: message.clientID,
                kind: message.kind, targetSeq: message.targetSeq, body: "", createdAt: message.createdAt)
        }
    }

    /// The backend is gone, and nothing of the transaction remains.
    func abort(_ transaction: Transaction) {
        guard !transaction.isOver else { return }
        world.note("abort", Int64(transaction.xid ?? 0))
        end(transaction)
    }

    private func end(_ transaction: Transaction) {
        transaction.isOver = true
        if let xid = transaction.xid { running.remove(xid) }
        for room in transaction.held {
            owners[room] = nil
            var next = waiters[room] ?? []
            while let first = next.first, first.isOver { next.removeFirst() }
            let waiter = next.isEmpty ? nil : next.removeFirst()
            waiters[room] = next
            if let waiter { lockNext(waiter) }
        }
    }

    /// Lets go of what is under way.
    func close() {
        notify = { _ in }
        owners = [:]
        waiters = [:]
    }

    // MARK: Other writes

    /// A transaction that takes no lock that sends wait for.
    private func write(_ ids: [Int64], hint: String?, _ apply: @escaping () -> Bool) {
        let xid = begin()
        world.after(world.delay(upTo: milliseconds)) {
            self.running.remove(xid)
            guard apply() else { return }
            self.changes.append((xid, ids))
            if let hint { self.notify(hint) }
        }
    }

    /// Marks move forward only, and not beyond the last message.
    func mark(_ marks: [ReadMark], notify hint: String?, _ done: @escaping ([Int64?]) -> Void) {
        write(Set(marks.map { -$0.room.value }).sorted(), hint: hint) {
            var moved = false
            for mark in marks {
                guard let row = self.rooms[mark.room], let read = row.members[mark.user] else { continue }
                let seq = min(mark.seq, row.lastSeq)
                guard seq > read else { continue }
                moved = true
                self.rooms[mark.room]?.members[mark.user] = seq
                self.rooms[mark.room]?.marked[mark.user] = self.world.now
                self.world.note("mark", mark.room.value, seq)
            }
            done(marks.map { self.rooms[$0.room]?.members[$0.user] })
            return moved
        }
    }

    /// What other services write: a membership begins or ends.
    func setMember(_ user: User.ID, of room: Room.ID, _ isMember: Bool) {
        write([-room.value], hint: "") {
            guard let row = self.rooms[room], (row.members[user] != nil) != isMember else { return false }
            self.world.note(isMember ? "enter" : "leave", user.value, room.value)
            self.rooms[room]?.members[user] = isMember ? 0 : nil
            self.rooms[room]?.former[user] = isMember ? .max : self.world.now
            if !isMember { self.rooms[room]?.wasLeft.insert(user) }
            self.rooms[room]?.joined[user] = self.world.now
            return true
        }
    }

    /// A room with its first message, as an accepted application makes it.
    func makeRoom(_ id: Room.ID, members: [User.ID], firstMessage: Bool) {
        write([id.value], hint: "") {
            self.world.note("room", id.value, Int64(members.count))
            var row = RoomRow(id: id)
            for member in members {
                row.members[member] = 0
                row.former[member] = .max
                row.joined[member] = self.world.now
            }
            self.rooms[id] = row
            if firstMessage {
                self.append(
                    Message(
                        roomID: id, seq: 1, senderID: Message.system, clientID: nil, kind: .system, targetSeq: nil,
                        body: Message.acceptedBody, createdAt: self.date))
            }
            return true
        }
    }

    /// A room as it was before the simulation.
    func seed(_ id: Room.ID, members: [User.ID], messages: Int) {
        var row = RoomRow(id: id, lastSeq: Int64(messages))
        for member in members {
            row.members[member] = 0
            row.former[member] = .max
        }
        row.messages = (0..<messages).map { index in
            Message(
                roomID: id, seq: Int64(index) + 1, senderID: members[0], clientID: "old\(index)", kind: .text,
                targetSeq: nil, body: "old \(index)", createdAt: SimClock.startDate)
        }
        row.bodies = row.messages.map(\.body)
        rooms[id] = row
    }

    func endSession(_ session: Session.ID) {
        world.note("session ends", session.value)
        sessionsEnded.append(session)
    }

    // MARK: Reading, each with a snapshot

    func changes(since bound: UInt64) -> RoomChanges {
        var changed: [Room.ID: Int64] = [:]
        var memberships: Set<Room.ID> = []
        for (xid, ids) in changes where xid >= bound {
            for id in ids {
                if id < 0 { memberships.insert(Room.ID(-id)) }
                if id > 0, let row = rooms[Room.ID(id)] { changed[row.id] = row.lastSeq }
            }
        }
        return RoomChanges(rooms: changed, memberships: memberships.sorted(), bound: running.min() ?? nextXID)
    }

    /// Nobody who reads needs what was written before this bound any more.
    func prune(before bound: UInt64) { changes.removeAll { $0.xid < bound } }

    func rooms(of user: User.ID, limit: Int) -> [Room] {
        let own = rooms.values.filter { $0.members[user] != nil }.sorted { $0.id > $1.id }
        return own.prefix(limit).map { row in
            Room(
                id: row.id, wireName: "rep_\(row.id)_jane", lastSeq: row.lastSeq,
                lastReadSeq: row.members[user] ?? 0, createdAt: SimClock.startDate)
        }
    }

    func messages(after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) -> [Message] {
        cursors.sorted { $0.room < $1.room }.flatMap { room, seq -> ArraySlice<Message> in
            guard let row = rooms[room], seq < row.lastSeq else { return [] }
            var bytes = 0
            var end = Int(seq)
            while end < row.messages.count, end - Int(seq) < limitPerRoom, bytes < Message.pageBytesMax {
                bytes += row.messages[end].body.utf8.count
                end += 1
            }
            return row.messages[Int(seq)..<end]
        }
    }

    /// Nil when the viewer is no member.
    func history(_ room: Room.ID, from start: HistoryPage.Start, limit: Int, viewer: User.ID) -> HistoryPage? {
        guard let row = rooms[room], row.members[viewer] != nil else { return nil }
        let texts = row.messages.filter { $0.kind == .text || $0.kind == .system }
        let (asked, isForward): ([Message], Bool) =
            switch start {
            case .newest: (texts, false)
            case .before(let seq): (texts.filter { $0.seq < seq }, false)
            case .after(let seq): (texts.filter { $0.seq > seq }, true)
            }
        let page = isForward ? asked.prefix(limit) : asked.suffix(limit)
        let folded = page.map { message -> FoldedMessage in
            let edits = row.messages.filter { $0.kind == .edit && $0.targetSeq == message.seq }
            let isDeleted = message.kind == .text && message.body.isEmpty
            let body = isDeleted ? "" : edits.last?.body ?? message.body
            return FoldedMessage(
                message: Message(
                    roomID: room, seq: message.seq, senderID: message.senderID, clientID: message.clientID,
                    kind: message.kind, targetSeq: nil, body: body, createdAt: message.createdAt),
                editedAt: isDeleted ? nil : edits.last?.createdAt, isDeleted: isDeleted)
        }
        return HistoryPage(messages: folded, hasMore: page.count < asked.count)
    }

    func unread(_ user: User.ID, _ room: Room.ID) -> Int? {
        guard let row = rooms[room], let mark = row.members[user] else { return nil }
        return row.messages.filter { $0.seq > mark && $0.kind == .text && $0.senderID != user && !$0.body.isEmpty }
            .count
    }

    func members(of room: Room.ID) -> [Room.Member] {
        (rooms[room]?.members ?? [:]).sorted { $0.key < $1.key }.map {
            Room.Member(user: $0.key, lastReadSeq: $0.value)
        }
    }
}

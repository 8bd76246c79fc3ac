import Foundation

public protocol RoomRepository: Sendable {
    /// The user's rooms, most recently created first.
    func rooms(of user: User.ID, limit: Int) async throws -> [Room]
    /// The rooms of many users at once, for those who connect together. Users without rooms are missing.
    func rooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [Room]]
    /// The rooms of many users at once, the most recently active first; those without a wire name are left out. A user
    /// without rooms has an empty list; one who is blocked or gone is missing.
    /// - Parameter limitPerUser: the newest rooms are taken.
    func activeRooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [ActiveRoom]]
    /// The newest texts and system messages of rooms as they are now, at most `limitPerRoom` of each, deleted ones
    /// counted, and no more once their bodies have `bytesPerRoom`. Rooms that do not exist are missing.
    func lastMessages(
        of rooms: [Room.ID], limitPerRoom: Int, bytesPerRoom: Int
    ) async throws -> [Room.ID: LastMessages]
    /// Members of many rooms at once, for delivery.
    func members(of rooms: [Room.ID]) async throws -> [Room.ID: [Room.Member]]
    /// One transaction for all of them: rooms locked in id order, numbered without gaps, one `room_changes` row and at
    /// most one NOTIFY at the end, none when nothing new was sent. Outcomes in the order of the drafts. A deletion
    /// leaves nothing of the text and its edits, and makes the addresses of its file worthless. What an edit or a
    /// deletion is about is there before the batch: a number of the same batch is nobody's to know yet.
    /// - Parameter notify: the hint for other instances; nil: no NOTIFY.
    func send(_ drafts: [Message.Draft], notify: String?) async throws -> [Message.Outcome]
    /// Messages after a seq, oldest first, at most `limitPerRoom` a room and no more once their bodies have
    /// `Message.pageBytesMax`, in (room, seq) order.
    func messages(after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) async throws -> [Message]
    /// A page of the room's texts and system messages as they are now: at most `limit`, and no more once their bodies
    /// have `Message.pageBytesMax`.
    /// - Throws: `notFound` when the viewer is no member.
    func history(room: Room.ID, from start: HistoryPage.Start, limit: Int, viewer: User.ID) async throws -> HistoryPage
    /// How many texts of others, not deleted, each room has after the user's mark: counted to `unreadMax`, and among
    /// the first `unreadRowsMax` messages after the mark. Rooms that are not the user's are missing.
    func unread(of user: User.ID, in rooms: [Room.ID]) async throws -> [Room.ID: Int]
    /// Moves read marks forward, never back and not beyond the last message, all as one change.
    /// - Returns: for each, where the mark stands now; nil for who is no member.
    func markRead(_ marks: [ReadMark], notify: String?) async throws -> [Int64?]
    /// What changed since a bound of transactions, and the next bound. `UInt64.max` asks for the bound alone.
    func changes(since bound: UInt64) async throws -> RoomChanges
    /// Wakes the other instances with a hint and nothing in the database. For what may be lost.
    func announce(_ hint: String) async throws
}

extension Room {
    /// Nobody reads a higher number than this on a counter.
    public static let unreadMax = 100
    /// Messages of one room that a count looks at: one's own and edits are among them.
    public static let unreadRowsMax = 2_000

    public struct Member: Sendable, Equatable {
        public let user: User.ID
        public let lastReadSeq: Int64

        public init(user: User.ID, lastReadSeq: Int64) {
            self.user = user
            self.lastReadSeq = lastReadSeq
        }
    }
}

/// A member has read up to a message.
public struct ReadMark: Sendable, Equatable {
    public let room: Room.ID
    public let user: User.ID
    public let seq: Int64

    public init(room: Room.ID, user: User.ID, seq: Int64) {
        self.room = room
        self.user = user
        self.seq = seq
    }
}

/// What became known of rooms since a bound. Rows may come again; none is passed over.
public struct RoomChanges: Sendable, Equatable {
    /// Rooms with new messages, new rooms among them, and the last seq of each.
    public let rooms: [Room.ID: Int64]
    /// Rooms whose members or read marks changed: in `room_changes` as negative ids.
    public let memberships: [Room.ID]
    /// False when more changed than one read tells: any room may have.
    public let isWhole: Bool
    /// Pass to the next read.
    public let bound: UInt64

    public init(rooms: [Room.ID: Int64], memberships: [Room.ID], isWhole: Bool = true, bound: UInt64) {
        self.rooms = rooms
        self.memberships = memberships
        self.isWhole = isWhole
        self.bound = bound
    }
}

/// Where the chat processes are. `PresenceRepository` writes their rows.
public protocol ChatInstanceRepository: Sendable {
    /// Names and addresses, the last started first; a killed process leaves its own behind for some seconds. An address
    /// is empty when others cannot reach the process. Bounded.
    func all() async throws -> [(name: String, internalAddress: String)]
}

import Foundation

public protocol RoomRepository: Sendable {
    /// The user's rooms, most recently created first.
    func rooms(of user: User.ID, limit: Int) async throws -> [Room]
    /// The ids of all rooms of the user, for joining at `hello`.
    func roomIDs(of user: User.ID) async throws -> [Room.ID]
    func isMember(_ user: User.ID, of room: Room.ID) async throws -> Bool
    func members(of room: Room.ID) async throws -> [(user: User.ID, lastReadSeq: Int64)]
    /// Members of many rooms at once, for delivery.
    func members(of rooms: [Room.ID]) async throws -> [Room.ID: [User.ID]]
    /// One transaction for all of them: rooms locked in id order, numbered without gaps, one `room_changes` row and at
    /// most one NOTIFY at the end. Outcomes in the order of the drafts.
    func send(_ drafts: [Message.Draft], notify: String?) async throws -> [Message.Outcome]
    /// Messages after a seq, oldest first, at most `limit` a room, in (room, seq) order.
    func messages(after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) async throws -> [Message]
    /// Older history: messages before a seq (nil: the newest), oldest first.
    /// - Throws: `notFound` when the viewer is no member.
    func history(room: Room.ID, before seq: Int64?, limit: Int, viewer: User.ID) async throws -> [Message]
    /// Moves the read mark forward, never back. False when not a member.
    func markRead(room: Room.ID, user: User.ID, seq: Int64) async throws -> Bool
    /// The rooms that changed since a bound of transactions, and the next bound.
    func changes(since bound: UInt64) async throws -> (rooms: [Room.ID], bound: UInt64)
    func pruneChanges(olderThan seconds: Int) async throws
}

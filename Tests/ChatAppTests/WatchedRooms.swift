import Core
import Synchronization

/// The rooms of a test's database, which can be away, and count what they are asked.
final class WatchedRooms: RoomRepository {
    enum Question: Hashable { case lists, texts, changes, other }

    private struct State {
        var rooms: (any RoomRepository)?
        var isAway = false
        var refused: Question?
        var asked: [Question: Int] = [:]
        var batches: [Batch] = []
    }

    /// A send that the test answers.
    struct Batch {
        let drafts: [Message.Draft]
        let answer: CheckedContinuation<[Message.Outcome], any Error>
    }

    private let state = Mutex(State())

    /// For `Instance`. One of these watches one instance.
    func watch(_ rooms: any RoomRepository) -> any RoomRepository {
        state.withLock { $0.rooms = rooms }
        return self
    }

    var isAway: Bool {
        get { state.withLock { $0.isAway } }
        set { state.withLock { $0.isAway = newValue } }
    }

    /// A question that is not answered.
    var refused: Question? {
        get { state.withLock { $0.refused } }
        set { state.withLock { $0.refused = newValue } }
    }

    func asked(_ question: Question) -> Int { state.withLock { $0.asked[question] ?? 0 } }

    /// What has been sent while there is no database, and was not taken before.
    func takeBatches() -> [Batch] {
        state.withLock { state in
            defer { state.batches = [] }
            return state.batches
        }
    }

    private func rooms(_ question: Question = .other) throws -> any RoomRepository {
        try state.withLock { state in
            state.asked[question, default: 0] += 1
            guard let rooms = state.rooms, !state.isAway, state.refused != question else { throw AppError.unavailable }
            return rooms
        }
    }

    func rooms(of user: User.ID, limit: Int) async throws -> [Room] {
        try await rooms().rooms(of: user, limit: limit)
    }
    func rooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [Room]] {
        try await rooms().rooms(of: users, limitPerUser: limitPerUser)
    }
    func activeRooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [ActiveRoom]] {
        try await rooms(.lists).activeRooms(of: users, limitPerUser: limitPerUser)
    }
    func lastMessages(
        of list: [Room.ID], limitPerRoom: Int, bytesPerRoom: Int
    ) async throws -> [Room.ID: LastMessages] {
        try await rooms(.texts).lastMessages(of: list, limitPerRoom: limitPerRoom, bytesPerRoom: bytesPerRoom)
    }
    func members(of list: [Room.ID]) async throws -> [Room.ID: [Room.Member]] {
        try await rooms().members(of: list)
    }
    func send(_ drafts: [Message.Draft], notify: String?) async throws -> [Message.Outcome] {
        if state.withLock({ $0.rooms == nil && !$0.isAway }) {
            return try await withCheckedThrowingContinuation { answer in
                state.withLock { $0.batches.append(Batch(drafts: drafts, answer: answer)) }
            }
        }
        return try await rooms().send(drafts, notify: notify)
    }
    func messages(after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) async throws -> [Message] {
        try await rooms().messages(after: cursors, limitPerRoom: limitPerRoom)
    }
    func history(
        room: Room.ID, from start: HistoryPage.Start, limit: Int, viewer: User.ID
    ) async throws -> HistoryPage {
        try await rooms().history(room: room, from: start, limit: limit, viewer: viewer)
    }
    func unread(of user: User.ID, in list: [Room.ID]) async throws -> [Room.ID: Int] {
        try await rooms().unread(of: user, in: list)
    }
    func markRead(_ marks: [ReadMark], notify: String?) async throws -> [Int64?] {
        try await rooms().markRead(marks, notify: notify)
    }
    func changes(since bound: UInt64) async throws -> RoomChanges { try await rooms(.changes).changes(since: bound) }
    func announce(_ hint: String) async throws { try await rooms().announce(hint) }
}

import Core
import Foundation

/// What is asked, where a schedule is written by hand.
enum SimQuestion {
    case lists, start, other
}

/// The connections of one instance to the database. Everything that is asked takes its time, may fail on the way
/// there or back, and is answered on the world's thread.
final class SimLink {
    let world: World
    let database: SimDatabase
    let plan: Plan
    /// The process is gone: what it asks is answered by nobody.
    private(set) var isDead = false
    /// Until then nothing is answered but errors.
    var isOutUntil: UInt64 = 0
    /// What the instance was told to read changes from: nothing older is needed.
    var bound: UInt64 = .max
    /// Questions that fail, and those whose answers are kept back until `letGo()`.
    var failing: Set<SimQuestion> = []
    var holding: Set<SimQuestion> = []
    private var kept: [() -> Void] = []
    /// The answer with a list of rooms is on its way, and takes long.
    var listIsLate: () -> Void = {}
    private var waiting: [Int: (any Error) -> Void] = [:]
    private var asked = 0
    private var writing: [SimDatabase.Transaction] = []

    init(_ world: World, _ database: SimDatabase, _ plan: Plan) {
        self.world = world
        self.database = database
        self.plan = plan
    }

    /// - Parameter act: at the database; it calls what it is given when there is an answer.
    func ask<T: Sendable>(
        _ question: SimQuestion = .other, _ act: @escaping (_ answer: @escaping (Result<T, any Error>) -> Void) -> Void
    ) async throws -> T {
        try await withUnsafeThrowingContinuation { continuation in
            begin(
                question, act, fail: { continuation.resume(throwing: $0) }, give: { continuation.resume(returning: $0) }
            )
        }
    }

    /// What was answered meanwhile arrives.
    func letGo() {
        holding = []
        let kept = kept
        self.kept = []
        for answer in kept { answer() }
    }

    private func begin<T>(
        _ question: SimQuestion, _ act: @escaping (_ answer: @escaping (Result<T, any Error>) -> Void) -> Void,
        fail: @escaping (any Error) -> Void, give: @escaping (T) -> Void
    ) {
        guard !isDead else { return fail(AppError.unavailable) }
        asked += 1
        let number = asked
        waiting[number] = fail
        let arrive = { (result: Result<T, any Error>) in
            let lost = self.world.fault(self.plan.lostAnswers)
            let isLate = question == .lists && self.world.fault(self.plan.lateLists)
            if isLate { self.listIsLate() }
            let slowest = self.database.milliseconds
            self.world.after(isLate ? UInt64(100 + self.world.below(300)) : self.world.delay(upTo: slowest)) {
                guard !self.isDead, self.waiting.removeValue(forKey: number) != nil else { return }
                switch result {
                case .success(let value) where !lost: give(value)
                case .success: fail(AppError.unavailable)
                case .failure(let error): fail(error)
                }
            }
        }
        let answer = { (result: Result<T, any Error>) in
            guard self.holding.contains(question) else { return arrive(result) }
            self.kept.append { arrive(result) }
        }
        world.after(world.delay(upTo: database.milliseconds)) {
            guard !self.isDead else { return }
            if self.world.now < self.isOutUntil || self.failing.contains(question)
                || self.world.fault(self.plan.lostRequests)
            {
                return answer(.failure(AppError.unavailable))
            }
            // The connection may break while the backend goes on: the answer comes before the end.
            if self.world.fault(self.plan.lostAnswers / 2) { answer(.failure(AppError.unavailable)) }
            act(answer)
        }
    }

    func write(
        _ drafts: [Message.Draft], notify: String?, _ answer: @escaping (Result<[Message.Outcome], any Error>) -> Void
    ) {
        guard !drafts.contains(where: { $0.body == SimClient.poison }) else {
            return answer(.failure(AppError(.invalid, "refused by the database")))
        }
        writing.removeAll { $0.isOver }
        writing.append(database.send(drafts, notify: notify) { answer(.success($0)) })
    }

    /// SIGKILL: what the database has begun for this process may still be committed, or not.
    func kill() {
        isDead = true
        for transaction in writing where world.chance(50) { database.abort(transaction) }
    }

    /// Everything that still waits is told, so that nothing is left of the process.
    func bury() {
        isDead = true
        // Each knows the link that it answers.
        writing = []
        let left = waiting.sorted { $0.key < $1.key }
        waiting = [:]
        kept = []
        listIsLate = {}
        for (_, fail) in left { fail(AppError.unavailable) }
    }
}

/// What the chat asks of the database (the real one is PostgresRooms).
struct SimRooms: RoomRepository {
    nonisolated(unsafe) let link: SimLink

    private func read<T: Sendable>(
        _ question: SimQuestion = .other, _ body: @escaping (SimDatabase) throws -> T
    ) async throws -> T {
        nonisolated(unsafe) let (database, body) = (link.database, body)
        return try await link.ask(question) { answer in answer(Result { try body(database) }) }
    }

    func rooms(of user: User.ID, limit: Int) async throws -> [Room] {
        try await read { $0.rooms(of: user, limit: limit) }
    }

    func rooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [Room]] {
        try await read(.lists) { database in
            var lists: [User.ID: [Room]] = [:]
            for user in users {
                let list = database.rooms(of: user, limit: limitPerUser)
                if !list.isEmpty { lists[user] = list }
            }
            return lists
        }
    }

    func activeRooms(of users: [User.ID], limitPerUser: Int) async throws -> [User.ID: [ActiveRoom]] { [:] }

    func lastMessages(
        of rooms: [Room.ID], limitPerRoom: Int, bytesPerRoom: Int
    ) async throws -> [Room.ID: LastMessages] { [:] }

    func members(of rooms: [Room.ID]) async throws -> [Room.ID: [Room.Member]] {
        try await read { database in
            var found: [Room.ID: [Room.Member]] = [:]
            for room in rooms where database.rooms[room] != nil { found[room] = database.members(of: room) }
            return found
        }
    }

    func send(_ drafts: [Message.Draft], notify: String?) async throws -> [Message.Outcome] {
        nonisolated(unsafe) let link = link
        return try await link.ask { answer in link.write(drafts, notify: notify, answer) }
    }

    func messages(after cursors: [(room: Room.ID, seq: Int64)], limitPerRoom: Int) async throws -> [Message] {
        try await read { $0.messages(after: cursors, limitPerRoom: limitPerRoom) }
    }

    func history(
        room: Room.ID, from start: HistoryPage.Start, limit: Int, viewer: User.ID
    ) async throws -> HistoryPage {
        try await read { database in
            guard let found = database.history(room, from: start, limit: limit, viewer: viewer) else {
                throw AppError.notFound
            }
            return found
        }
    }

    func unread(of user: User.ID, in rooms: [Room.ID]) async throws -> [Room.ID: Int] {
        try await read { database in
            var counts: [Room.ID: Int] = [:]
            for room in rooms { counts[room] = database.unread(user, room) }
            return counts
        }
    }

    func markRead(_ marks: [ReadMark], notify: String?) async throws -> [Int64?] {
        nonisolated(unsafe) let database = link.database
        return try await link.ask { answer in database.mark(marks, notify: notify) { answer(.success($0)) } }
    }

    func changes(since bound: UInt64) async throws -> RoomChanges {
        if bound != .max { link.bound = bound }
        return try await read { $0.changes(since: bound) }
    }

    func announce(_ hint: String) async throws {
        nonisolated(unsafe) let database = link.database
        try await read { _ in database.notify(hint) }
    }
}

/// Of the sessions the chat only asks which have ended.
struct SimSessions: SessionRepository {
    nonisolated(unsafe) let link: SimLink

    func revocations(since bound: UInt64) async throws -> Revocations {
        nonisolated(unsafe) let database = link.database
        return try await link.ask { answer in
            answer(
                .success(
                    Revocations(
                        sessions: database.sessionsEnded.map { ($0, .distantFuture) }, bound: 0)))
        }
    }

    func start(
        _ kind: Core.Session.Kind, user: User.ID, passwordHash: String?, refreshHash: [UInt8]?, expiresAt: Date
    ) async throws -> Core.Session { throw AppError.unavailable }

    func rotate(refreshHash: [UInt8], newRefreshHash: [UInt8], now: Date) async throws -> Core.Session {
        throw AppError.unavailable
    }

    func end(_ id: Core.Session.ID, user: User.ID) async throws {}
    func endAll(user: User.ID) async throws {}
    func prune(limit: Int) async throws -> Int { 0 }
}

/// When simulations begin.
enum SimClock {
    static let start: Int64 = 1_900_000_000
    static let startDate = Date(timeIntervalSince1970: Double(start))
}

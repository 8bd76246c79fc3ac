import Core

/// The rows of `chat_instances` and `chat_presence`, and the advisory locks of listening connections.
final class SimPresenceTable {
    struct Row {
        let process: ChatProcess
        var users: Set<User.ID> = []
        var leaseEnds: UInt64
    }

    let world: World
    private(set) var rows: [Row] = []
    /// Runs whose listening connection is there.
    var locked: Set<Int32> = []
    private var changes: [(xid: UInt64, user: User.ID)] = []
    private var nextXID: UInt64 = 1

    init(_ world: World) { self.world = world }

    private func change(_ users: some Sequence<User.ID>) {
        nextXID += 1
        for user in Set(users).sorted() { changes.append((nextXID, user)) }
    }

    func start(_ process: ChatProcess, lease seconds: Int, takesName: Bool) -> Bool {
        if let own = rows.first(where: { $0.process.name == process.name }), own.process.run != process.run {
            guard takesName else { return false }
        }
        world.note("presence starts", Int64(process.run), Int64(seconds), process.name)
        change(rows.filter { $0.process.name == process.name }.flatMap(\.users))
        rows.removeAll { $0.process.name == process.name }
        rows.append(Row(process: process, leaseEnds: world.now + UInt64(seconds) * 1_000))
        return true
    }

    func stop(_ run: Int32) {
        world.note("presence stops", Int64(run))
        change(rows.filter { $0.process.run == run }.flatMap(\.users))
        rows.removeAll { $0.process.run == run }
    }

    func write(_ run: Int32, online: [User.ID], offline: [User.ID], lease seconds: Int) -> Bool {
        guard let index = rows.firstIndex(where: { $0.process.run == run }) else { return false }
        world.note("presence", Int64(run), Int64(seconds), "online \(online), offline \(offline)")
        rows[index].users.formUnion(online)
        rows[index].users.subtract(offline)
        rows[index].leaseEnds = world.now + UInt64(seconds) * 1_000
        change(online + offline)
        return true
    }

    func look() -> [ChatProcessState] {
        rows.reversed().map { row in
            ChatProcessState(
                name: row.process.name, run: row.process.run, isLocked: locked.contains(row.process.run),
                leaseSeconds: (Double(row.leaseEnds) - Double(world.now)) / 1_000)
        }
    }

    func bury(_ runs: [Int32]) -> Int {
        let dead = look().filter { runs.contains($0.run) && !$0.isAlive }
        for process in dead { stop(process.run) }
        return dead.count
    }

    func online(among users: [User.ID]) -> Set<User.ID> {
        Set(users.filter { user in rows.contains { $0.users.contains(user) } })
    }

    func changes(since bound: UInt64) -> PresenceChanges {
        PresenceChanges(
            users: Set(changes.filter { $0.xid >= bound }.map(\.user)).sorted(), isWhole: true, bound: nextXID)
    }
}

/// What the chat asks about who is there (the real one is PostgresPresence).
struct SimPresence: PresenceRepository {
    nonisolated(unsafe) let link: SimLink

    private func act<T: Sendable>(
        _ question: SimQuestion = .other, notify hint: String? = nil, _ body: @escaping (SimPresenceTable) -> T
    ) async throws -> T {
        nonisolated(unsafe) let (database, body) = (link.database, body)
        return try await link.ask(question) { answer in
            let result = body(database.presence)
            if let hint { database.notify(hint) }
            answer(.success(result))
        }
    }

    func start(_ process: ChatProcess, lease seconds: Int, takesName: Bool, notify: String?) async throws -> Bool {
        try await act(.start, notify: notify) { $0.start(process, lease: seconds, takesName: takesName) }
    }

    func stop(_ process: ChatProcess, notify: String?) async throws {
        try await act(notify: notify) { $0.stop(process.run) }
    }

    func write(
        _ process: ChatProcess, online: [User.ID], offline: [User.ID], lease seconds: Int, notify: String?
    ) async throws -> Bool {
        try await act(notify: notify) { $0.write(process.run, online: online, offline: offline, lease: seconds) }
    }

    func renew(_ process: ChatProcess, lease seconds: Int) async throws {
        _ = try await act { $0.write(process.run, online: [], offline: [], lease: seconds) }
    }

    func look() async throws -> [ChatProcessState] { try await act { $0.look() } }

    func bury(_ runs: [Int32], notify: String?) async throws -> Int {
        try await act(notify: notify) { $0.bury(runs) }
    }

    func online(among users: [User.ID]) async throws -> Set<User.ID> { try await act { $0.online(among: users) } }

    func changes(since bound: UInt64) async throws -> PresenceChanges { try await act { $0.changes(since: bound) } }
}

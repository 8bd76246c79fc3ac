import Core
import Synchronization

/// The presence of a test's database, which can be away.
final class WatchedPresence: PresenceRepository {
    private struct State {
        var presence: (any PresenceRepository)?
        var isAway = false
        var refused = 0
    }

    private let state = Mutex(State())

    /// For `Instance`. One of these watches one instance.
    func watch(_ presence: any PresenceRepository) -> any PresenceRepository {
        state.withLock { $0.presence = presence }
        return self
    }

    var isAway: Bool {
        get { state.withLock { $0.isAway } }
        set { state.withLock { $0.isAway = newValue } }
    }

    /// Questions that came while it was away.
    var refused: Int { state.withLock { $0.refused } }

    private func presence() throws -> any PresenceRepository {
        try state.withLock { state in
            if state.isAway { state.refused += 1 }
            guard let presence = state.presence, !state.isAway else { throw AppError.unavailable }
            return presence
        }
    }

    func start(_ process: ChatProcess, lease: Int, takesName: Bool, notify: String?) async throws -> Bool {
        try await presence().start(process, lease: lease, takesName: takesName, notify: notify)
    }
    func stop(_ process: ChatProcess, notify: String?) async throws {
        try await presence().stop(process, notify: notify)
    }
    func write(
        _ process: ChatProcess, online: [User.ID], offline: [User.ID], lease: Int, notify: String?
    ) async throws -> Bool {
        try await presence().write(process, online: online, offline: offline, lease: lease, notify: notify)
    }
    func renew(_ process: ChatProcess, lease: Int) async throws {
        try await presence().renew(process, lease: lease)
    }
    func look() async throws -> [ChatProcessState] { try await presence().look() }
    func bury(_ runs: [Int32], notify: String?) async throws -> Int { try await presence().bury(runs, notify: notify) }
    func online(among users: [User.ID]) async throws -> Set<User.ID> { try await presence().online(among: users) }
    func changes(since bound: UInt64) async throws -> PresenceChanges { try await presence().changes(since: bound) }
}

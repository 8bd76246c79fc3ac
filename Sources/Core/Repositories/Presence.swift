/// One process of the chat, as the others see it.
public struct ChatProcess: Sendable, Hashable {
    /// Shown to clients and operators. A process that was there before may have had it.
    public let name: String
    /// Positive, drawn at the start, and of this process alone.
    public let run: Int32
    /// Where other processes reach it; empty when they cannot.
    public let internalAddress: String

    public init(name: String, run: Int32, internalAddress: String = "") {
        self.name = name
        self.run = run
        self.internalAddress = internalAddress
    }
}

/// Whether a process lives, as the database has it at this moment.
public struct ChatProcessState: Sendable, Equatable {
    public let name: String
    public let run: Int32
    /// Its listening connection is there.
    public let isLocked: Bool
    /// What is left of its lease; nothing or less: it has run out.
    public let leaseSeconds: Double

    public init(name: String, run: Int32, isLocked: Bool, leaseSeconds: Double) {
        self.name = name
        self.run = run
        self.isLocked = isLocked
        self.leaseSeconds = leaseSeconds
    }

    /// A process without a lock may have lost its connection a moment ago: only who is dead twice is dead.
    public var isAlive: Bool { isLocked || leaseSeconds > 0 }
}

/// Who may have come or gone since a bound. Users may come again; none is passed over.
public struct PresenceChanges: Sendable, Equatable {
    public let users: [User.ID]
    /// False when there were more than are read at once: anybody may have come or gone.
    public let isWhole: Bool
    /// Pass to the next read.
    public let bound: UInt64

    public init(users: [User.ID], isWhole: Bool, bound: UInt64) {
        self.users = users
        self.isWhole = isWhole
        self.bound = bound
    }
}

/// Who is connected to the chat, to whichever process, and which processes there are.
///
/// A user is online while a process that has a row has them. A process writes its users as they come and go, and no
/// heartbeat; it lives while its listening connection holds its lock or its lease lasts, and the others delete it when
/// it does not. `notify`, everywhere, is the hint for other processes, sent when somebody came or went; nil: none.
public protocol PresenceRepository: Sendable {
    /// Writes the process's row, with nobody connected to it, and deletes what former ones left behind.
    /// - Parameter takesName: whether the row of another process of this name gives way; it does when a process starts,
    ///   and does not when one comes back that others took for dead.
    /// - Returns: whether the row is this process's.
    func start(_ process: ChatProcess, lease seconds: Int, takesName: Bool, notify: String?) async throws -> Bool
    /// Deletes the process's row and its users.
    func stop(_ process: ChatProcess, notify: String?) async throws
    /// Users who came to the process and who left it, in one transaction. The lease is set to so many seconds from now.
    /// - Returns: false when the process has no row: nothing was written.
    func write(
        _ process: ChatProcess, online: [User.ID], offline: [User.ID], lease seconds: Int, notify: String?
    ) async throws -> Bool
    /// Sets the lease of a process whose lock is not held.
    func renew(_ process: ChatProcess, lease seconds: Int) async throws
    /// All processes, the last started first. Bounded.
    func look() async throws -> [ChatProcessState]
    /// Deletes those of these processes that are dead in this moment, with their users.
    /// - Returns: how many there were.
    func bury(_ runs: [Int32], notify: String?) async throws -> Int
    /// Those of these users who are online.
    func online(among users: [User.ID]) async throws -> Set<User.ID>
    /// Who may have come or gone since a bound of transactions, and the next bound. `UInt64.max` asks for the bound
    /// alone.
    func changes(since bound: UInt64) async throws -> PresenceChanges
}

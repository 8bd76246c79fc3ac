import Core
import EventLoop
import ServiceKit

/// Tells the hubs who of those they watch is online, on whichever instance, and the database who is connected here
/// (docs/decisions/0021-presence.md).
///
/// Rows are the truth here too. NOTIFY wakes it, polling is the net below, and both only say of whom to ask. What it
/// keeps of others' users is those that somebody here watches.
actor PresenceFeed {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// A socket that begins to watch a room.
    private struct Join {
        let room: Room.ID
        let hub: Int
        let socket: Int
    }

    nonisolated let process: ChatProcess
    /// The name of this process in its wake-ups.
    nonisolated let sender: String
    let presence: any PresenceRepository
    private let rooms: any RoomRepository
    let notify: Bool
    let limits: PresenceLimits
    let log: Log
    let writes: Counter
    let alive: Gauge
    private var hubs: [ChatHub] = []
    private(set) var isRunning = false

    // What is written: PresenceFeed+Writing.swift.
    var ledger = PresenceLedger()
    /// Whether the database has a row of this process, as far as it is known.
    var isKnown = false
    var isWriting = false
    var wroteAt: UInt64 = 0
    var writeTimer: LoopTimer?
    var processes = ProcessWatch()
    var holdsLock = false
    var isLooking = false
    var looksFail = false
    var lookTimer: LoopTimer?
    var lookInterval: UInt64 = 0

    private var watch = PresenceWatch()
    private var joins: [Join] = []
    /// Watched users who may have come or gone.
    private var due: Set<User.ID> = []
    private var changesDue = false
    private var bound: UInt64?
    private var readAt: UInt64 = 0
    private var isReading = false
    private var pollTimer: LoopTimer?

    init(
        on loop: EventLoop, process: ChatProcess, sender: String, presence: any PresenceRepository,
        rooms: any RoomRepository, notify: Bool, limits: PresenceLimits, log: Log, metrics: Metrics
    ) {
        self.loop = loop
        self.process = process
        self.sender = sender
        self.presence = presence
        self.rooms = rooms
        self.notify = notify
        self.limits = limits
        self.log = log
        writes = metrics.counter(
            "martlet_chat_presence_writes_total", "Statements that wrote who is connected to this instance.")
        alive = metrics.gauge("martlet_chat_instances", "Chat instances that live, as this one sees it.")
    }

    /// Writes the process's row. Before the first socket.
    /// - Throws: `AppError.unavailable`.
    func start(_ hubs: [ChatHub]) async throws {
        self.hubs = hubs
        isKnown = try await presence.start(
            process, lease: notify ? limits.startLeaseSeconds : limits.idleLeaseSeconds, takesName: true,
            notify: hintOfAll)
        isRunning = true
        setLooking()
    }

    /// Deletes the process's row, and with it those who are still taken for connected.
    func stop() async {
        isRunning = false
        for timer in [writeTimer, lookTimer, pollTimer] { timer?.cancel() }
        (writeTimer, lookTimer, pollTimer) = (nil, nil, nil)
        // They know it, and it them.
        hubs = []
        // A row that stays is deleted by the others, so a database that is away is no reason to wait.
        try? await presence.stop(process, notify: hintOfAll)
    }

    nonisolated func post(_ body: @escaping @Sendable (isolated PresenceFeed) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: Users of this process

    /// The first connection of a user to this process.
    func came(_ user: User.ID) {
        ledger.came(user)
        tell([watch.learn(user, isOnline: true)])
        writeSoon()
        setLooking()
    }

    /// The last connection of a user to this process has ended. Others may have them, so the database is asked, once it
    /// knows.
    func left(_ user: User.ID) {
        ledger.left(user)
        if !ledger.isDue(user) { changed([user]) }
        writeSoon()
        setLooking()
    }

    // MARK: Watching

    /// A socket begins to watch a room; the hub's `joined` is called with who is online.
    func join(_ room: Room.ID, hub: Int, socket: Int) {
        watch.watch(room, hub: hub)
        joins.append(Join(room: room, hub: hub, socket: socket))
        setPolling()
        read()
    }

    /// No socket of the hub watches the room any more.
    func unwatch(_ room: Room.ID, hub: Int) {
        watch.unwatch(room, hub: hub)
        setPolling()
    }

    /// The members of a room as they are now.
    func members(_ room: Room.ID, _ members: Set<User.ID>) {
        guard watch.version(of: room) != nil else { return }
        let changed = watch.changed(room, Array(members.sorted().prefix(limits.membersMax)))
        tell(changed.known)
        due.formUnion(changed.new)
        read()
    }

    /// Users who may have come or gone; nil: anybody.
    func changed(_ users: [User.ID]?) {
        guard let users else { return lookAround() }
        due.formUnion(users.lazy.filter { self.watch.watches($0) })
        read()
    }

    /// Wake-ups may have been lost.
    func lookAround() {
        // The listening connection may be there now, and with it our lock.
        if notify, !holdsLock { look() }
        guard !watch.isEmpty else { return }
        changesDue = true
        read()
    }

    private func setPolling() {
        guard !watch.isEmpty else {
            pollTimer = nil
            // Whoever watches next begins with what the rows say then.
            bound = nil
            changesDue = false
            due = []
            return
        }
        guard pollTimer == nil, isRunning else { return }
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.lookAround() } }
        timer.start(milliseconds: limits.pollMilliseconds, repeating: limits.pollMilliseconds)
        pollTimer = timer
    }

    // MARK: Reading

    private var hasWork: Bool { !joins.isEmpty || changesDue || !due.isEmpty }

    private func read() {
        guard !isReading, isRunning, hasWork else { return }
        isReading = true
        _ = Task(executorPreference: loop) { await self.readAll() }
    }

    private func readAll() async {
        do {
            while hasWork {
                if bound == nil { try await readBound() }
                if !joins.isEmpty {
                    try await answerJoins()
                } else if changesDue {
                    try await readChanges()
                } else {
                    try await lookUpDue()
                }
            }
        } catch {
            // What was due is still due; the next poll tries again. Who asks gets an answer now.
            fail(joins, error)
            joins = []
        }
        isReading = false
    }

    /// Before anything is read that changes are to be followed from.
    private func readBound() async throws {
        let asked = loop.nowMilliseconds
        bound = try await presence.changes(since: .max).bound
        readAt = asked
    }

    private func readChanges() async throws {
        guard let since = bound else { return }
        changesDue = false
        let asked = loop.nowMilliseconds
        let changes: PresenceChanges
        do {
            changes = try await presence.changes(since: since)
        } catch {
            changesDue = true
            throw error
        }
        let isWhole = changes.isWhole && asked - readAt <= limits.changesKeptMilliseconds
        bound = changes.bound
        readAt = asked
        due.formUnion(isWhole ? changes.users.filter { watch.watches($0) } : watch.watched)
    }

    private func answerJoins() async throws {
        let asked = Array(joins.prefix(limits.joinsMax))
        joins.removeFirst(asked.count)
        let ids = Set(asked.map(\.room)).sorted()
        let versions = ids.map { watch.version(of: $0) }
        do {
            let found = try await rooms.members(of: ids)
            for (room, version) in zip(ids, versions) {
                tell(watch.read(room, (found[room] ?? []).prefix(limits.membersMax).map(\.user), version: version))
            }
            try await lookUp(watch.members(of: ids).sorted(), quietly: true)
        } catch {
            fail(asked, error)
            throw error
        }
        for join in asked where join.hub < hubs.count {
            let online = watch.online(in: join.room)
            hubs[join.hub].post { $0.joined(join.socket, join.room, online) }
        }
    }

    private func fail(_ joins: [Join], _ error: any Error) {
        for join in joins where join.hub < hubs.count {
            hubs[join.hub].post { $0.joinFailed(join.socket, join.room, error) }
        }
    }

    private func lookUpDue() async throws {
        let asked = due.sorted()
        due = []
        do {
            try await lookUp(asked, quietly: false)
        } catch {
            due.formUnion(asked)
            throw error
        }
    }

    private func lookUp(_ users: [User.ID], quietly: Bool) async throws {
        var start = 0
        while start < users.count {
            let part = Array(users[start...].prefix(limits.lookUpUsersMax))
            start += part.count
            let online = try await presence.online(among: part)
            // Who is connected here is online, whether that is written yet or not.
            tell(
                part.map {
                    watch.learn(
                        $0, isOnline: ledger.connected.contains($0) || online.contains($0), quietly: quietly)
                })
        }
    }

    private func tell(_ events: [PresenceWatch.Event?]) {
        let events = events.compactMap(\.self)
        guard !events.isEmpty else { return }
        for hub in hubs {
            let own = events.filter { $0.hubs.contains(hub.index) }
            if !own.isEmpty { hub.post { $0.presence(own) } }
        }
    }
}

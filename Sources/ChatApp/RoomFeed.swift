import Core
import EventLoop
import Foundation
import ServiceKit
import Synchronization
import WebSocket

/// Brings what is committed, here or by another instance, to the loops whose sockets follow it: in order, once.
///
/// NOTIFY wakes it, polling is the net below, and both only say where to look: what is delivered is read from the rows
/// after the position of the room, or comes from a batch of this process that begins where the position ends.
actor RoomFeed {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Rooms of one read.
    private static let roomsMax = 256
    /// Rooms whose members are looked up together.
    private static let lookupsMax = 512
    /// Rooms whose members have been looked up; forgotten all at once beyond, which costs a look-up each.
    private static let lookedUpMax = 200_000
    /// Change rows are pruned after an hour. Whoever has not looked for half of that looks at every room.
    private static let changesKeptMilliseconds: UInt64 = 1_800_000
    /// Between looks at everything, which are many statements, while more has changed than one look tells.
    private static let backlogMilliseconds: UInt64 = 2_000

    /// The name of this process in its wake-ups.
    nonisolated let sender: String
    private let rooms: any RoomRepository
    /// On the same loop.
    private let presence: PresenceFeed
    private let limits: ChatLimits
    private let notify: Bool
    private let log: Log
    private let measures: FeedMetrics
    private let traces: ChatTraces?
    /// What takes typing and marks too. A hub's place among the fronts is the index of its loop.
    private var hubs: [ChatHub] = []
    private var fronts: [any ChatFront] = []
    private var hubPlaces = HubSet()

    private var positions = RoomPositions()
    private var users: [User.ID: HubSet] = [:]
    private var bound: UInt64?
    private var readAt: UInt64 = 0
    private var changesDue = false
    private var looksAgainAt: UInt64 = 0
    private var lookups: Set<Room.ID> = []
    private var lookedUp: Set<Room.ID> = []
    private var isRunning = false
    private nonisolated let isFailing = Atomic(false)
    private var pollTimer: LoopTimer?
    private var pollInterval: UInt64 = 0
    private var typing: Set<WakeHint.Typing> = []
    private var typingTimer: LoopTimer?

    init(
        on loop: EventLoop, rooms: any RoomRepository, presence: PresenceFeed, notify: Bool, limits: ChatLimits,
        log: Log, measures: FeedMetrics, traces: ChatTraces? = nil
    ) {
        self.loop = loop
        self.rooms = rooms
        self.presence = presence
        sender = presence.sender
        self.notify = notify
        self.limits = limits
        self.log = log
        self.measures = measures
        self.traces = traces
    }

    /// Reads the bound from which changes are followed, and starts to follow them.
    /// - Parameter others: fronts that stand behind the hubs: what they say as `hub` is their place in the whole.
    /// - Throws: `AppError.unavailable`.
    func start(_ hubs: [ChatHub], others: [any ChatFront]) async throws {
        self.hubs = hubs
        fronts = hubs + others
        hubPlaces = HubSet()
        for place in hubs.indices { hubPlaces.insert(place) }
        // Once: what starts after this may fail, and all of it be tried again while changes are being read.
        if bound == nil {
            let first = try await rooms.changes(since: .max).bound
            bound = first
            readAt = loop.nowMilliseconds
        }
        setPolling()
    }

    func stop() {
        pollTimer?.cancel()
        pollTimer = nil
        typingTimer = nil
        // They know the feed, and the feed them.
        hubs = []
        fronts = []
    }

    nonisolated func post(_ body: @escaping @Sendable (isolated RoomFeed) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: What hubs say

    /// - Parameter number: given back with the answer.
    func hold(_ held: [(room: Room.ID, lastSeq: Int64)], hub: Int, number: Int) {
        let answers = held.map { ($0.room, positions.hold($0.room, lastSeq: $0.lastSeq, hub: hub)) }
        guard hub < fronts.count else { return }
        fronts[hub].told(.held(number, answers))
        run()
    }

    func release(_ released: [Room.ID], hub: Int) {
        for room in released { positions.release(room, hub: hub) }
    }

    /// Before the user's rooms are read: from now on a room that it enters is noticed.
    func connect(_ user: User.ID, hub: Int) {
        if users[user] == nil { presence.assumeIsolated { $0.came(user) } }
        users[user, default: HubSet()].insert(hub)
        setPolling()
    }

    func disconnect(_ user: User.ID, hub: Int) {
        users[user]?.remove(hub)
        guard users[user]?.isEmpty == true else { return }
        users[user] = nil
        setPolling()
        presence.assumeIsolated { $0.left(user) }
    }

    func typed(_ room: Room.ID, _ user: User.ID) {
        each(positions.hubs(of: room)) { $0.typing(room, user) }
        guard notify else { return }
        typing.insert(WakeHint.Typing(room: room, user: user))
        guard typingTimer == nil else { return }
        let timer = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.announceTyping() } }
        timer.start(milliseconds: limits.typingMilliseconds)
        typingTimer = timer
    }

    private func announceTyping() {
        typingTimer = nil
        guard !typing.isEmpty else { return }
        let hint = WakeHint.text(sender: sender, typing: typing)
        typing = []
        // Lossy by contract: when the database is away nobody types.
        _ = Task(executorPreference: loop) { [rooms] in try? await rooms.announce(hint) }
    }

    // MARK: What is committed here

    func published(_ batch: [(room: Room.ID, messages: [Message])]) {
        let wasDue = positions.hasDue
        deliver(batch.compactMap { positions.published($0.room, $0.messages) }, own: true)
        guard positions.hasDue else { return }
        if !wasDue { measures.gaps.add() }
        run()
    }

    func marked(_ marks: [ReadMark]) {
        for mark in marks {
            tell(positions.marks(mark.room, [Room.Member(user: mark.user, lastReadSeq: mark.seq)]))
        }
    }

    // MARK: What wakes it

    func wake(_ payload: String) {
        measures.wakeUps.add()
        switch WakeHint(payload) {
        case .typing(let from, let items):
            guard from != sender else { return }
            for item in items { each(positions.hubs(of: item.room)) { $0.typing(item.room, item.user) } }
        case .rooms(let from, let messages, let memberships):
            // Our own batches are delivered from what they returned.
            guard from != sender else { return }
            for room in messages { changed(room, lastSeq: nil) }
            if !users.isEmpty { lookups.formUnion(memberships) }
            run()
        case .anything(let from):
            guard from != sender else { return }
            lookAround()
            presence.assumeIsolated { $0.lookAround() }
        case .presence(let from, let users):
            guard from != sender else { return }
            presence.assumeIsolated { $0.changed(users) }
        }
    }

    /// Wake-ups may have been lost.
    func lookAround() {
        guard loop.nowMilliseconds >= looksAgainAt else { return }
        changesDue = true
        run()
    }

    private func poll() {
        measures.polls.add()
        lookAround()
    }

    private func setPolling() {
        let interval = users.isEmpty ? limits.idlePollMilliseconds : limits.pollMilliseconds
        guard interval != pollInterval || pollTimer == nil else { return }
        let timer = pollTimer ?? LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.poll() } }
        timer.start(milliseconds: interval, repeating: interval)
        pollTimer = timer
        pollInterval = interval
    }

    private func changed(_ room: Room.ID, lastSeq: Int64?) {
        _ = positions.changed(room, lastSeq: lastSeq)
        // A new room, perhaps, of somebody who is connected. It may be followed already, for a member who connected
        // after it was made: the others do not know of it.
        guard !users.isEmpty, !lookedUp.contains(room) else { return }
        lookups.insert(room)
    }

    // MARK: Reading

    private var hasWork: Bool { changesDue || positions.hasDue || !lookups.isEmpty }

    private func run() {
        guard !isRunning, bound != nil, hasWork else { return }
        isRunning = true
        _ = Task(executorPreference: loop) { await self.readAll() }
    }

    private func readAll() async {
        var failure: (any Error)?
        while failure == nil, hasWork {
            // One that fails does not keep the others: what a wake-up named is delivered all the same.
            if changesDue { do { try await readChanges() } catch { failure = error } }
            if positions.hasDue { do { try await readDue() } catch { failure = error } }
            if !lookups.isEmpty { do { try await lookUp() } catch { failure = error } }
        }
        // What was due is still due; the next poll tries again.
        if let failure, problem == nil {
            log.warning("the chat cannot read the database", ["error": .string(String(describing: failure))])
        } else if failure == nil, problem != nil {
            log.info("the chat reads the database again")
        }
        isFailing.store(failure != nil, ordering: .relaxed)
        isRunning = false
    }

    private func readChanges() async throws {
        changesDue = false
        let asked = loop.nowMilliseconds
        let changes: RoomChanges
        do {
            changes = try await rooms.changes(since: bound ?? .max)
        } catch {
            changesDue = true
            throw error
        }
        if !changes.isWhole || asked - readAt > Self.changesKeptMilliseconds {
            positions.allChanged()
            let everybody = Array(users.keys)
            for front in fronts { front.told(.refresh(everybody)) }
        }
        // Of everything, not as often: a transaction that stays open keeps the bound where it is.
        looksAgainAt = changes.isWhole ? 0 : loop.nowMilliseconds + Self.backlogMilliseconds
        bound = changes.bound
        readAt = asked
        for (room, lastSeq) in changes.rooms { changed(room, lastSeq: lastSeq) }
        if !users.isEmpty { lookups.formUnion(changes.memberships) }
    }

    private func readDue() async throws {
        let cursors = positions.takeDue(max: Self.roomsMax)
        guard !cursors.isEmpty else { return }
        let messages: [Message]
        do {
            messages = try await rooms.messages(after: cursors, limitPerRoom: limits.feedMessagesMax)
        } catch {
            positions.giveBack(cursors)
            throw error
        }
        measures.roomsRead.add(cursors.count)
        measures.messagesRead.add(messages.count)
        deliver(
            MessagePage.split(messages, limit: limits.feedMessagesMax).compactMap {
                positions.fetched($0.room, $0.messages, isWhole: $0.isWhole)
            }, own: false)
    }

    /// Who of those connected here is a member of rooms that are new to us, or whose members or marks changed.
    private func lookUp() async throws {
        let asked = Array(lookups.prefix(Self.lookupsMax))
        // Before the read: who is named meanwhile is to be looked up again.
        lookups.subtract(asked)
        let found: [Room.ID: [Room.Member]]
        do {
            found = try await rooms.members(of: asked)
        } catch {
            lookups.formUnion(asked)
            throw error
        }
        if lookedUp.count + asked.count > Self.lookedUpMax { lookedUp = [] }
        lookedUp.formUnion(asked)
        learn(asked.map { ($0, found[$0] ?? []) })
    }

    private func learn(_ rooms: [(room: Room.ID, members: [Room.Member])]) {
        for (room, members) in rooms {
            tell(positions.marks(room, members))
            let ids = Set(members.map(\.user))
            presence.assumeIsolated { $0.members(room, ids) }
            // Also where nobody here is a member: somebody may be about to enter by a list that is older than this.
            for front in fronts { front.told(.members(room, ids)) }
        }
    }

    // MARK: Telling

    private func deliver(_ deliveries: [RoomPositions.Delivery], own: Bool) {
        guard !deliveries.isEmpty else { return }
        measures.delivering(deliveries, own: own)
        let spans = traces?.delivering(deliveries)
        let news = deliveries.map { delivery in
            HubDelivery(
                room: delivery.room, messages: delivery.messages,
                frames: delivery.hubs.intersects(hubPlaces)
                    ? delivery.messages.map { ($0.seq, SharedFrame(text: ServerFrame.message($0))) } : [])
        }
        var followed = HubSet()
        for delivery in deliveries { followed.formUnion(delivery.hubs) }
        for (place, front) in fronts.enumerated() where followed.contains(place) {
            front.told(.delivered(zip(deliveries, news).filter { $0.0.hubs.contains(place) }.map(\.1)))
        }
        for span in spans ?? [] { span.end() }
    }

    private func tell(_ marks: [ReadMark]) {
        for mark in marks { each(positions.hubs(of: mark.room)) { $0.marked(mark) } }
    }

    private func each(_ set: HubSet, _ body: @escaping @Sendable (isolated ChatHub) -> Void) {
        for hub in hubs where set.contains(hub.index) { hub.post(body) }
    }

    /// Nil when changes are being read.
    nonisolated var problem: String? {
        isFailing.load(ordering: .relaxed) ? "the chat cannot read the database" : nil
    }
}

/// What one read brought of one room.
struct MessagePage {
    let room: Room.ID
    let messages: [Message]
    /// False when the page was full: there may be more.
    let isWhole: Bool

    /// - Parameter messages: in (room, seq) order.
    static func split(_ messages: [Message], limit: Int) -> [MessagePage] {
        var pages: [MessagePage] = []
        var start = 0
        for index in messages.indices {
            let next = index + 1
            guard next == messages.count || messages[next].roomID != messages[index].roomID else { continue }
            let own = Array(messages[start..<next])
            let bytes = own.reduce(0) { $0 + $1.body.utf8.count }
            pages.append(
                MessagePage(
                    room: messages[index].roomID, messages: own,
                    isWhole: own.count < limit && bytes < Message.pageBytesMax))
            start = next
        }
        return pages
    }
}

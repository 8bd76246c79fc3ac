import Core
import CoreHTTP
import EventLoop
import Foundation
import JSON
import ServiceKit
import SocketIO

/// The Socket.IO clients of one loop (contracts/01 §5): one more front on the rooms that `martlet.v1` has. It sends
/// state, not messages: the list of a user's conversations, and the texts of the rooms that a client has open.
actor SocketIOHub: ChatFront, SocketIODelegate {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Among the fronts of the process.
    nonisolated let place: Int

    let parts: HubParts
    var limits: ChatLimits { parts.limits }
    /// By number.
    var sockets: [Int: SocketIOSocket] = [:]
    private var handles: [SocketIOHandle.ID: SocketIOSocket] = [:]
    private var lastNumber = 0
    var users: [User.ID: SocketIOUser] = [:]
    var rooms: [Room.ID: SocketIORoom] = [:]

    var reads = RoomReads<SocketIOSocket>()
    /// Acts that wait for their users' rooms.
    var waitingActs: [WaitingAct] = []
    /// Rooms whose texts are to be read.
    var unread: Set<Room.ID> = []
    /// Milliseconds of the loop's clock before which the database is not asked again.
    var readsAgainAt: UInt64 = 0

    /// Sockets whose list changed in this turn, and those whose time has not come.
    var changed: [SocketIOSocket] = []
    var waiting: [SocketIOSocket] = []
    /// Rooms with sockets that have not been given their newest state.
    var lateRooms: Set<Room.ID> = []
    var isFlushing = false
    var pushTimer: LoopTimer?

    private var outbox: [SendBatcher.Send] = []
    private var ticker: LoopTimer?

    init(on loop: EventLoop, place: Int, parts: HubParts) {
        self.loop = loop
        self.place = place
        self.parts = parts
    }

    /// Runs soon, on the loop; calls keep their order.
    nonisolated func post(_ body: @escaping @Sendable (isolated SocketIOHub) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: ChatFront

    nonisolated func told(_ news: FeedNews) {
        post { hub in
            switch news {
            case .held(_, let positions): hub.held(positions)
            case .delivered(let deliveries): hub.deliver(deliveries)
            case .refresh(let users): hub.refresh(users)
            case .members(let room, let members): hub.membersChanged(room, members)
            }
        }
    }

    nonisolated func answered(_ answers: [SendBatcher.Answer]) {
        post { hub in
            for answer in answers { hub.answer(answer) }
        }
    }

    // MARK: SocketIODelegate

    nonisolated func connect(_ socket: SocketIOHandle, namespace: String, auth: JSONValue?) {
        assumeIsolated { $0.open(socket, namespace, auth) }
    }

    nonisolated func event(_ socket: SocketIOHandle, _ event: SocketEvent) {
        assumeIsolated { hub in
            guard let socket = hub.handles[socket.id], socket.isAccepted else { return }
            hub.act(socket, event)
        }
    }

    nonisolated func drained(_ socket: SocketIOHandle) {
        // Now, not when those who were behind are looked at next.
        assumeIsolated { hub in
            if !hub.lateRooms.isEmpty { hub.flushSoon() }
        }
    }

    nonisolated func disconnected(_ socket: SocketIOHandle) {
        assumeIsolated { hub in
            if let socket = hub.handles[socket.id] { hub.drop(socket) }
        }
    }

    // MARK: Coming and going

    private func open(_ handle: SocketIOHandle, _ namespace: String, _ auth: JSONValue?) {
        guard namespace == SocketPacket.root else { return handle.refuse(SocketConnection.invalidNamespace) }
        guard handles[handle.id] == nil else { return }
        let caller: Caller
        do throws(AppError) {
            guard let token = auth?.text("token") else { throw .unauthenticated }
            caller = try parts.signIn.verify(token)
        } catch {
            return handle.refuse(error.code == .unavailable ? Self.away : Self.unauthorized)
        }
        guard parts.counts.add(caller.user, max: limits.socketsPerUserMax) else {
            return handle.refuse("A user has at most \(limits.socketsPerUserMax) connections.")
        }
        let now = loop.nowMilliseconds
        let user =
            users[caller.user]
            ?? SocketIOUser(caller.user, sends: TokenBucket(burst: limits.sendsBurstMax, now: now))
        lastNumber += 1
        let socket = SocketIOSocket(
            lastNumber, handle, user: user, session: caller.session, endsAt: caller.connectionEndsAt,
            answerBy: now + limits.connectMillisecondsMax, acts: TokenBucket(burst: limits.framesBurstMax, now: now))
        sockets[socket.number] = socket
        handles[handle.id] = socket
        parts.measures.connected.add(1)
        parts.measures.opened.add()
        if user.sockets.isEmpty {
            users[user.id] = user
            let (id, place) = (user.id, place)
            // Before its rooms are read: from now on a room that it enters is noticed.
            parts.feed.post { $0.connect(id, hub: place) }
        }
        user.sockets.append(socket)
        reads.arriving.append(socket)
        startTicking()
        read()
    }

    static let unauthorized = "Not authorized"
    static let away = "The service is not available for the moment."

    func refuse(_ socket: SocketIOSocket, _ message: String) {
        drop(socket)
        socket.handle.refuse(message)
    }

    /// Ends what it has, be it a connection or the wait for one.
    func expel(_ socket: SocketIOSocket, _ message: String) {
        guard socket.isAccepted else { return refuse(socket, message) }
        drop(socket)
        socket.handle.disconnect(close: true)
    }

    private func drop(_ socket: SocketIOSocket) {
        guard sockets.removeValue(forKey: socket.number) != nil else { return }
        handles[socket.handle.id] = nil
        parts.measures.connected.add(-1)
        if sockets.isEmpty { ticker = nil }
        for room in socket.joined { leave(socket, room) }
        let user = socket.user
        parts.counts.remove(user.id)
        user.sockets.removeAll { $0 === socket }
        guard user.sockets.isEmpty else { return }
        users[user.id] = nil
        reads.remove(user.id)
        let (id, place, left) = (user.id, place, Array(user.rooms.keys))
        parts.feed.post { $0.disconnect(id, hub: place) }
        leave(user, left)
    }

    private func startTicking() {
        guard ticker == nil else { return }
        let ticker = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.tick() } }
        ticker.start(milliseconds: 500, repeating: 500)
        self.ticker = ticker
    }

    private func tick() {
        let now = loop.nowMilliseconds
        let date = parts.clock.now()
        for socket in sockets.values {
            if socket.endsAt <= date {
                expel(socket, Self.unauthorized)
            } else if !socket.isAccepted, now >= socket.answerBy {
                refuse(socket, Self.away)
            }
        }
        read()
    }

    /// Sessions that ended anywhere.
    func end(_ sessions: Set<Session.ID>) {
        for socket in sockets.values where sessions.contains(socket.session) { expel(socket, Self.unauthorized) }
    }

    // MARK: Sends

    func submit(_ send: SendBatcher.Send) {
        outbox.append(send)
        if outbox.count == 1 { loop.atTurnEnd { self.submitAll() } }
    }

    /// The turn's sends go together, so that they meet in one batch.
    private func submitAll() {
        parts.batcher.submit(outbox)
        outbox = []
    }
}

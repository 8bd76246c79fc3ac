import Core
import CoreHTTP
import Crypto
import EventLoop
import Foundation
import ServiceKit
import WebSocket

/// What the hubs of a process share.
struct HubParts: Sendable {
    let instance: String
    let rooms: any RoomRepository
    let feed: RoomFeed
    let presence: PresenceFeed
    let batcher: SendBatcher
    let signIn: SignIn
    let limits: ChatLimits
    let counts: UserCounts
    let addresses: AddressBook
    let clock: any ServiceClock
    let log: Log
    let measures: HubMetrics
    let random: any RandomSource
    let traces: ChatTraces?
}

/// The chat's sockets of one loop, by user and by room. What they say goes to the batcher and the database; what is
/// committed comes back from the feed and goes to the sockets, in order and once.
actor ChatHub: WebSocketDelegate, ChatFront {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated var index: Int { loop.index }

    let parts: HubParts
    var limits: ChatLimits { parts.limits }
    var sockets: [Int: HubSocket] = [:]
    var users: [User.ID: HubUser] = [:]
    var rooms: [Room.ID: HubRoom] = [:]
    /// Numbers what the feed is asked to follow.
    var holds = 0

    var reads = RoomReads<HubSocket>()
    /// Sockets and rooms that are behind.
    var behind: [BehindEntry] = []
    var isCatchingUp = false

    /// The owner of the handles.
    var socketLoop: WebSocketLoop?
    private var outbox: [SendBatcher.Send] = []
    private var greeting: [Int: UInt64] = [:]
    private var ticker: LoopTimer?
    private var isDraining = false
    /// Of the socket that is being opened.
    private var arrivingFrom: String?

    init(on loop: EventLoop, parts: HubParts) {
        self.loop = loop
        self.parts = parts
    }

    /// Runs soon, on the loop; calls keep their order.
    nonisolated func post(_ body: @escaping @Sendable (isolated ChatHub) -> Void) {
        loop.execute { self.assumeIsolated { body($0) } }
    }

    // MARK: ChatFront

    nonisolated func told(_ news: FeedNews) {
        post { hub in
            switch news {
            case .held(let number, let positions): hub.held(number, positions)
            case .delivered(let deliveries): hub.deliver(deliveries)
            case .refresh(let users): hub.refresh(users)
            case .members(let room, let members): hub.membersChanged(room, members)
            }
        }
    }

    nonisolated func answered(_ answers: [SendBatcher.Answer]) {
        post { hub in
            for answer in answers { hub.sockets[answer.send.socket]?.handle.send(text: ServerFrame.answer(answer)) }
        }
    }

    // MARK: WebSocketDelegate

    nonisolated func opened(_ socket: WebSocketHandle) {
        assumeIsolated { $0.open(socket) }
    }

    nonisolated func received(_ socket: WebSocketHandle, text: [UInt8]) {
        assumeIsolated { $0.read(socket, text) }
    }

    nonisolated func received(_ socket: WebSocketHandle, binary: [UInt8]) {
        assumeIsolated { hub in
            guard let socket = hub.sockets[socket.id] else { return }
            hub.close(socket, .unsupportedData, "Frames are JSON text.")
        }
    }

    nonisolated func drained(_ socket: WebSocketHandle) {
        assumeIsolated { $0.unstall(socket.id) }
    }

    nonisolated func closed(_ socket: WebSocketHandle, _ code: CloseCode) {
        assumeIsolated { hub in
            guard let socket = hub.sockets[socket.id] else { return }
            // Ours is told by `close`; this one is the owner's, of whom the buffer is full.
            if code == .tryAgainLater { hub.parts.measures.slowReaders.add() }
            hub.drop(socket, code)
        }
    }

    // MARK: Coming and going

    /// Says whose sockets `open` opens.
    func arriving(from address: String?, _ open: () -> Void) {
        arrivingFrom = address
        open()
        arrivingFrom = nil
    }

    private func open(_ handle: WebSocketHandle) {
        guard !isDraining else { return handle.close(.serviceRestart, retryAfter()) }
        socketLoop = handle.actor
        let now = loop.nowMilliseconds
        guard parts.addresses.enter(arrivingFrom, now: now) == nil else {
            return handle.close(.tooMany, "Too many connections of one address.")
        }
        let socket = HubSocket(handle, address: arrivingFrom, limits: limits, now: now)
        sockets[handle.id] = socket
        greeting[handle.id] = socket.greetBy
        parts.measures.connected.add(1)
        parts.measures.opened.add()
        guard ticker == nil else { return }
        let ticker = LoopTimer(on: loop) { [unowned self] in assumeIsolated { $0.tick() } }
        ticker.start(milliseconds: 500, repeating: 500)
        self.ticker = ticker
    }

    func close(_ socket: HubSocket, _ code: CloseCode, _ reason: String) {
        drop(socket, code)
        socket.handle.close(code, reason)
    }

    private func drop(_ socket: HubSocket, _ code: CloseCode) {
        guard sockets.removeValue(forKey: socket.handle.id) != nil else { return }
        parts.measures.connected.add(-1)
        parts.measures.ended(code)
        parts.addresses.leave(socket.address, isStranger: socket.user == nil)
        greets(socket)
        socket.connection.closed()
        for room in socket.focus { unfocus(socket, room) }
        for room in socket.user?.rooms ?? [] { detach(socket, room) }
        if sockets.isEmpty {
            ticker = nil
            socketLoop = nil
        }
        guard let user = socket.user else { return }
        socket.user = nil
        parts.counts.remove(user.id)
        user.sockets.removeAll { $0 === socket }
        guard user.sockets.isEmpty else { return }
        let left = Array(user.rooms)
        users[user.id] = nil
        reads.remove(user.id)
        let (id, index) = (user.id, index)
        parts.feed.post { $0.disconnect(id, hub: index) }
        leave(user, left)
    }

    private func greets(_ socket: HubSocket) {
        greeting[socket.handle.id] = nil
        // A crowd that comes at once makes room here for which nobody has a use afterwards.
        if greeting.isEmpty { greeting = [:] }
    }

    private func tick() {
        let now = loop.nowMilliseconds
        for (id, deadline) in greeting where now >= deadline {
            if let socket = sockets[id] { close(socket, .tooSlowToGreet, "No hello came.") }
        }
        let date = parts.clock.now()
        for socket in sockets.values {
            if let endsAt = socket.endsAt, endsAt <= date { close(socket, .unauthenticated, "The session has ended.") }
        }
        load()
        catchUp()
    }

    /// Sessions that ended anywhere.
    func end(_ sessions: Set<Session.ID>) {
        for socket in sockets.values {
            if let session = socket.session, sessions.contains(session) {
                close(socket, .unauthenticated, "The session has ended.")
            }
        }
    }

    /// Closes every socket with 1012, and those that still come.
    func drain() {
        isDraining = true
        for socket in sockets.values { close(socket, .serviceRestart, retryAfter()) }
    }

    /// Milliseconds, so that the clients do not come back all at once.
    private func retryAfter() -> String {
        "retry-after=\(parts.random.number(upTo: limits.retryAfterMillisecondsMax))"
    }

    // MARK: What a socket says

    private func read(_ handle: WebSocketHandle, _ text: [UInt8]) {
        guard let socket = sockets[handle.id] else { return }
        perform(socket.connection.received(text, limits: limits, now: loop.nowMilliseconds), socket)
    }

    private func perform(_ action: ChatConnection.Action, _ socket: HubSocket) {
        switch action {
        case .nothing: break
        case .reply(let text): socket.handle.send(text: text)
        case .close(let code, let reason): close(socket, code, reason)
        case .authenticate(let token, let resume): authenticate(socket, token, resume)
        case .send(let room, let clientID, let content): send(socket, room, clientID, content)
        case .history(let room, let start, let limit): history(socket, room, start, limit)
        case .unread(let rooms): countUnread(socket, rooms)
        case .read(let room, let seq):
            guard let user = socket.user else { break }
            parts.batcher.mark(
                ReadMark(room: room, user: user.id, seq: seq), hub: index, socket: socket.handle.id)
        case .typing(let room):
            guard let user = socket.user, user.rooms.contains(room) else { return forbid(socket, room) }
            socket.connection.accepted()
            let id = user.id
            parts.feed.post { $0.typed(room, id) }
        case .join(let room): join(socket, room)
        case .leave(let room): unfocus(socket, room)
        }
    }

    func refuse(
        _ socket: HubSocket, _ code: ServerFrame.ErrorCode, _ message: String, room: Room.ID? = nil,
        clientID: String? = nil
    ) {
        perform(
            socket.connection.refuse(code, message, room: room, clientID: clientID, limits: limits), socket)
    }

    /// The same for a room of others and for one that does not exist.
    func forbid(_ socket: HubSocket, _ room: Room.ID) { refuse(socket, .forbidden, "Not your room.", room: room) }

    private func authenticate(_ socket: HubSocket, _ token: String, _ resume: [Room.ID: Int64]) {
        let caller: Caller
        do throws(AppError) {
            caller = try parts.signIn.verify(token)
        } catch {
            let isAway = error.code == .unavailable
            return close(
                socket, isAway ? .tryAgainLater : .unauthenticated,
                isAway ? "Sign-in is not available for the moment." : "The token is not valid.")
        }
        guard parts.counts.add(caller.user, max: limits.socketsPerUserMax) else {
            return close(socket, .tooMany, "A user has at most \(limits.socketsPerUserMax) connections.")
        }
        greets(socket)
        parts.addresses.signedIn(socket.address)
        socket.connection.authenticated()
        socket.session = caller.session
        socket.endsAt = caller.connectionEndsAt
        socket.resume = resume
        let user = users[caller.user] ?? HubUser(caller.user, limits: limits, now: loop.nowMilliseconds)
        if user.sockets.isEmpty {
            users[caller.user] = user
            let (id, index) = (user.id, index)
            parts.feed.post { $0.connect(id, hub: index) }
        }
        user.sockets.append(socket)
        socket.user = user
        reads.arriving.append(socket)
        load()
    }

    private func send(
        _ socket: HubSocket, _ room: Room.ID, _ clientID: String, _ content: Message.Draft.Content
    ) {
        guard let user = socket.user else { return }
        let now = loop.nowMilliseconds
        guard user.sends.take(perSecond: limits.sendsPerSecond, burst: limits.sendsBurstMax, now: now),
            parts.addresses.takeSend(socket.address, now: now)
        else {
            return refuse(socket, .tooMany, "Too many messages; slow down.", room: room, clientID: clientID)
        }
        let draft: Message.Draft
        do throws(AppError) {
            draft = try Message.Draft(roomID: room, senderID: user.id, clientID: clientID, content: content)
        } catch {
            return refuse(socket, .invalid, error.message, room: room, clientID: clientID)
        }
        socket.connection.accepted()
        var send = SendBatcher.Send(draft: draft, hub: index, socket: socket.handle.id)
        parts.traces?.begin(&send)
        outbox.append(send)
        if outbox.count == 1 { loop.atTurnEnd { self.submit() } }
    }

    /// The turn's sends go together, so that they meet in one batch.
    private func submit() {
        parts.batcher.submit(outbox)
        outbox = []
    }

    /// Acknowledgements and refusals.
    func answer(_ texts: [(socket: Int, text: [UInt8])]) {
        for (id, text) in texts { sockets[id]?.handle.send(text: text) }
    }

    // MARK: Questions

    private func history(_ socket: HubSocket, _ room: Room.ID, _ start: HistoryPage.Start, _ limit: Int) {
        guard let viewer = socket.user?.id else { return }
        guard socket.questions < limits.questionsMax else {
            return refuse(socket, .tooMany, "Too many questions at once.", room: room)
        }
        socket.questions += 1
        let (id, rooms) = (socket.handle.id, parts.rooms)
        ask(id, room) {
            ServerFrame.history(
                room, try await rooms.history(room: room, from: start, limit: limit, viewer: viewer))
        }
    }

    private func countUnread(_ socket: HubSocket, _ asked: [Room.ID]) {
        guard let user = socket.user?.id else { return }
        guard socket.questions < limits.questionsMax else {
            return refuse(socket, .tooMany, "Too many questions at once.")
        }
        socket.questions += 1
        let (id, rooms) = (socket.handle.id, parts.rooms)
        ask(id, nil) { ServerFrame.unread(try await rooms.unread(of: user, in: asked)) }
    }

    /// Sends what the database answers, or why there is no answer.
    private func ask(_ id: Int, _ room: Room.ID?, _ question: @escaping @Sendable () async throws -> [UInt8]) {
        _ = Task(executorPreference: loop) { await self.answer(id, room, question) }
    }

    private func answer(_ id: Int, _ room: Room.ID?, _ question: @Sendable () async throws -> [UInt8]) async {
        do {
            let text = try await question()
            sockets[id]?.handle.send(text: text)
        } catch {
            fail(id, room, error)
        }
        sockets[id]?.questions -= 1
    }

    func fail(_ id: Int, _ room: Room.ID?, _ error: any Error) {
        guard let socket = sockets[id] else { return }
        switch (error as? AppError)?.code {
        case .notFound, .forbidden: refuse(socket, .forbidden, "Not your room.", room: room)
        case .unavailable: refuse(socket, .unavailable, AppError.unavailable.message, room: room)
        default:
            parts.log.error("a question of the chat failed", ["error": .string(String(describing: error))])
            refuse(socket, .unavailable, AppError.unavailable.message, room: room)
        }
    }
}

extension Caller {
    /// An access token is for the greeting; its session lives on, and its end is told. A long token ends with it.
    var connectionEndsAt: Date {
        kind == .long ? expiresAt : expiresAt.addingTimeInterval(Double(Session.familyDays) * 86_400)
    }
}

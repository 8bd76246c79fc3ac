import Core
import CoreHTTP
import Crypto
import EventLoop
import Foundation
import HTTPServer
import ServiceKit
import Tracing
import WebSocket

/// The chat of one process: `martlet.v1` over WebSocket and Socket.IO (docs/chat-protocol.md), a hub of each on every
/// loop.
public final class ChatService: Sendable {
    public static let subprotocol = "martlet.v1"

    /// This process, as the others see it: its row is in the database from `start()` to the end of `drain()`.
    public let process: ChatProcess

    private let presence: PresenceFeed
    private let feed: RoomFeed
    private let batcher: SendBatcher
    private let hubs: [ChatHub]
    /// Those of `martlet.v1`, by loop.
    let sockets: [WebSocketLoop]
    private let socketIOHubs: [SocketIOHub]
    private let engine: EngineServer
    private let errors: ChatErrors
    private let limits: ChatLimits
    private let trusted: TrustedNetworks
    private let addresses: AddressBook

    /// - Parameters:
    ///   - instance: shown to clients and operators; letters, digits, `.`, `_` and `-`.
    ///   - internalAddress: where other instances pass requests on to; empty when they cannot.
    ///   - notify: whether other instances are woken and wake this one; without, all poll.
    ///   - trusted: proxies whose word about a client's address counts.
    ///   - tracer: nil: nothing is traced.
    ///   - passOn: the way to the Socket.IO sessions of other instances; nil where there is one.
    public init(
        instance: String, internalAddress: String = "", loops: LoopGroup, rooms: any RoomRepository,
        presence: any PresenceRepository, keys: SigningKeys, guardian: SessionGuard, notify: Bool,
        limits: ChatLimits = ChatLimits(), trusted: TrustedNetworks = .loopback,
        passOn: (any PassOn)? = nil, random: any RandomSource = SystemRandom(), clock: any ServiceClock, log: Log,
        metrics: Metrics, tracer: Tracer? = nil
    ) {
        precondition(2 * loops.loops.count <= HubSet.hubsMax, "a chat has at most \(HubSet.hubsMax / 2) loops")
        let home = loops.loops[0]
        process = ChatProcess(
            name: instance, run: Int32(random.number(upTo: Int(Int32.max) - 1)) + 1, internalAddress: internalAddress)
        // Two processes of one name must not take each other's wake-ups for their own.
        let sender = "\(instance.prefix(40)).\(String(process.run, radix: 36))"
        let presence = PresenceFeed(
            on: home, process: process, sender: sender, presence: presence, rooms: rooms, notify: notify,
            limits: limits.presence, log: log, metrics: metrics)
        let traces = tracer.map { ChatTraces(tracer: $0) }
        let feed = RoomFeed(
            on: home, rooms: rooms, presence: presence, notify: notify, limits: limits, log: log,
            measures: FeedMetrics(metrics, clock: clock), traces: traces)
        let batcher = SendBatcher(
            on: home, rooms: rooms, feed: feed, sender: notify ? sender : nil, limits: limits, log: log,
            metrics: metrics)
        let signIn = SignIn(signer: TokenSigner(keys: keys), guardian: guardian, clock: clock)
        let addresses = AddressBook(limits: limits)
        let parts = HubParts(
            instance: instance, rooms: rooms, feed: feed, presence: presence, batcher: batcher, signIn: signIn,
            limits: limits, counts: UserCounts(), addresses: addresses, clock: clock, log: log,
            measures: HubMetrics(metrics), random: random, traces: traces)
        let hubs = loops.loops.map { ChatHub(on: $0, parts: parts) }
        let socketIOHubs = loops.loops.map { SocketIOHub(on: $0, place: hubs.count + $0.index, parts: parts) }
        errors = ChatErrors(log: log)
        self.limits = limits
        self.trusted = trusted
        self.addresses = addresses
        self.presence = presence
        self.feed = feed
        self.batcher = batcher
        self.hubs = hubs
        sockets = hubs.map { WebSocketLoop(on: $0.loop, limits: limits.webSocket, delegate: $0) }
        self.socketIOHubs = socketIOHubs
        engine = EngineServer(
            instance: instance, loops: loops, limits: limits, trusted: trusted, addresses: addresses, passOn: passOn,
            random: random, log: log, metrics: metrics, delegate: { socketIOHubs[$0.index] })
        guardian.onEnd { ended in
            for hub in hubs { hub.post { $0.end(ended) } }
            for hub in socketIOHubs { hub.post { $0.end(ended) } }
        }
    }

    private var router: Router {
        var router = Router()
        register(on: &router)
        return router
    }

    /// In the order in which the server counts them.
    public var routes: [(method: HTTPMethod, pattern: String)] { router.routes }

    /// The routes, and answers to what they throw.
    /// - Parameter health: what the front door is told.
    public func server(
        address: SocketAddress, loops: LoopGroup, health: Health = Health(), tracing: HTTPTracing? = nil
    ) -> HTTPServer {
        let routes = router
        var http = HTTPLimits()
        http.discardedBytesMax = limits.refusedBytesMax
        return HTTPServer(
            loops: loops, address: address, limits: http, tracing: tracing,
            onError: errors.response,
            handler: health.answeringFrontDoor { try await routes.handle($0) })
    }

    /// `GET /chat` and `/socket.io/`. The token is in the first message, not in a cookie, so a page of another origin
    /// has nothing to abuse.
    public func register(on router: inout Router) {
        router.on(.get, "/chat") { [self] request in try open(request) }
        engine.register(on: &router)
    }

    /// A socket of an address that has too many is refused before anything is made for it.
    private func open(_ request: HTTPRequest) throws(HTTPError) -> HTTPResponse {
        let (hub, sockets) = (hubs[request.loop.index], sockets[request.loop.index])
        let compresses = limits.webSocket.compression
        let handshake = try WebSocketHandshake(request, protocols: [Self.subprotocol], compression: compresses)
        let address = request.countedNetwork(trusting: trusted)
        guard addresses.refusal(address) == nil else {
            throw HTTPError(429, "Too many connections of one address.", headers: ["Retry-After": "10"])
        }
        return HTTPResponse(
            status: 101, headers: handshake.headers,
            body: .upgrade { upgraded in
                nonisolated(unsafe) let upgraded = upgraded
                hub.assumeIsolated { hub in
                    hub.arriving(from: address) {
                        sockets.assumeIsolated {
                            $0.adopt(upgraded.stream, leftover: upgraded.leftover, compression: handshake.compression)
                        }
                    }
                }
            })
    }

    /// A Socket.IO request that another instance has passed on because its session is here: it goes no further.
    public func answerPassedOn(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await engine.handle(request, isPassedOn: true)
    }

    /// Reads from where changes are followed. Before the first socket.
    /// - Throws: `AppError.unavailable`.
    public func start() async throws {
        await batcher.attach(hubs, others: socketIOHubs)
        try await feed.start(hubs, others: socketIOHubs)
        try await presence.start(hubs)
    }

    /// Nil when what others commit is being read.
    public var problem: String? { feed.problem }

    /// A NOTIFY on `martlet_chat` came.
    public func wake(_ payload: String) { feed.post { $0.wake(payload) } }

    /// NOTIFYs may have been lost.
    public func lookAround() {
        feed.post { $0.lookAround() }
        presence.post { $0.lookAround() }
    }

    /// Answers what was sent, then closes every socket, those of `martlet.v1` with 1012, and waits for them to go.
    public func drain() async {
        await batcher.drain()
        for hub in hubs { await hub.drain() }
        await engine.drain()
        for loop in sockets { await loop.untilGone() }
        await batcher.stop()
        await feed.stop()
        await presence.stop()
    }
}

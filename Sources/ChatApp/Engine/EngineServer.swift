import CoreHTTP
import Crypto
import EventLoop
import HTTPServer
import ServiceKit
import SocketIO
import WebSocket

/// Socket.IO of one process: `/socket.io/` over HTTP polling and WebSocket, for clients of Engine.IO v4.
///
/// A session lives on the loop that opened it, which its sid names. Requests of it that come in on another loop hop
/// there; a WebSocket that comes in on another loop is moved there with its descriptor. A sid of another instance is
/// passed on (docs/decisions/0019-socketio.md).
public final class EngineServer: Sendable {
    public static let path = "/socket.io"

    private let instance: String
    private let limits: ChatLimits
    private let trusted: TrustedNetworks
    private let passOn: (any PassOn)?
    private let errors: ChatErrors
    private let counts: EngineCounts
    /// By loop.
    let engines: [EngineLoop]
    private let sockets: [WebSocketLoop]

    /// - Parameters:
    ///   - instance: of this process, as in `chat_instances`; letters, digits, `.`, `_` and `-`.
    ///   - trusted: proxies whose word about a client's address counts.
    ///   - addresses: what else of this process a client's address has; nil: nothing.
    ///   - passOn: nil where there is one instance only.
    ///   - log: hears of what no client can be told.
    ///   - delegate: hears of the sockets of the loop that it is made for.
    public init(
        instance: String, loops: LoopGroup, limits: ChatLimits = ChatLimits(), trusted: TrustedNetworks = .loopback,
        addresses: AddressBook? = nil, passOn: (any PassOn)? = nil, random: any RandomSource = SystemRandom(), log: Log,
        metrics: Metrics,
        delegate: (EventLoop) -> any SocketIODelegate
    ) {
        self.instance = instance
        self.limits = limits
        self.trusted = trusted
        self.passOn = passOn
        let counts = EngineCounts(addresses: addresses ?? AddressBook(limits: limits), limits: limits)
        self.counts = counts
        errors = ChatErrors(log: log)
        let parts = EngineParts(
            instance: instance, limits: limits, counts: counts, random: random, metrics: EngineMetrics(metrics))
        let engines = loops.loops.map { EngineLoop(on: $0, parts: parts, delegate: delegate($0)) }
        self.engines = engines
        sockets = engines.map { WebSocketLoop(on: $0.loop, limits: limits.engineWebSocket, delegate: $0) }
    }

    /// The loop's sessions, for `emit(_:to:)`.
    public func engine(of loop: EventLoop) -> EngineLoop { engines[loop.index] }

    /// Every method of the path, with and without its slash at the end.
    public func register(on router: inout Router) {
        for method in HTTPMethod.allowed where method != .head {
            router.on(method, Self.path, bodyMax: limits.socketIO.payloadBytesMax) { [self] request in
                try await handle(request, isPassedOn: false)
            }
        }
    }

    /// Ends every session, tells every client, and returns when they know, or soon after.
    public func drain() async {
        for engine in engines { await engine.drain() }
        for engine in engines { await engine.untilEmpty() }
        for loop in sockets { await loop.untilGone() }
    }

    // MARK: Requests

    /// - Parameter isPassedOn: another instance sent it here, so it is not passed on again.
    /// - Throws: what a body throws that does not come whole, and `HTTPError` for a malformed handshake.
    public func handle(_ request: HTTPRequest, isPassedOn: Bool) async throws -> HTTPResponse {
        if request.method == .options { return EngineAnswer.preflight(request) }
        let origin = request.headers["Origin"]
        let query: EngineQuery
        do throws(EngineError) {
            query = try EngineQuery(request.query, isGet: request.method == .get)
        } catch {
            return EngineAnswer.refusal(error, origin: origin)
        }
        guard let sid = query.sid else { return try open(request, query.transport, origin) }
        guard let id = EngineSessionID(sid) else { return EngineAnswer.refusal(.unknownSession, origin: origin) }
        guard id.instance == instance else {
            guard let passOn, !isPassedOn else { return EngineAnswer.refusal(.unknownSession, origin: origin) }
            guard query.transport == .polling, request.method == .get, request.body.isEmpty else {
                return try await passOn.answer(request, instance: id.instance)
            }
            return poll(request, of: id.instance, by: passOn)
        }
        guard id.loop < engines.count else { return EngineAnswer.refusal(.unknownSession, origin: origin) }
        switch (query.transport, request.method) {
        case (.polling, .get): return poll(id, origin)
        case (.polling, .post): return try await post(request, id, origin)
        case (.websocket, .get): return try await upgrade(request, id, origin)
        default: return EngineAnswer.refusal(.badRequest, origin: origin)
        }
    }

    /// A new session, on the loop of the request.
    private func open(
        _ request: HTTPRequest, _ transport: EngineQuery.Transport, _ origin: String?
    ) throws -> HTTPResponse {
        let place = request.loop.index
        let (engine, sockets) = (engines[place], sockets[place])
        let isWebSocket = transport == .websocket
        guard !isWebSocket || request.isUpgrade(to: "websocket") else {
            return EngineAnswer.refusal(.badRequest, origin: origin)
        }
        let handshake = isWebSocket ? try handshake(request) : nil
        guard !engine.assumeIsolated({ $0.isDraining }) else {
            return EngineAnswer.refusal(.ending, origin: origin)
        }
        let address = request.countedNetwork(trusting: trusted)
        guard let handshake else {
            return .later { answer in
                engine.assumeIsolated { $0.openPolling(.init(answer: answer, origin: origin), from: address) }
                return {}
            }
        }
        if let refusal = counts.refusal(address) {
            return EngineAnswer.refusal(refusal, origin: origin)
        }
        return Self.upgrade(handshake, origin) { upgraded in
            nonisolated(unsafe) let upgraded = upgraded
            Self.adopt(
                upgraded.stream, upgraded.leftover, handshake, for: .open(address), by: sockets, engine)
        }
    }

    private func poll(_ id: EngineSessionID, _ origin: String?) -> HTTPResponse {
        let (owner, secret) = (engines[id.loop], id.secret)
        return .later { answer in
            owner.run { $0.poll(secret, .init(answer: answer, origin: origin)) }
            return { owner.run { $0.pollLeft(secret, answer) } }
        }
    }

    /// A poll of another instance's session. It waits as one of ours does: a client that ends its side has left, and
    /// the owner must know, or what it sends next goes to nobody.
    private func poll(_ request: HTTPRequest, of instance: String, by passOn: any PassOn) -> HTTPResponse {
        .later { [errors] answer in
            let task = Task(executorPreference: request.loop) {
                do {
                    answer.send(try await passOn.answer(request, instance: instance))
                } catch {
                    answer.send(errors.response(to: error, request))
                }
            }
            return { task.cancel() }
        }
    }

    private func post(
        _ request: HTTPRequest, _ id: EngineSessionID, _ origin: String?
    ) async throws -> HTTPResponse {
        let (owner, secret) = (engines[id.loop], id.secret)
        if let error = await owner.beginPost(secret) { return EngineAnswer.refusal(error, origin: origin) }
        let body: [UInt8]
        do {
            body = try await request.body.collect(max: limits.socketIO.payloadBytesMax)
        } catch {
            let isTooBig = (error as? HTTPError)?.status == 413
            await owner.failPost(secret, isTooBig: isTooBig)
            if isTooBig { return EngineAnswer.tooBig(origin: origin) }
            throw error
        }
        return .later { answer in
            owner.run { $0.endPost(secret, body, .init(answer: answer, origin: origin)) }
            return {}
        }
    }

    // MARK: WebSockets

    private func handshake(_ request: HTTPRequest) throws(HTTPError) -> WebSocketHandshake {
        try WebSocketHandshake(request, protocols: [], compression: limits.engineWebSocket.compression)
    }

    /// The second transport of a session. One that is not wanted is opened and closed, as the protocol says.
    private func upgrade(
        _ request: HTTPRequest, _ id: EngineSessionID, _ origin: String?
    ) async throws -> HTTPResponse {
        let (owner, sockets, secret) = (engines[id.loop], sockets[id.loop], id.secret)
        guard request.isUpgrade(to: "websocket") else { return EngineAnswer.refusal(.badRequest, origin: origin) }
        let handshake = try handshake(request)
        guard await owner.knows(secret) else { return EngineAnswer.refusal(.unknownSession, origin: origin) }
        return Self.upgrade(handshake, origin) { upgraded in
            nonisolated(unsafe) let upgraded = upgraded
            guard !owner.loop.isCurrent else {
                return Self.adopt(
                    upgraded.stream, upgraded.leftover, handshake, for: .upgrade(secret), by: sockets, owner)
            }
            // To where the session is: messages then go out to it as to all others there, in one loop's turn.
            let leftover = upgraded.leftover
            upgraded.stream.move(to: owner.loop) { stream in
                nonisolated(unsafe) let stream = stream
                Self.adopt(stream, leftover, handshake, for: .upgrade(secret), by: sockets, owner)
            }
        }
    }

    private static func upgrade(
        _ handshake: WebSocketHandshake, _ origin: String?,
        _ callee: @escaping @Sendable (sending UpgradedStream) -> Void
    ) -> HTTPResponse {
        var headers = handshake.headers
        EngineAnswer.addAccess(to: &headers, origin)
        return HTTPResponse(status: 101, headers: headers, body: .upgrade(callee))
    }

    /// On the loop of both.
    private static func adopt(
        _ stream: TCPStream, _ leftover: [UInt8], _ handshake: WebSocketHandshake, for purpose: EngineLoop.Adopting,
        by sockets: WebSocketLoop, _ engine: EngineLoop
    ) {
        engine.assumeIsolated { $0.expect(purpose) }
        nonisolated(unsafe) let stream = stream
        sockets.assumeIsolated {
            $0.adopt(stream, leftover: leftover, compression: handshake.compression)
        }
        engine.assumeIsolated { $0.stopExpecting() }
    }
}

extension EngineServer {
    /// Sessions of all loops. For tests.
    var sessionCount: Int { counts.sessions }

    /// Whether a session of this process has a poll that waits. For tests.
    func isPollWaiting(_ id: EngineSessionID) async -> Bool { await engines[id.loop].isPollWaiting(id.secret) }
}

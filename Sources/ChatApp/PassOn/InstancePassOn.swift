import Core
import Crypto
import EventLoop
import HTTPServer
import ServiceKit

/// Passes requests on to the chat instances that hold their Socket.IO sessions, over HTTP/1.1 to the internal ports
/// that `chat_instances` names, so that polling and its upgrade need no sticky proxy
/// (docs/decisions/0017-passing-on.md).
public final class InstancePassOn: PassOn {
    private let seal: PassOnSeal
    private let clock: any ServiceClock
    private let limits: PassOnLimits
    private let hops: [HopLoop]
    private let directories: [InstanceDirectory]
    private let passed: Counter
    private let lost: Counter

    /// - Parameter loops: those of the server whose requests come here.
    public init(
        loops: LoopGroup, instances: any ChatInstanceRepository, keys: SigningKeys,
        limits: PassOnLimits = PassOnLimits(), clock: any ServiceClock, metrics: Metrics
    ) {
        seal = PassOnSeal(keys: keys)
        self.clock = clock
        self.limits = limits
        let tunnels = metrics.gauge(
            "martlet_chat_tunnels", "WebSockets whose session another instance has, and that are passed on to it.")
        passed = metrics.counter("martlet_chat_passed_on_total", "Requests that another instance has answered.")
        lost = metrics.counter(
            "martlet_chat_passed_on_lost_total", "Requests for an instance that could not be found or gave no answer.")
        hops = loops.loops.map { HopLoop(on: $0, limits: limits, tunnelsOpen: tunnels) }
        directories = loops.loops.map { InstanceDirectory(on: $0, instances: instances, limits: limits) }
    }

    /// The owner's answer. Called on the request's loop, with the request's body unread; returns when the owner has
    /// answered, which for a poll is as long as the owner makes it wait. The answer to an upgrade is a 101 whose
    /// connection is tunnelled to the owner.
    ///
    /// - Parameter instance: the owner's name as the session id has it. Clients write it, so it may be anything.
    /// - Returns: also 400 with code 1 when nobody of this name can be reached.
    /// - Throws: `HTTPError` 413 when the body is too large, 400 and 408 when it does not come, 503 when too much is
    ///   passed on already or the instances cannot be looked up; `CancellationError` when the client has left.
    public func answer(_ request: HTTPRequest, instance: String) async throws -> HTTPResponse {
        let index = request.loop.index
        // Before the body, of which anybody could send a megabyte for an instance that there is not.
        guard var address = try await look({ try await directories[index].address(of: instance) }) else {
            return unknown(request)
        }
        // What is not announced may have any length.
        let room = request.body.isEmpty ? 0 : min(request.body.contentLength ?? .max, limits.bodyBytesMax)
        guard await hops[index].reserve(room) else { throw Self.full }
        defer { hops[index].giveBack(room) }
        let body = request.body.isEmpty ? [] : try await request.body.collect(max: limits.bodyBytesMax)
        let outgoing = HopRequest(
            request, body: body,
            seal: seal.make(
                method: request.method, target: request.target, body: body, instance: instance, now: clock.seconds))
        var result = await hops[index].exchange(outgoing, with: address)
        if Self.isSomewhereElse(result) {
            // It may have come back at another address since the last look.
            let newer = try await look { try await directories[index].addressAgain(of: instance) }
            guard let newer, newer != address else { return unknown(request) }
            address = newer
            result = await hops[index].exchange(outgoing, with: address)
        }
        switch result {
        case .success(.answer(let answer)) where answer.status == PassOnListener.misdirectedStatus:
            return unknown(request)
        case .success(.answer(let answer)):
            passed.add()
            return answer.response
        case .success(.tunnel(let id, let answer)):
            passed.add()
            return tunnelled(answer, id, hops[index])
        case .failure(.left): throw CancellationError()
        case .failure(.full): throw Self.full
        case .failure(.unreachable), .failure(.broken), .failure(.tooSlow): return unknown(request)
        }
    }

    private static let full = HTTPError(503, "Too many requests are being passed on.")

    private func look(_ body: () async throws -> SocketAddress?) async throws -> SocketAddress? {
        do {
            return try await body()
        } catch let error as AppError where error.code == .unavailable {
            throw HTTPError(503, "The other instances cannot be looked up at the moment.")
        }
    }

    private func unknown(_ request: HTTPRequest) -> HTTPResponse {
        lost.add()
        return EngineAnswer.refusal(.unknownSession, origin: request.headers["Origin"])
    }

    /// Nobody is there, or somebody else.
    private static func isSomewhereElse(_ result: Result<HopLoop.Outcome, HopLoop.Failure>) -> Bool {
        switch result {
        case .failure(.unreachable): true
        case .success(.answer(let answer)): answer.status == PassOnListener.misdirectedStatus
        case .success(.tunnel), .failure: false
        }
    }

    private func tunnelled(_ answer: HopAnswer, _ id: Int, _ hops: HopLoop) -> HTTPResponse {
        HTTPResponse(
            status: answer.status, headers: answer.headers,
            body: .upgrade { upgraded in
                nonisolated(unsafe) let upgraded = upgraded
                hops.assumeIsolated { $0.open(id, to: upgraded) }
            })
    }

    /// Ends what is being passed on, so that clients go to another instance. Before the server is drained.
    public func drain() async {
        for hop in hops { await hop.drain() }
    }

    /// For tests: requests that wait, connections that are kept, and tunnels, of all loops.
    var counts: (waiting: Int, kept: Int, tunnels: Int) {
        get async {
            var counts = (waiting: 0, kept: 0, tunnels: 0)
            for hop in hops {
                counts.waiting += await hop.waitingCount
                counts.kept += await hop.idleCount
                counts.tunnels += await hop.tunnelCount
            }
            return counts
        }
    }
}

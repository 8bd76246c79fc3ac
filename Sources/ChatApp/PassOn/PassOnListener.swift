import Crypto
import EventLoop
import Foundation
import HTTPServer
import ServiceKit
import Synchronization

/// The port on which an instance takes what others pass on to it, and nothing else. No proxy leads here.
public final class PassOnListener: Sendable {
    /// RFC 9110 §15.5.20: sealed for another instance, so whoever sent it has an old address.
    static let misdirectedStatus = 421
    /// Refusals are logged at most this often: whoever can reach the port can make them.
    private static let warningSeconds: Int64 = 60

    private let instance: String
    private let seal: PassOnSeal
    private let clock: any ServiceClock
    private let log: Log
    private let bodyBytesMax: Int
    private let refused: Counter
    private let warnedAt = Mutex<Int64>(0)
    private let handler: HTTPHandler
    private let loops: LoopGroup
    private let address: SocketAddress
    private let server = Mutex<HTTPServer?>(nil)

    /// - Parameter handler: answers a request whose session should be here, and passes it on to nobody.
    public init(
        instance: String, loops: LoopGroup, address: SocketAddress, keys: SigningKeys,
        limits: PassOnLimits = PassOnLimits(), clock: any ServiceClock, log: Log, metrics: Metrics,
        handler: @escaping HTTPHandler
    ) {
        self.instance = instance
        self.loops = loops
        self.address = address
        seal = PassOnSeal(keys: keys)
        self.clock = clock
        self.log = log
        bodyBytesMax = limits.bodyBytesMax
        self.handler = handler
        refused = metrics.counter(
            "martlet_chat_internal_refused_total", "Requests on the internal port that no instance has sealed.")
    }

    /// - Returns: the address in use.
    /// - Throws: `AddressError` when the address is taken, or not one of this machine.
    public func start() async throws -> SocketAddress {
        let server = HTTPServer(
            loops: loops, address: address,
            onError: ChatErrors(log: log).response,
            handler: { [self] in try await answer($0) })
        let bound = try await server.start(setting: "MARTLET_INTERNAL_ADDRESS")
        self.server.withLock { $0 = server }
        return bound
    }

    public func drain(graceSeconds: Int) async {
        let server = server.withLock { $0 }
        await server?.drain(graceSeconds: graceSeconds)
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        let digest: String
        do throws(PassOnSeal.Refusal) {
            digest = try seal.check(request, instance: instance, now: clock.seconds)
        } catch {
            return refusal(error)
        }
        var request = request
        let body = request.body.isEmpty ? [] : try await request.body.collect(max: bodyBytesMax)
        guard PassOnSeal.matches(body, digest) else { return refusal(.unsealed) }
        request.body = HTTPBody(body)
        // What it was sent under is nobody's business from here on.
        request.headers.remove(PassOnSeal.header)
        return try await handler(request)
    }

    private func refusal(_ reason: PassOnSeal.Refusal) -> HTTPResponse {
        switch reason {
        case .misdirected:
            return HTTPError(Self.misdirectedStatus, "This is another instance.").response
        case .unsealed:
            refused.add()
            warn()
            return HTTPError(403, "This port is for the other instances.").response
        }
    }

    private func warn() {
        let now = clock.seconds
        let isDue = warnedAt.withLock { warnedAt in
            guard now - warnedAt >= Self.warningSeconds else { return false }
            warnedAt = now
            return true
        }
        guard isDue else { return }
        log.warning("refused a request on the internal port: do all chats have the same secret and the same time?")
    }
}

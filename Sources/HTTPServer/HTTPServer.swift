import EventLoop

/// An HTTP/1.1 server: a listener on every loop, and each connection served on the loop that accepted it.
public final class HTTPServer: Sendable {
    let loops: [HTTPLoop]
    /// As it was asked for.
    public let address: SocketAddress

    /// - Parameters:
    ///   - address: port 0 lets the kernel choose.
    ///   - onRefusal: makes the answer to what is not a request (400, 408, 414, 431, 501, 505); plain text by default.
    ///     Called on the loop; its body must be bytes.
    ///   - tracing: nil: requests are not traced.
    ///   - onError: makes the answer to what a handler threw. Called on the loop.
    public init(
        loops: LoopGroup, address: SocketAddress, limits: HTTPLimits = HTTPLimits(),
        onRefusal: @escaping @Sendable (HTTPError) -> HTTPResponse = { $0.response },
        tracing: HTTPTracing? = nil,
        onError: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse, handler: @escaping HTTPHandler
    ) {
        self.address = address
        self.loops = loops.loops.map {
            HTTPLoop(
                loop: $0, limits: limits, handler: handler, onError: onError, onRefusal: onRefusal, tracing: tracing)
        }
    }

    /// Starts to accept connections, alone on its address. Call once.
    /// - Returns: the address in use.
    /// - Throws: `LoopError` when the address is taken, or not one of this machine.
    public func start() async throws -> SocketAddress {
        var address = address
        do {
            for (index, loop) in loops.enumerated() { address = try await loop.listen(address, joins: index > 0) }
        } catch {
            for loop in loops { await loop.stopListening() }
            throw error
        }
        return address
    }

    /// Stops without losing a request: answers with `Connection: close`, accepts until the backlog is empty, closes the
    /// listeners, lets requests finish for `graceSeconds` at most, and closes idle connections last.
    public func drain(graceSeconds: Int) async {
        await withTaskGroup(of: Void.self) { group in
            for loop in loops { group.addTask { await loop.drain(graceSeconds: graceSeconds) } }
        }
    }

    /// Connections that are open now, all loops together.
    public var connectionCount: Int {
        get async {
            var count = 0
            for loop in loops { count += await loop.open }
            return count
        }
    }

    /// Whether every loop has begun to drain.
    public var isDraining: Bool {
        get async {
            for loop in loops where await !loop.draining { return false }
            return true
        }
    }

    /// Lets time pass for the deadlines at once. For tests.
    func advanceClock(seconds: Int) async {
        for loop in loops { await loop.advanceClock(seconds: seconds) }
    }
}

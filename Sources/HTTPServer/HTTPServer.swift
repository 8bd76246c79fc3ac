import EventLoop

/// An HTTP/1.1 server: a listener on every loop, and each connection served on the loop that accepted it.
public final class HTTPServer: Sendable {
    private let handler: HTTPHandler

    /// - Parameters:
    ///   - address: port 0 lets the kernel choose.
    ///   - onError: makes the answer to what a handler threw. Called on the loop.
    public init(
        loops: LoopGroup, address: SocketAddress, limits: HTTPLimits = HTTPLimits(),
        onError: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse, handler: @escaping HTTPHandler
    ) {
        self.handler = handler
    }

    /// Starts to accept connections.
    /// - Returns: the address in use.
    /// - Throws: `LoopError` when the address is taken, or not one of this machine.
    public func start() async throws -> SocketAddress {
        throw HTTPError(503, "The server does not listen yet.")
    }

    /// Stops without losing a request: answers with `Connection: close`, accepts until the backlog is empty, closes the
    /// listeners, lets requests finish for `graceSeconds` at most, and closes idle connections last.
    public func drain(graceSeconds: Int) async {}
}

import EventLoop

/// One request, given to a handler on the loop of its connection.
public struct HTTPRequest: Sendable {
    public let method: HTTPMethod
    /// Percent-decoded, without the query; valid UTF-8 without NUL and without a `..` segment.
    public let path: String
    public var headers: HTTPHeaders
    public var body: HTTPBody
    /// Who is at the other end of the connection: behind a proxy, the proxy.
    public let peer: SocketAddress
    /// What the route's `:names` stood for.
    public var parameters: [String: String] = [:]
    /// The loop on which the handler runs, and its child tasks with it. An unstructured `Task` of a handler needs
    /// `executorPreference: request.loop` to stay there.
    public let loop: EventLoop

    let head: RequestHead

    init(
        method: HTTPMethod, path: String, head: RequestHead, body: HTTPBody, peer: SocketAddress, loop: EventLoop
    ) {
        self.method = method
        self.path = path
        self.head = head
        headers = HTTPHeaders(received: head)
        self.body = body
        self.peer = peer
        self.loop = loop
    }

    /// A request made by hand, as for calling a handler without a connection.
    /// - Throws: `HTTPError` 400 when the target is not an origin-form of RFC 9112 §3.2 that the server would take.
    public init(
        _ method: HTTPMethod, _ target: String, headers: HTTPHeaders = [:], body: [UInt8] = [],
        peer: SocketAddress = SocketAddress(host: "127.0.0.1", port: 0), on loop: EventLoop
    ) throws(HTTPError) {
        let bytes = Array(target.utf8)
        guard bytes.count <= UInt16.max else { throw HTTPError(414, "The request target is too long.") }
        self.method = method
        path = try RequestPath.decode(bytes[...])
        head = RequestHead(bytes: bytes, fields: [], targetStart: 0, targetEnd: bytes.count)
        self.headers = headers
        self.body = HTTPBody(body)
        self.peer = peer
        self.loop = loop
    }

    /// As it came: path and query, percent-encoded.
    public var target: String { head.target }

    /// Raw, without its `?`; empty when there is none.
    public var query: String { head.query }

    /// Whether the client asks to go on in another protocol (RFC 9110 §7.8).
    public func isUpgrade(to name: String) -> Bool {
        headers.contains("Upgrade") && headers.hasElement("Connection", "upgrade")
            && headers.hasElement("Upgrade", name)
    }
}

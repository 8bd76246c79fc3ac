import HTTPServer

/// A socket, from any thread. When the socket is gone its methods do nothing.
public struct WebSocketHandle: Sendable, Hashable {
    public let id: Int
    /// Who owns it.
    public let actor: WebSocketLoop

    /// Sends a text message. The caller answers for its being UTF-8.
    public func send(text: [UInt8]) { send(SharedFrame(text: text)) }

    /// What is sent to a socket in one turn of its loop goes out in one write, in the order of the calls.
    public func send(_ frame: SharedFrame) {
        onLoop { [id] in $0.send(frame, to: id) }
    }

    /// Starts the closing handshake. The delegate hears no more of the socket.
    public func close(_ code: CloseCode, _ reason: String = "") {
        onLoop { [id] in $0.close(id, code, reason) }
    }

    /// Bytes that wait for the peer. On the socket's loop only.
    public var bufferedBytes: Int {
        actor.assumeIsolated { [id] in $0.bufferedBytes(id) }
    }

    private func onLoop(_ body: @escaping @Sendable (isolated WebSocketLoop) -> Void) {
        if actor.loop.isCurrent {
            actor.assumeIsolated { body($0) }
        } else {
            actor.loop.execute { [actor] in actor.assumeIsolated { body($0) } }
        }
    }

    public static func == (left: Self, right: Self) -> Bool { left.id == right.id && left.actor === right.actor }
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// Who hears of the sockets of one loop. Everything is called on the loop's thread.
public protocol WebSocketDelegate: AnyObject, Sendable {
    func opened(_ socket: WebSocketHandle)
    /// UTF-8, checked.
    func received(_ socket: WebSocketHandle, text: [UInt8])
    func received(_ socket: WebSocketHandle, binary: [UInt8])
    /// All that waited has been taken by the kernel: after a time in which `bufferedBytes` was above zero.
    func drained(_ socket: WebSocketHandle)
    /// The socket is over, not by the delegate's own `close`: the peer's code, or the one it was thrown out with; 1006
    /// when the connection broke. Called once, and nothing after it.
    func closed(_ socket: WebSocketHandle, _ code: CloseCode)
}

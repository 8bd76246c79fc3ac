import HTTPServer
import JSON
import SocketIO

/// Who hears of the Socket.IO sockets of one loop. Everything is called on the loop's thread.
public protocol SocketIODelegate: AnyObject, Sendable {
    /// A client asks for a namespace. The answer is `accept()` or `refuse(…)`, now or later; until then the client may
    /// say nothing.
    /// - Parameter auth: an object of the client's, as a rule with a token in it; nil when it sent none.
    func connect(_ socket: SocketIOHandle, namespace: String, auth: JSONValue?)

    /// A client emits. Whether binary values are welcome is for the delegate to say: they are in `attachments`.
    func event(_ socket: SocketIOHandle, _ event: SocketEvent)

    /// A client acknowledges what it was sent with this id.
    func acknowledged(_ socket: SocketIOHandle, id: Int64, arguments: [JSONValue])

    /// All that waited has been taken, by a poll or by the kernel for a WebSocket: after a time in which
    /// `bufferedBytes` was above zero, for every namespace of the session.
    func drained(_ socket: SocketIOHandle)

    /// The socket is over, not by the delegate's own `refuse` or `disconnect`. Called once, and nothing after it.
    func disconnected(_ socket: SocketIOHandle)
}

extension SocketIODelegate {
    /// Whoever asks for no acknowledgements gets none.
    public func acknowledged(_ socket: SocketIOHandle, id: Int64, arguments: [JSONValue]) {}

    /// Whoever holds nothing back for slow readers need not hear of it.
    public func drained(_ socket: SocketIOHandle) {}
}

/// The way to sessions that other instances own.
public protocol PassOn: Sendable {
    /// Has the instance that owns the session answer, one hop away. The answer is the owner's as it stands; when the
    /// owner is gone it is 400 with code 1 (`EngineAnswer.refusal(.unknownSession, …)`).
    /// - Parameter instance: from the sid, so whatever the client wrote there: it may name nobody.
    func answer(_ request: HTTPRequest, instance: String) async throws -> HTTPResponse
}

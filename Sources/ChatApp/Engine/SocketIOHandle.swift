import JSON
import SocketIO

/// One client in one namespace, from any thread. When it is gone its methods do nothing. What one thread asks for
/// happens in that order; on the socket's own loop it happens at once.
public struct SocketIOHandle: Sendable, Hashable {
    /// Names a socket among those of its loop, for `EngineLoop.emit(_:to:)`.
    public struct ID: Sendable, Hashable {
        let session: Int
        let serial: Int32
    }

    public let id: ID
    /// Who owns it.
    public let engine: EngineLoop

    /// Lets the client in, which asked for the namespace.
    public func accept() {
        onLoop { [id] in $0.accept(id) }
    }

    /// Does not. The session stays open, and the client may ask again.
    /// - Parameters:
    ///   - message: shown to the client's program.
    ///   - data: valid JSON, as `data` beside the message.
    public func refuse(_ message: String, data: [UInt8]? = nil) {
        onLoop { [id] in $0.refuse(id, message, data: data) }
    }

    /// The namespace of the event must be the socket's; otherwise it is not sent.
    public func emit(_ event: SharedEvent) {
        onLoop { [id] in $0.emit(event, to: id) }
    }

    /// Answers an event that came with this number.
    /// - Parameter json: a JSON array, written out.
    public func acknowledge(_ number: Int64, json: [UInt8] = Array("[]".utf8), attachments: [[UInt8]] = []) {
        onLoop { [id] in $0.acknowledge(id, number, json: json, attachments: attachments) }
    }

    /// Ends the socket, which a client takes for the server's wish: it does not come back by itself. With `close` the
    /// session ends as well, whatever other namespaces it has; those are told to the delegate.
    public func disconnect(close: Bool) {
        onLoop { [id] in $0.disconnect(id, close: close) }
    }

    /// Bytes that wait for the client. On the socket's loop only.
    public var bufferedBytes: Int {
        engine.assumeIsolated { [id] in $0.bufferedBytes(id) }
    }

    /// Of the client, as `AddressBook` has it; nil where it is not known. On the socket's loop only.
    var address: String? {
        engine.assumeIsolated { [id] in $0.address(id) }
    }

    private func onLoop(_ body: @escaping @Sendable (isolated EngineLoop) -> Void) {
        if engine.loop.isCurrent {
            engine.assumeIsolated { body($0) }
        } else {
            engine.post(body)
        }
    }

    public static func == (left: Self, right: Self) -> Bool { left.id == right.id && left.engine === right.engine }
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

import Crypto
import JSON
import SocketIO
import WebSocket

/// Socket.IO on top of the sessions: namespaces, events, acknowledgements.
extension EngineLoop {
    func deliver(_ packet: EnginePacket, _ connection: EngineConnection) {
        // The delegate may have ended it by what came before in the same payload.
        guard !connection.isEnded else { return }
        for action in connection.sockets.received(packet, now: now) {
            guard !connection.isEnded else { return }
            switch action {
            case .connect(let serial, let namespace, let auth):
                delegate.connect(handle(connection, serial), namespace: namespace, auth: auth)
            case .event(let serial, let event):
                delegate.event(handle(connection, serial), event)
            case .acknowledged(let serial, let id, let answer):
                delegate.acknowledged(handle(connection, serial), id: id, arguments: answer.arguments)
            case .disconnected(let serial):
                delegate.disconnected(handle(connection, serial))
            case .reply(let packet):
                send(packet, SharedFrame(packet: packet), to: connection)
            case .close:
                perform(connection.session.close(now: now), connection)
            }
        }
    }

    /// Sends an event to many sockets of this loop, by their handles' ids: what is written is the same bytes for all.
    /// Those who are gone, not let in yet, or in another namespace are passed over.
    public func emit(_ event: SharedEvent, to ids: [SocketIOHandle.ID]) {
        guard event.frames.count == 1 else { return ids.forEach { emit(event, to: $0) } }
        let (packet, frame) = (event.packets[0], event.frames[0])
        var sockets: WebSocketLoop?
        var targets: [Int] = []
        targets.reserveCapacity(ids.count)
        for id in ids {
            guard let connection = target(id, of: event) else { continue }
            guard connection.session.transport == .webSocket, let webSocket = connection.webSocket else {
                send(packet, frame, to: connection)
                continue
            }
            sockets = webSocket.actor
            if case .write = connection.session.send(packet) { targets.append(webSocket.id) }
        }
        sockets?.assumeIsolated { [targets] in $0.send([frame], to: targets) }
    }

    private func target(_ id: SocketIOHandle.ID, of event: SharedEvent) -> EngineConnection? {
        guard let connection = connection(id.session), connection.sockets.isConnected(id.serial),
            connection.sockets.name(of: id.serial) == event.namespace
        else { return nil }
        return connection
    }

    func emit(_ event: SharedEvent, to id: SocketIOHandle.ID) {
        guard let connection = target(id, of: event) else { return }
        for (packet, frame) in zip(event.packets, event.frames) { send(packet, frame, to: connection) }
    }

    func acknowledge(_ id: SocketIOHandle.ID, _ number: Int64, json: [UInt8], attachments: [[UInt8]]) {
        guard let name = connection(id.session)?.sockets.name(of: id.serial) else { return }
        emit(
            SharedEvent(acknowledging: number, namespace: name, json: json, attachments: attachments), to: id)
    }

    func accept(_ id: SocketIOHandle.ID) {
        guard let connection = connection(id.session), !connection.isEnded else { return }
        let sid = Base64URL.encode(parts.random.bytes(15))
        guard let packet = connection.sockets.accept(id.serial, sid: sid) else { return }
        letIn(connection)
        send(packet, SharedFrame(packet: packet), to: connection)
    }

    func refuse(_ id: SocketIOHandle.ID, _ message: String, data: [UInt8]?) {
        guard let connection = connection(id.session), !connection.isEnded,
            let packet = connection.sockets.refuse(id.serial, message: message, data: data)
        else { return }
        send(packet, SharedFrame(packet: packet), to: connection)
    }

    func disconnect(_ id: SocketIOHandle.ID, close: Bool) {
        guard let connection = connection(id.session), !connection.isEnded,
            connection.sockets.name(of: id.serial) != nil
        else { return }
        if let packet = connection.sockets.disconnect(id.serial, now: now) {
            send(packet, SharedFrame(packet: packet), to: connection)
        }
        if close {
            perform(connection.session.close(now: now), connection)
        } else {
            schedule(connection)
        }
    }

    func address(_ id: SocketIOHandle.ID) -> String? { connection(id.session)?.address }

    func bufferedBytes(_ id: SocketIOHandle.ID) -> Int {
        guard let connection = connection(id.session) else { return 0 }
        return connection.session.buffered.bytes + (connection.webSocket?.bufferedBytes ?? 0)
    }
}

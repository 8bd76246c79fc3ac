import Core
import Crypto
import JSON
import SocketIO

/// An act in a room that was not known when it came: the user may have become its member a moment ago.
struct WaitingAct {
    let socket: Int
    let act: SocketIOHub.Act
    let ack: Int64?
}

/// What a client says.
extension SocketIOHub {
    enum Act: Equatable {
        case join(room: String)
        case exit(room: String)
        case send(room: String, text: String, id: String?)

        var room: String {
            switch self {
            case .join(let room), .exit(let room), .send(let room, _, _): room
            }
        }

        /// One object as the argument; what else it has is not for us.
        init(_ event: SocketEvent) throws(AppError) {
            guard ["join_room", "exit_room", "send_message"].contains(event.name) else {
                throw AppError(.notFound, "There is no such event.")
            }
            guard let argument = event.arguments.first, let room = argument.text("room") else {
                throw .invalid("room", "room is missing.")
            }
            switch event.name {
            case "join_room": self = .join(room: room)
            case "exit_room": self = .exit(room: room)
            default:
                guard let text = argument.text("text") else { throw .invalid("text", "text is missing.") }
                self = .send(room: room, text: text, id: argument.text("id"))
            }
        }
    }

    /// Acts of one hub that wait for the database.
    private static let waitingActsMax = 1_000
    /// What is echoed of a room's name: names of rooms are shorter.
    private static let echoBytesMax = 1_024

    func act(_ socket: SocketIOSocket, _ event: SocketEvent) {
        let room = event.arguments.first?.text("room")
        guard
            socket.acts.take(
                perSecond: limits.framesPerSecond + limits.sendsPerSecond,
                burst: limits.framesBurstMax + limits.sendsBurstMax, now: loop.nowMilliseconds)
        else { return fail(socket, room, "Too many events; slow down.", event.ack) }
        do throws(AppError) {
            perform(WaitingAct(socket: socket.number, act: try Act(event), ack: event.ack), socket, isLast: false)
        } catch {
            // Other events are none of our business, as with any server of this protocol.
            guard error.code != .notFound || event.ack != nil else { return }
            fail(socket, room, error.message, event.ack)
        }
    }

    /// - Parameter isLast: the user's rooms have just been read: what is not among them is not the user's.
    func perform(_ waiting: WaitingAct, _ socket: SocketIOSocket, isLast: Bool) {
        let ack = waiting.ack
        if case .exit(let name) = waiting.act {
            if let id = Room.id(inWireName: name), rooms[id]?.wireName == name { leave(socket, id) }
            return succeed(socket, ack)
        }
        guard let id = Room.id(inWireName: waiting.act.room) else {
            return fail(socket, waiting.act.room, Self.foreign, ack)
        }
        guard let room = socket.user.rooms[id] else {
            guard !isLast, waitingActs.count < Self.waitingActsMax else {
                return fail(socket, waiting.act.room, Self.foreign, ack)
            }
            waitingActs.append(waiting)
            return refresh([socket.user.id])
        }
        // The id alone is no name: what was said must be this room's, whole.
        guard room.wireName == waiting.act.room else { return fail(socket, waiting.act.room, Self.foreign, ack) }
        if case .send(_, let text, let id) = waiting.act {
            send(socket, room, text, id, ack)
        } else {
            join(socket, room)
            succeed(socket, ack)
        }
    }

    /// The same for a room of others and for one that does not exist.
    private static let foreign = "Not your room."

    private func join(_ socket: SocketIOSocket, _ room: SocketIORoom) {
        if !socket.joined.contains(room.id) {
            // The app shows one room. One that it forgot to leave gives way.
            if socket.joined.count >= limits.focusMax { leave(socket, socket.joined[0]) }
            socket.joined.append(room.id)
            room.joined.append(socket)
            room.reach()
        }
        // Joining again is asking again.
        if !room.late.contains(where: { $0 === socket }) { room.late.append(socket) }
        lateRooms.insert(room.id)
        flushSoon()
    }

    func leave(_ socket: SocketIOSocket, _ id: Room.ID) {
        socket.joined.removeAll { $0 == id }
        guard let room = rooms[id] else { return }
        room.joined.removeAll { $0 === socket }
        room.late.removeAll { $0 === socket }
        room.reach()
    }

    private func send(
        _ socket: SocketIOSocket, _ room: SocketIORoom, _ text: String, _ id: String?, _ ack: Int64?
    ) {
        let now = loop.nowMilliseconds
        guard socket.user.sends.take(perSecond: limits.sendsPerSecond, burst: limits.sendsBurstMax, now: now),
            parts.addresses.takeSend(socket.address, now: now)
        else {
            return fail(socket, room.wireName, "Too many messages; slow down.", ack)
        }
        guard !text.isEmpty else { return fail(socket, room.wireName, "text is empty.", ack) }
        guard text.utf8.count <= Message.bodyBytesMax else {
            return fail(socket, room.wireName, "text is limited to \(Message.bodyBytesMax) bytes of UTF-8.", ack)
        }
        let draft: Message.Draft
        do throws(AppError) {
            draft = try Message.Draft(
                roomID: room.id, senderID: socket.user.id, clientID: id ?? Base64URL.encode(parts.random.bytes(15)),
                body: text)
        } catch {
            return fail(socket, room.wireName, error.message, ack)
        }
        socket.refusals = 0
        var send = SendBatcher.Send(draft: draft, hub: place, socket: socket.number, ack: ack)
        parts.traces?.begin(&send)
        submit(send)
    }

    func answer(_ answer: SendBatcher.Answer) {
        guard let socket = sockets[answer.send.socket] else { return }
        let failure: String
        switch answer.result {
        case .done(.sent(let seq, _)): return acknowledge(socket, answer.send.ack, .sent(seq, duplicate: false))
        case .done(.duplicate(let seq)): return acknowledge(socket, answer.send.ack, .sent(seq, duplicate: true))
        case .done(.forbidden): failure = Self.foreign
        case .done(.refused(let refusal)): failure = refusal.message
        case .failed(_, let message): failure = message
        }
        fail(socket, rooms[answer.send.draft.roomID]?.wireName, failure, answer.send.ack)
    }

    // MARK: Answers

    private func succeed(_ socket: SocketIOSocket, _ ack: Int64?) {
        socket.refusals = 0
        acknowledge(socket, ack, .done)
    }

    private func acknowledge(_ socket: SocketIOSocket, _ ack: Int64?, _ answer: RoomAnswer) {
        if let ack { socket.handle.acknowledge(ack, json: answer.json) }
    }

    func fail(_ socket: SocketIOSocket, _ room: String?, _ message: String, _ ack: Int64?) {
        socket.refusals += 1
        guard socket.refusals <= limits.refusalsMax else { return expel(socket, Self.unauthorized) }
        if let ack { return socket.handle.acknowledge(ack, json: RoomAnswer.failed(message).json) }
        let room = room.flatMap { $0.utf8.count <= Self.echoBytesMax ? $0 : nil } ?? ""
        socket.handle.emit(SharedEvent(json: RoomPackets.error(room: room, message)))
    }
}

extension JSONValue {
    /// A member of an object, if it is a string.
    func text(_ name: String) -> String? {
        guard case .object(let members) = self, case .string(let text)? = members[name] else { return nil }
        return text
    }
}

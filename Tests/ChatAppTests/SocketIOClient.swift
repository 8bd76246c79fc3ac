import Foundation
import Synchronization
import TestSupport

@testable import ChatApp

/// The texts, rows and events of contracts/01 §5, as strictly as the app decodes them, and what we send besides.
struct AppText: Decodable, Equatable {
    let id: Int
    let source: Int
    let text: String
    let created: Int
}

struct AppRow: Decodable, Equatable {
    let id: Int
    let room: String
    let texts: [AppText]
    let createdAt: String
    let updatedAt: String
}

struct AppMessages: Decodable {
    let payload: [AppRow]
}

struct AppRoom: Decodable {
    let id: Int
    let room: String
    let texts: [AppText]
    let message: AppRow
}

/// Speaks Socket.IO over a WebSocket, as the app does: `40/,{…}`, one object per event.
final class SocketIOClient: Sendable {
    struct Event: Sendable {
        let name: String
        /// The one argument, a string.
        let text: String

        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            try JSONDecoder().decode(type, from: Data(text.utf8))
        }
    }

    enum Packet: Sendable {
        case connected
        case refused(String)
        case event(Event)
        case acknowledged(Int, String)
        case disconnected
        case end
    }

    struct Failure: Error { let description: String }

    let socket: WebSocketClient
    private let passed = Mutex<[Event]>([])

    init(port: Int, address: String? = nil) async throws {
        socket = try await WebSocketClient.connect(
            port: port, path: "/socket.io/?EIO=4&transport=websocket",
            headers: address.map { ["X-Forwarded-For": $0] } ?? [:], subprotocol: nil)
        let open = try await socket.nextText(seconds: 90)
        guard open.hasPrefix("0{") else { throw Failure(description: open) }
    }

    /// Events that were passed over while another was waited for.
    var events: [Event] { passed.withLock { $0 } }

    func connect(_ token: String?) {
        socket.send(token.map { #"40/,{"token":"\#($0)"}"# } ?? "40/,")
    }

    func emit(_ name: String, _ argument: String, ack: Int? = nil) {
        socket.send(#"42\#(ack.map(String.init) ?? "")["\#(name)",\#(argument)]"#)
    }

    func join(_ room: String, ack: Int? = nil) { emit("join_room", Self.object(["room": room]), ack: ack) }
    func exit(_ room: String, ack: Int? = nil) { emit("exit_room", Self.object(["room": room]), ack: ack) }

    func send(_ room: String, _ text: String, id: String? = nil, ack: Int? = nil) {
        var members = ["room": room, "text": text]
        members["id"] = id
        emit("send_message", Self.object(members), ack: ack)
    }

    private static func object(_ members: [String: String]) -> String {
        // Sorted or not, escaped slashes or not: as the app's encoder likes.
        String(decoding: (try? JSONSerialization.data(withJSONObject: members)) ?? Data(), as: UTF8.self)
    }

    /// The next packet; the server's pings are answered on the way.
    func next(seconds: Double = 300) async throws -> Packet {
        while true {
            let text: String
            switch try await socket.next(seconds: seconds) {
            case .text(let received): text = received
            case .closed, .end: return .end
            default: continue
            }
            if text == "2" {
                socket.send("3")
                continue
            }
            return try Self.parse(text)
        }
    }

    private static func parse(_ text: String) throws -> Packet {
        let body = text.dropFirst(2)
        switch text.prefix(2) {
        case "40": return .connected
        case "41": return .disconnected
        case "42":
            let values = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [Any] ?? []
            guard values.count == 2, let name = values[0] as? String, let text = values[1] as? String else {
                throw Failure(description: text)
            }
            return .event(Event(name: name, text: text))
        case "43":
            let digits = body.prefix { $0.isNumber }
            return .acknowledged(Int(digits) ?? -1, String(body.dropFirst(digits.count)))
        case "44":
            let object = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any] ?? [:]
            return .refused(object["message"] as? String ?? "")
        default: throw Failure(description: text)
        }
    }

    /// The next event of this name; others are remembered.
    func event(_ name: String) async throws -> Event {
        while true {
            switch try await next() {
            case .event(let event):
                if event.name == name { return event }
                passed.withLock { $0.append(event) }
            case .end, .disconnected, .refused: throw Failure(description: "no \(name): the connection ended")
            case .connected, .acknowledged: continue
            }
        }
    }

    func acknowledgement(_ id: Int) async throws -> String {
        while true {
            switch try await next() {
            case .acknowledged(id, let json): return json
            case .event(let event): passed.withLock { $0.append(event) }
            case .end, .disconnected, .refused: throw Failure(description: "no answer: the connection ended")
            case .connected, .acknowledged: continue
            }
        }
    }

    func messages() async throws -> AppMessages { try await event("messages").decode(AppMessages.self) }
    func room() async throws -> AppRoom { try await event("room_messages").decode(AppRoom.self) }

    /// The room's state, as soon as it ends with this text.
    @discardableResult
    func room(endingWith text: String) async throws -> AppRoom {
        while true {
            let state = try await room()
            if state.texts.last?.text == text { return state }
        }
    }

    /// The list, as soon as a row ends with this text.
    @discardableResult
    func messages(with text: String) async throws -> AppMessages {
        while true {
            let list = try await messages()
            if list.payload.contains(where: { $0.texts.last?.text == text }) { return list }
        }
    }

    /// Why the connection was refused.
    func refusal() async throws -> String {
        while true {
            switch try await next() {
            case .refused(let message): return message
            case .connected, .end, .disconnected: throw Failure(description: "not refused")
            default: continue
            }
        }
    }

    /// Whatever was due before has come when this returns.
    func settle() async throws {
        emit("exit_room", #"{"room":"none"}"#, ack: 999_999)
        _ = try await acknowledgement(999_999)
    }
}

extension Instance {
    /// A client of Socket.IO that is connected.
    func socketIO(user: Int, session: Int64? = nil) async throws -> SocketIOClient {
        let client = try await SocketIOClient(port: port)
        client.connect(Self.token(user: user, session: session, kind: .long))
        guard case .connected = try await client.next() else {
            throw SocketIOClient.Failure(description: "not connected")
        }
        return client
    }
}

import Core
import CoreHTTP
import Foundation
import JSON
import WebSocket

/// What the server says (docs/chat-protocol.md), as JSON text.
enum ServerFrame {
    /// What an `error` frame's `code` says.
    enum ErrorCode: String {
        case forbidden, invalid, unavailable
        case notFound = "not_found"
        case tooMany = "too_many"
    }

    static func ready(user: User.ID, instance: String, rooms: [Room]) -> [UInt8] {
        frame("ready", capacity: 64 + 96 * rooms.count) { json in
            json.field("user", user.value)
            json.field("instance", instance)
            json.array("rooms", rooms) { json, room in json.object { write(room, &$0) } }
        }
    }

    /// A room that the user has become a member of while connected.
    static func room(_ room: Room) -> [UInt8] {
        frame("room") { json in json.object("room") { write(room, &$0) } }
    }

    /// A room that the user is no longer a member of.
    static func left(_ room: Room.ID) -> [UInt8] {
        frame("left") { $0.field("room", room.value) }
    }

    static func message(_ message: Message) -> [UInt8] {
        frame("message", capacity: 160 + message.body.utf8.count) { json in
            json.field("room", message.roomID.value)
            write(message, &json)
        }
    }

    static func history(_ room: Room.ID, _ page: HistoryPage) -> [UInt8] {
        let bodies = page.messages.reduce(0) { $0 + $1.message.body.utf8.count }
        return frame("history", capacity: 64 + bodies + 160 * page.messages.count) { json in
            json.field("room", room.value)
            json.array("messages", page.messages) { json, folded in
                json.object { json in
                    write(folded.message, &json)
                    if let edited = folded.editedAt { json.field("edited", edited) }
                    if folded.isDeleted { json.field("deleted", true) }
                }
            }
            json.field("more", page.hasMore)
        }
    }

    static func unread(_ counts: [Room.ID: Int]) -> [UInt8] {
        frame("unread") { json in
            json.object("rooms") { json in
                for (room, count) in counts.sorted(by: { $0.key < $1.key }) {
                    json.key(text: String(room.value))
                    json.value(count)
                }
            }
        }
    }

    /// An acknowledgement, or the reason why there is none.
    static func answer(_ answer: SendBatcher.Answer) -> [UInt8] {
        let (room, id) = (answer.send.draft.roomID, answer.send.draft.clientID)
        return switch answer.result {
        case .done(.sent(let seq, let at)): ack(room, id, seq: seq, at: at)
        case .done(.duplicate(let seq)): ack(room, id, seq: seq, at: nil)
        case .done(.forbidden): error(.forbidden, "Not your room.", room: room, clientID: id)
        case .done(.refused(let refusal)): error(refusal.code, refusal.message, room: room, clientID: id)
        case .failed(let code, let message): error(code, message, room: room, clientID: id)
        }
    }

    static func ack(_ room: Room.ID, _ clientID: String, seq: Int64, at: Date?) -> [UInt8] {
        frame("ack") { json in
            json.field("room", room.value)
            json.field("id", clientID)
            json.field("seq", seq)
            if let at { json.field("at", at) } else { json.field("duplicate", true) }
        }
    }

    static func error(
        _ code: ErrorCode, _ message: String, room: Room.ID? = nil, clientID: String? = nil
    ) -> [UInt8] {
        frame("error") { json in
            json.field("code", code.rawValue)
            if let room { json.field("room", room.value) }
            if let clientID { json.field("id", clientID) }
            json.field("message", message)
        }
    }

    static func reset(_ room: Room.ID, lastSeq: Int64) -> [UInt8] {
        frame("reset") { json in
            json.field("room", room.value)
            json.field("last_seq", lastSeq)
        }
    }

    static func read(_ mark: ReadMark) -> [UInt8] {
        frame("read") { json in
            json.field("room", mark.room.value)
            json.field("user", mark.user.value)
            json.field("seq", mark.seq)
        }
    }

    static func typing(_ room: Room.ID, _ user: User.ID) -> [UInt8] {
        frame("typing") { json in
            json.field("room", room.value)
            json.field("user", user.value)
        }
    }

    static func joined(_ room: Room.ID, online: [User.ID]) -> [UInt8] {
        frame("joined") { json in
            json.field("room", room.value)
            json.array("online", online) { $0.value($1.value) }
        }
    }

    static func presence(_ user: User.ID, online: Bool) -> [UInt8] {
        frame("presence") { json in
            json.field("user", user.value)
            json.field("online", online)
        }
    }

    private static func frame(
        _ type: StaticString, capacity: Int = 128, _ body: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        var json = JSONWriter(capacity: capacity)
        json.object { json in
            json.field("type", "\(type)")
            body(&json)
        }
        return json.finish()
    }

    private static func write(_ room: Room, _ json: inout JSONWriter) {
        json.field("id", room.id.value)
        json.field("name", room.wireName)
        json.field("last_seq", room.lastSeq)
        json.field("last_read_seq", room.lastReadSeq)
    }

    private static func write(_ message: Message, _ json: inout JSONWriter) {
        json.field("seq", message.seq)
        json.field("sender", message.senderID.value)
        json.field("kind", message.kind.rawValue)
        if let target = message.targetSeq { json.field("target", target) }
        if let id = message.clientID { json.field("id", id) }
        json.field("body", message.body)
        if let media = message.mediaID { json.field("media", media.value) }
        json.field("at", message.createdAt)
    }
}

extension Message.Refusal {
    var code: ServerFrame.ErrorCode {
        switch self {
        case .target, .media: .notFound
        case .edits: .invalid
        }
    }

    var message: String {
        switch self {
        case .target: "There is no such text of yours."
        case .media: "There is no such attachment of yours."
        case .edits: "A text can be edited \(Message.editsMax) times."
        }
    }
}

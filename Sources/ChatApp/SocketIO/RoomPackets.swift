import Core
import Foundation
import JSON

/// The events of contracts/01 §5, as the JSON arrays of their packets. Each has one argument, a string of JSON.
enum RoomPackets {
    /// Rows of `messages`: contracts.
    static let rowsMax = 100

    /// - Parameter rows: of `row`, the most recently active room first.
    static func messages(_ rows: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + rows.reduce(0) { $0 + $1.count + 1 })
        bytes += #"["messages","{\"payload\":["#.utf8
        for (index, row) in rows.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += row
        }
        bytes += #"]}"]"#.utf8
        return bytes
    }

    /// A room in the list, escaped.
    static func row(_ room: SocketIORoom, _ texts: RoomTexts) -> [UInt8] {
        var bytes: [UInt8] = []
        appendRow(room, to: &bytes) { texts.appendRow(to: &$0) }
        return bytes
    }

    /// `{"message":row,"id":…,"room":…,"texts":[…]}`: the app reads the top level, its server sent the row.
    static func room(_ room: SocketIORoom, _ texts: RoomTexts) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512 + 2 * texts.byteCount)
        bytes += #"["room_messages","{\"message\":"#.utf8
        appendRow(room, to: &bytes) { texts.appendAll(to: &$0) }
        bytes.append(UInt8(ascii: ","))
        bytes += room.head
        bytes += #"\"texts\":["#.utf8
        texts.appendAll(to: &bytes)
        bytes += #"]}"]"#.utf8
        return bytes
    }

    /// What a send or a join came to, for those who asked for no acknowledgement. The app knows no such event.
    static func error(room: String, _ message: String) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.field("room", room)
            json.field("message", message)
        }
        return Array(#"["room_error",""#.utf8) + EscapedJSON.bytes(json.finish()) + Array(#""]"#.utf8)
    }

    /// The members of a room's object that do not change, escaped: `"id":…,"room":"…",`.
    static func head(_ room: ActiveRoom) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.field("id", room.id.value)
            json.field("room", room.wireName)
        }
        return EscapedJSON.bytes(Array(json.finish().dropFirst().dropLast())) + Array(",".utf8)
    }

    private static func appendRow(
        _ room: SocketIORoom, to bytes: inout [UInt8], _ texts: (inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "{"))
        bytes += room.head
        bytes += #"\"texts\":["#.utf8
        texts(&bytes)
        bytes += #"],\"createdAt\":\"\#(Timestamp.text(room.createdAt))\""#.utf8
        bytes += #",\"updatedAt\":\"\#(Timestamp.text(room.activeAt))\"}"#.utf8
    }
}

/// What an event came to, for the client that asked for an acknowledgement.
enum RoomAnswer {
    case done
    case sent(Int64, duplicate: Bool)
    case failed(String)

    /// The acknowledgement's one argument, in its array.
    var json: [UInt8] {
        var json = JSONWriter()
        json.array([self]) { json, answer in json.object { answer.write(to: &$0) } }
        return json.finish()
    }

    private func write(to json: inout JSONWriter) {
        switch self {
        case .done: json.field("ok", true)
        case .sent(let seq, let isDuplicate):
            json.field("ok", true)
            json.field("seq", seq)
            if isDuplicate { json.field("duplicate", true) }
        case .failed(let message): json.field("error", message)
        }
    }
}

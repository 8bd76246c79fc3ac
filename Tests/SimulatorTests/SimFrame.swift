import Core
import Crypto
import JSON
import Synchronization

/// A frame of the server, its members by name; those that it does not have are nil.
struct SimFrame {
    var type = ""
    var room: Int64?
    var seq: Int64?
    var target: Int64?
    var user: Int64?
    var sender: Int64?
    var kind: String?
    var id: String?
    var body: String?
    var code: String?
    var lastSeq: Int64?
    var rooms: [(id: Room.ID, lastSeq: Int64)] = []
    var messages: [SimFrame] = []
    /// Of `unread`, by room.
    var counts: [Room.ID: Int] = [:]
    var online: [User.ID] = []
    var isOnline: Bool?

    init() {}

    init(_ text: [UInt8]) throws(JSONFault) {
        var reader = JSONReader(text)
        self = try reader.document { reader throws(JSONFault) in try SimFrame(&reader) }
    }

    private init(_ reader: inout JSONReader) throws(JSONFault) {
        var frame = SimFrame()
        try reader.object { reader, name throws(JSONFault) in try frame.read(name, &reader) }
        self = frame
    }

    private mutating func read(_ name: String, _ reader: inout JSONReader) throws(JSONFault) {
        switch name {
        case "type": type = try reader.string()
        case "room":
            if try reader.kind() == .object {
                rooms = [try Self.room(&reader)]
            } else {
                room = try reader.integer()
            }
        case "target": target = try reader.integer()
        case "seq": seq = try reader.integer()
        case "user": user = try reader.integer()
        case "sender": sender = try reader.integer()
        case "kind": kind = try reader.string()
        case "id": id = try reader.string()
        case "body": body = try reader.string()
        case "code": code = try reader.string()
        case "last_seq": lastSeq = try reader.integer()
        case "rooms":
            guard try reader.kind() == .array else { return try readCounts(&reader) }
            var rooms: [(id: Room.ID, lastSeq: Int64)] = []
            try reader.array { reader throws(JSONFault) in rooms.append(try Self.room(&reader)) }
            self.rooms = rooms
        case "messages":
            var messages: [SimFrame] = []
            try reader.array { reader throws(JSONFault) in messages.append(try SimFrame(&reader)) }
            self.messages = messages
        case "online":
            guard try reader.kind() == .array else {
                isOnline = try reader.bool()
                return
            }
            var users: [User.ID] = []
            try reader.array { reader throws(JSONFault) in users.append(User.ID(try reader.integer())) }
            online = users
        default: try reader.skipValue()
        }
    }

    private mutating func readCounts(_ reader: inout JSONReader) throws(JSONFault) {
        var counts: [Room.ID: Int] = [:]
        try reader.object { reader, name throws(JSONFault) in
            counts[Room.ID(Int64(name) ?? 0)] = Int(try reader.integer())
        }
        self.counts = counts
    }

    private static func room(_ reader: inout JSONReader) throws(JSONFault) -> (id: Room.ID, lastSeq: Int64) {
        var (id, lastSeq): (Int64, Int64) = (0, 0)
        try reader.object { reader, name throws(JSONFault) in
            switch name {
            case "id": id = try reader.integer()
            case "last_seq": lastSeq = try reader.integer()
            default: try reader.skipValue()
            }
        }
        return (Room.ID(id), lastSeq)
    }
}

/// RFC 6455 as a client has it: masked frames out, whole frames of the server in.
struct SimFrames {
    enum Frame {
        case text([UInt8])
        case ping
        case close(UInt16)
        case other(UInt8)
    }

    private var bytes: [UInt8] = []

    mutating func feed(_ more: [UInt8]) { bytes += more }

    mutating func next() -> Frame? {
        guard bytes.count >= 2 else { return nil }
        var (header, count) = (2, Int(bytes[1]))
        if count == 126 {
            guard bytes.count >= 4 else { return nil }
            (header, count) = (4, Int(bytes[2]) << 8 | Int(bytes[3]))
        } else if count == 127 {
            guard bytes.count >= 10 else { return nil }
            (header, count) = (10, bytes[2..<10].reduce(0) { $0 << 8 | Int($1) })
        }
        guard bytes.count >= header + count else { return nil }
        let payload = Array(bytes[header..<header + count])
        let opcode = bytes[0] & 0xF
        bytes.removeFirst(header + count)
        switch opcode {
        case 0x1: return .text(payload)
        case 0x9: return .ping
        case 0x8: return .close(payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : 1005)
        default: return .other(opcode)
        }
    }

    /// The mask is zero: it changes nothing, and what is said can be read in a trace.
    static func masked(_ payload: [UInt8], opcode: UInt8 = 0x1) -> [UInt8] {
        var frame: [UInt8] = [0x80 | opcode]
        if payload.count < 126 {
            frame.append(0x80 | UInt8(payload.count))
        } else {
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        return frame + [0, 0, 0, 0] + payload
    }
}

/// The tokens of all simulations: the same, so they are signed once.
enum SimTokens {
    private static let made = Mutex<[User.ID: String]>([:])
    private static let signer = TokenSigner(keys: SimInstance.keys)

    static func token(_ user: User.ID) -> String {
        made.withLock { made in
            if let token = made[user] { return token }
            let token = signer.sign(
                Claims(
                    id: user.value, sid: user.value, gen: 0, typ: .access, iat: SimClock.start - 10,
                    exp: SimClock.start + 30 * 86_400))
            made[user] = token
            return token
        }
    }
}

import Core
import JSON

/// What a client says (docs/chat-protocol.md).
enum ClientFrame: Equatable {
    case hello(token: String, resume: [Room.ID: Int64])
    /// A text, an edit or a deletion.
    case send(room: Room.ID, clientID: String, content: Message.Draft.Content)
    case history(room: Room.ID, from: HistoryPage.Start, limit: Int?)
    case unread(rooms: [Room.ID])
    case read(room: Room.ID, seq: Int64)
    case typing(room: Room.ID)
    case join(room: Room.ID)
    case leave(room: Room.ID)

    /// What is wrong with a frame, with what it said of itself, so that the client knows which.
    struct Fault: Error, Equatable {
        let message: String
        var room: Room.ID?
        var clientID: String?
        /// What a hello says to have cannot be: to sign in again does not help.
        var isOfResume = false
    }

    /// Ours have two levels.
    private static let limits = {
        var limits = JSONLimits()
        limits.depthMax = 16
        return limits
    }()

    /// Rooms whose unread texts are counted for one question: a screen of conversations, and more.
    static let unreadRoomsMax = 100

    /// - Parameter resumeMax: more rooms than this in a resume map are no client of ours.
    static func parse(_ text: [UInt8], resumeMax: Int) throws(Fault) -> ClientFrame {
        var members = Members()
        var isInResume = false
        do throws(JSONFault) {
            var reader = JSONReader(text, limits: Self.limits)
            try reader.document { reader throws(JSONFault) in
                try reader.object { reader, key throws(JSONFault) in
                    isInResume = key == "resume"
                    try members.read(key, from: &reader, resumeMax: resumeMax)
                    isInResume = false
                }
            }
        } catch {
            throw Fault(
                message: "The frame cannot be read: \(error.reason), at byte \(error.offset).", room: members.room,
                clientID: members.id, isOfResume: isInResume)
        }
        return try members.frame()
    }

    /// Everything a frame may have. Unknown members are for later versions and passed over.
    private struct Members {
        var type: String?
        var token: String?
        var resume: [Room.ID: Int64] = [:]
        var room: Room.ID?
        var id: String?
        var body: String?
        var media: Media.ID?
        var target: Int64?
        var rooms: [Room.ID]?
        var before: Int64?
        var after: Int64?
        var limit: Int64?
        var seq: Int64?

        mutating func read(_ key: String, from reader: inout JSONReader, resumeMax: Int) throws(JSONFault) {
            switch key {
            case "type": type = try reader.string()
            case "token": token = try reader.string()
            case "id": id = try reader.string()
            case "body": body = try reader.string()
            case "room": room = Room.ID(try reader.integer())
            case "media": media = Media.ID(try reader.integer())
            case "target": target = try reader.integer()
            case "before": before = try reader.integer()
            case "after": after = try reader.integer()
            case "limit": limit = try reader.integer()
            case "seq": seq = try reader.integer()
            case "rooms":
                var rooms: [Room.ID] = []
                try reader.array { reader throws(JSONFault) in
                    guard rooms.count < unreadRoomsMax else {
                        throw reader.fault("rooms has at most \(unreadRoomsMax) rooms")
                    }
                    rooms.append(Room.ID(try reader.integer()))
                }
                self.rooms = rooms
            case "resume":
                var resume: [Room.ID: Int64] = [:]
                try reader.object { reader, key throws(JSONFault) in
                    let seq = try reader.integer()
                    guard let room = Room.ID(text: key), seq >= 0 else {
                        throw reader.fault("resume maps room ids to seqs")
                    }
                    guard resume.count < resumeMax else {
                        throw reader.fault("resume has at most \(resumeMax) rooms")
                    }
                    resume[room] = seq
                }
                self.resume = resume
            default: try reader.skipValue()
            }
        }

        func frame() throws(Fault) -> ClientFrame {
            switch type {
            case "hello": .hello(token: try need(token, "token"), resume: resume)
            // Beside a file there need not be words.
            case "send": try act(.text(try media == nil ? need(body, "body") : body ?? "", media: media))
            case "edit": try act(.edit(try need(target, "target"), try need(body, "body")))
            case "delete": try act(.delete(try need(target, "target")))
            case "history":
                .history(room: try need(room, "room"), from: try start(), limit: limit.map { Int(clamping: $0) })
            case "unread": .unread(rooms: try need(rooms, "rooms"))
            case "read": .read(room: try need(room, "room"), seq: try need(seq, "seq"))
            case "typing": .typing(room: try need(room, "room"))
            case "join": .join(room: try need(room, "room"))
            case "leave": .leave(room: try need(room, "room"))
            case nil: throw fault("type is missing.")
            default: throw fault("There is no such type of frame.")
            }
        }

        private func act(_ content: Message.Draft.Content) throws(Fault) -> ClientFrame {
            .send(room: try need(room, "room"), clientID: try need(id, "id"), content: content)
        }

        private func start() throws(Fault) -> HistoryPage.Start {
            switch (before, after) {
            case (nil, nil): .newest
            case (let before?, nil): .before(before)
            case (nil, let after?): .after(after)
            default: throw fault("before and after exclude each other.")
            }
        }

        private func need<Value>(_ value: Value?, _ name: String) throws(Fault) -> Value {
            guard let value else { throw fault("\(name) is missing.") }
            return value
        }

        private func fault(_ message: String) -> Fault { Fault(message: message, room: room, clientID: id) }
    }
}

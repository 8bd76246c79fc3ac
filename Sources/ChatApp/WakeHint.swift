import Core

/// What a NOTIFY on `martlet_chat` says: who sent it, and what may be worth a look. Rows are the truth; a hint that is
/// missing, cut or wrong costs a moment only.
///
///     <sender>:12,15,-3    rooms 12 and 15 have messages, the members or marks of 3 changed
///     <sender>:*           more rooms than fit
///     <sender>~7,9         users 7 and 9 came or went
///     <sender>~*           more users than fit
///     <sender>!12/7,15/9   user 7 types in room 12, user 9 in 15: lossy, and in no row
enum WakeHint: Equatable {
    case rooms(sender: String, messages: [Room.ID], memberships: [Room.ID])
    case typing(sender: String, [Typing])
    /// Nil: anybody may have come or gone.
    case presence(sender: String, [User.ID]?)
    /// Anything may have changed. Other services send an empty payload.
    case anything(sender: String?)

    struct Typing: Hashable {
        let room: Room.ID
        let user: User.ID
    }

    static let bytesMax = 200
    static let roomsMax = 20
    static let usersMax = 20

    static func text(sender: String, messages: [Room.ID] = [], memberships: [Room.ID] = []) -> String {
        let ids = messages.map(\.value) + memberships.map { -$0.value }
        let text = "\(sender):" + ids.map(String.init).joined(separator: ",")
        return ids.count <= roomsMax && text.utf8.count <= bytesMax ? text : "\(sender):*"
    }

    /// - Parameter users: nil: anybody.
    static func text(sender: String, users: [User.ID]?) -> String {
        guard let users, users.count <= usersMax else { return "\(sender)~*" }
        let text = "\(sender)~" + users.map { String($0.value) }.joined(separator: ",")
        return text.utf8.count <= bytesMax ? text : "\(sender)~*"
    }

    /// As many as fit; the rest is lost.
    static func text(sender: String, typing: some Collection<Typing>) -> String {
        var text = "\(sender)!"
        for (index, typing) in typing.enumerated() {
            let item = (index == 0 ? "" : ",") + "\(typing.room)/\(typing.user)"
            guard text.utf8.count + item.utf8.count <= bytesMax else { break }
            text += item
        }
        return text
    }

    init(_ payload: String) {
        if let mark = payload.firstIndex(of: "!") {
            let items = payload[payload.index(after: mark)...].split(separator: ",").compactMap { item -> Typing? in
                let parts = item.split(separator: "/")
                guard parts.count == 2, let room = Room.ID(text: parts[0]), let user = User.ID(text: parts[1]) else {
                    return nil
                }
                return Typing(room: room, user: user)
            }
            self = .typing(sender: String(payload[..<mark]), items)
            return
        }
        if let mark = payload.firstIndex(of: "~") {
            let ids = payload[payload.index(after: mark)...].split(separator: ",").map { User.ID(text: $0) }
            let isWhole = !ids.isEmpty && !ids.contains(nil)
            self = .presence(sender: String(payload[..<mark]), isWhole ? ids.compactMap(\.self) : nil)
            return
        }
        guard let colon = payload.firstIndex(of: ":") else {
            self = .anything(sender: nil)
            return
        }
        let sender = String(payload[..<colon])
        let ids = payload[payload.index(after: colon)...].split(separator: ",").map { Int64($0) }
        guard !ids.isEmpty, !ids.contains(where: { $0 == nil || $0 == 0 || $0 == .min }) else {
            self = .anything(sender: sender)
            return
        }
        self = .rooms(
            sender: sender, messages: ids.compactMap { $0 }.filter { $0 > 0 }.map { Room.ID($0) },
            memberships: ids.compactMap { $0 }.filter { $0 < 0 }.map { Room.ID(-$0) })
    }
}

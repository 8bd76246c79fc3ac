import Foundation

/// A conversation. Its messages are numbered without gaps in the order in which they were committed.
public struct Room: Sendable, Equatable, Identifiable {
    public typealias ID = Identifier<Room>

    public let id: ID
    public let wireName: String
    public let lastSeq: Int64
    public let lastReadSeq: Int64
    public let createdAt: Date

    public init(id: ID, wireName: String, lastSeq: Int64, lastReadSeq: Int64, createdAt: Date) {
        self.id = id
        self.wireName = wireName
        self.lastSeq = lastSeq
        self.lastReadSeq = lastReadSeq
        self.createdAt = createdAt
    }

    /// contracts/01: `<representative>_<room id>_<applicant>`, which clients split at `_` to show parts 0 and 2. A `_`
    /// of a name is shown as U+2010.
    public static func wireName(representative: String, room: ID, applicant: String) -> String {
        "\(part(representative))_\(room)_\(part(applicant))"
    }

    /// By scalars: a search for the character `_` does not find one that carries a combining mark, and other clients
    /// than Swift's would split there.
    private static func part(_ name: String) -> String {
        var part = String(String.UnicodeScalarView(name.unicodeScalars.map { $0 == "_" ? "\u{2010}" : $0 }))
        // A name that begins with a combining mark, or ends with a letter that is joined to the next one, would swallow
        // the separator beside it: Swift's clients would find two parts. U+25CC is what such marks are shown on.
        if ("_" + part).first != "_" { part = "\u{25CC}" + part }
        if (part + "_").last != "_" { part += "\u{25CC}" }
        return part
    }

    /// The id in the middle of a wire name, if the name has the shape. Whether it is that room's name is another
    /// question: compare it whole.
    public static func id(inWireName name: String) -> ID? {
        let parts = name.utf8.split(separator: UInt8(ascii: "_"), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        return ID(text: Substring(parts[1]))
    }
}

/// A room as a list of conversations has it.
public struct ActiveRoom: Sendable, Equatable {
    public let id: Room.ID
    public let wireName: String
    public let lastSeq: Int64
    public let createdAt: Date
    /// When its last message was committed; a room without any: when it was made.
    public let activeAt: Date

    public init(id: Room.ID, wireName: String, lastSeq: Int64, createdAt: Date, activeAt: Date) {
        self.id = id
        self.wireName = wireName
        self.lastSeq = lastSeq
        self.createdAt = createdAt
        self.activeAt = activeAt
    }
}

/// The newest messages of a room.
public struct LastMessages: Sendable, Equatable {
    /// The room's last seq when they were read.
    public let lastSeq: Int64
    /// In order: texts and system messages, and the edits and deletions since the first of them.
    public let messages: [Message]
    /// There are no older texts.
    public let isWhole: Bool

    public init(lastSeq: Int64, messages: [Message], isWhole: Bool) {
        self.lastSeq = lastSeq
        self.messages = messages
        self.isWhole = isWhole
    }
}

public struct Message: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case text, system, edit, delete
    }

    /// Octets of UTF-8, as the CHECK counts.
    public static let bodyBytesMax = 65_536
    public static let clientIDLengthMax = 64
    /// Bodies of one page of one room: reading goes on with the next page.
    public static let pageBytesMax = 131_072
    /// The sender of system messages.
    public static let system = User.ID(0)
    /// The first message of an application's room (contracts).
    public static let acceptedBody = "Application accepted"

    public let roomID: Room.ID
    public let seq: Int64
    public let senderID: User.ID
    public let clientID: String?
    public let kind: Kind
    public let targetSeq: Int64?
    public let body: String
    public let createdAt: Date

    public init(
        roomID: Room.ID, seq: Int64, senderID: User.ID, clientID: String?, kind: Kind, targetSeq: Int64?, body: String,
        createdAt: Date
    ) {
        self.roomID = roomID
        self.seq = seq
        self.senderID = senderID
        self.clientID = clientID
        self.kind = kind
        self.targetSeq = targetSeq
        self.body = body
        self.createdAt = createdAt
    }

    /// A send that passed every rule that needs no database.
    public struct Draft: Sendable, Equatable {
        public let roomID: Room.ID
        public let senderID: User.ID
        public let clientID: String
        public let body: String

        public init(roomID: Room.ID, senderID: User.ID, clientID: String, body: String) throws(AppError) {
            guard !clientID.isEmpty, clientID.unicodeScalars.count <= Message.clientIDLengthMax,
                clientID.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else {
                throw .invalid("id", "id must have 1 to \(Message.clientIDLengthMax) characters, chosen by the client.")
            }
            guard !body.isEmpty else { throw .invalid("body", "body is required.") }
            guard body.utf8.count <= Message.bodyBytesMax else {
                throw .invalid("body", "body is limited to \(Message.bodyBytesMax) bytes of UTF-8.")
            }
            guard !body.utf8.contains(0) else { throw .invalid("body", "body may not have NUL characters.") }
            self.roomID = roomID
            self.senderID = senderID
            self.clientID = clientID
            self.body = body
        }
    }

    /// What became of a draft.
    public enum Outcome: Sendable, Equatable {
        case sent(seq: Int64, createdAt: Date)
        /// The same client id was there: its seq.
        case duplicate(seq: Int64)
        /// Not a member, or no such room: the sender is not told which.
        case forbidden
    }
}

import Foundation

/// What stands at a number of a room. An edit and a deletion are messages of their own, about an earlier one.
public struct Message: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case text, system, edit, delete
    }

    /// Octets of UTF-8, as the CHECK counts.
    public static let bodyBytesMax = 65_536
    public static let clientIDLengthMax = 64
    /// Edits of one text, about: its deletion empties all of them in one transaction, and a page of history reads past
    /// them. Those of one batch are let through together.
    public static let editsMax = 100
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
    /// Of an edit or a deletion: the text that it is about.
    public let targetSeq: Int64?
    /// Empty for a deletion, for a text that was deleted and its edits, and where a file says it all.
    public let body: String
    /// The file that goes with a text. It may be gone by now.
    public let mediaID: Media.ID?
    public let createdAt: Date
    /// Of the send (W3C Trace Context); nil where that is not traced. No client is told.
    public let traceparent: String?

    public init(
        roomID: Room.ID, seq: Int64, senderID: User.ID, clientID: String?, kind: Kind, targetSeq: Int64?, body: String,
        mediaID: Media.ID? = nil, createdAt: Date, traceparent: String? = nil
    ) {
        self.roomID = roomID
        self.seq = seq
        self.senderID = senderID
        self.clientID = clientID
        self.kind = kind
        self.targetSeq = targetSeq
        self.body = body
        self.mediaID = mediaID
        self.createdAt = createdAt
        self.traceparent = traceparent
    }

    /// A send that passed every rule that needs no database.
    public struct Draft: Sendable, Equatable {
        public enum Content: Sendable, Equatable {
            /// - Parameter media: an attachment of the sender's; the body may be empty then.
            case text(String, media: Media.ID?)
            /// A new body for a text of the sender's.
            case edit(Int64, String)
            /// A text of the sender's is to be read by nobody any more.
            case delete(Int64)
        }

        public let roomID: Room.ID
        public let senderID: User.ID
        public let clientID: String
        public let content: Content
        /// Stored with the message, so that whoever delivers it goes on with the trace.
        public var traceparent: String?

        public init(roomID: Room.ID, senderID: User.ID, clientID: String, content: Content) throws(AppError) {
            guard !clientID.isEmpty, clientID.unicodeScalars.count <= Message.clientIDLengthMax,
                clientID.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else {
                throw .invalid("id", "id must have 1 to \(Message.clientIDLengthMax) characters, chosen by the client.")
            }
            self.roomID = roomID
            self.senderID = senderID
            self.clientID = clientID
            self.content = content
            guard !body.isEmpty || kind == .delete || mediaID != nil else {
                throw .invalid("body", "body is required.")
            }
            guard body.utf8.count <= Message.bodyBytesMax else {
                throw .invalid("body", "body is limited to \(Message.bodyBytesMax) bytes of UTF-8.")
            }
            guard !body.utf8.contains(0) else { throw .invalid("body", "body may not have NUL characters.") }
            guard targetSeq.map({ $0 > 0 }) ?? true else { throw .invalid("target", "target must be above 0.") }
            guard mediaID.map({ $0.value > 0 }) ?? true else { throw .invalid("media", "media must be above 0.") }
        }

        /// A text without a file.
        public init(roomID: Room.ID, senderID: User.ID, clientID: String, body: String) throws(AppError) {
            try self.init(roomID: roomID, senderID: senderID, clientID: clientID, content: .text(body, media: nil))
        }

        public var kind: Kind {
            switch content {
            case .text: .text
            case .edit: .edit
            case .delete: .delete
            }
        }

        public var body: String {
            switch content {
            case .text(let body, _), .edit(_, let body): body
            case .delete: ""
            }
        }

        public var targetSeq: Int64? {
            switch content {
            case .text: nil
            case .edit(let target, _), .delete(let target): target
            }
        }

        public var mediaID: Media.ID? {
            if case .text(_, let media) = content { media } else { nil }
        }
    }

    /// What became of a draft.
    public enum Outcome: Sendable, Equatable {
        case sent(seq: Int64, createdAt: Date)
        /// The same client id was there: its seq.
        case duplicate(seq: Int64)
        /// Not a member, or no such room: the sender is not told which.
        case forbidden
        case refused(Refusal)
    }

    /// What a member asks for that cannot be.
    public enum Refusal: String, Sendable, CaseIterable {
        /// No text of the sender's that could be changed: not there, another's, the service's, an edit, deleted.
        case target
        /// The text has been edited `editsMax` times.
        case edits
        /// No attachment of the sender's, or it was rejected.
        case media
    }
}

/// A text or system message as it is now, its edits and its deletion folded in.
public struct FoldedMessage: Sendable, Equatable {
    /// With the newest body; empty and without a file when it was deleted.
    public let message: Message
    /// When it was edited last.
    public let editedAt: Date?
    public let isDeleted: Bool

    public init(message: Message, editedAt: Date? = nil, isDeleted: Bool = false) {
        self.message = message
        self.editedAt = editedAt
        self.isDeleted = isDeleted
    }
}

/// A part of a room's history, oldest first.
public struct HistoryPage: Sendable, Equatable {
    public enum Start: Sendable, Equatable {
        case newest
        /// Backwards from a seq, which is not in it.
        case before(Int64)
        /// Forwards from a seq, which is not in it.
        case after(Int64)
    }

    public let messages: [FoldedMessage]
    /// There is more in the direction of reading.
    public let hasMore: Bool

    public init(messages: [FoldedMessage], hasMore: Bool) {
        self.messages = messages
        self.hasMore = hasMore
    }
}

/// The newest messages of a room, as a list of conversations shows them.
public struct LastMessages: Sendable, Equatable {
    /// The room's last seq when they were read.
    public let lastSeq: Int64
    /// In order: texts and system messages as they are now, without those that were deleted.
    public let messages: [Message]
    /// There are no older ones.
    public let isWhole: Bool

    public init(lastSeq: Int64, messages: [Message], isWhole: Bool) {
        self.lastSeq = lastSeq
        self.messages = messages
        self.isWhole = isWhole
    }
}

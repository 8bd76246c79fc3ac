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

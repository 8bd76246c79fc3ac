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

    /// A wire name in which somebody who is erased has `deleted-<id>` instead of their name.
    /// - Parameters:
    ///   - username: as it is now; the name may have an earlier one.
    ///   - isApplicant: nil when the application is gone.
    ///   - isAlone: nobody but them and the applicant is in the room.
    public static func wireName(
        _ name: String, without person: User.ID, named username: String, isApplicant: Bool?, isAlone: Bool
    ) -> String {
        var parts = name.unicodeScalars.split(separator: "_", omittingEmptySubsequences: false).map { String($0) }
        guard parts.count == 3 else { return name }
        let (own, deleted) = (part(username), "deleted-\(person)")
        switch isApplicant {
        case true?: parts[2] = deleted
        case false?: if isAlone || parts[0] == own { parts[0] = deleted }
        case nil:
            // Which of the two is theirs can be told by the name only; neither may be an earlier one of theirs.
            let isKnown = parts[0] == own || parts[2] == own
            for index in [0, 2] where !isKnown || parts[index] == own { parts[index] = deleted }
        }
        return parts.joined(separator: "_")
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

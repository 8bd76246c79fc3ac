import Core
import Foundation
import JSON

/// The last texts of a room, encoded as they go out, edits and deletions folded in. Shared by all of a loop who look at
/// the room; a message is encoded once.
struct RoomTexts {
    /// How far back.
    enum Depth: Comparable {
        /// What the list of conversations shows.
        case list
        /// What an open room shows.
        case room

        /// Texts: contracts and the app's patience.
        var textsMax: Int { self == .list ? 20 : 200 }
        /// Encoded. A hundred rows of a list stay below 1,000,000 bytes, what clients take, and so do the texts of a
        /// room, which go out twice in one event: the longest body, all of it control characters, has 458,752.
        var bytesMax: Int { self == .list ? 9_000 : 460_000 }
    }

    private struct Entry {
        let seq: Int64
        let source: User.ID
        let createdAt: Date
        let whole: [UInt8]
        /// Where the whole text is more than a row of the list may have.
        let short: [UInt8]?
    }

    /// What is not here of later messages is not known yet.
    private(set) var seq: Int64
    private(set) var depth: Depth
    /// There are no older texts than these.
    private var isWhole: Bool
    private var entries: [Entry] = []
    private var bytes = 0

    init(_ last: LastMessages, depth: Depth) {
        seq = last.lastSeq
        self.depth = depth
        isWhole = last.isWhole
        entries.reserveCapacity(min(last.messages.count, depth.textsMax))
        for message in last.messages { fold(message) }
        trim()
    }

    /// The next message of the room. What is known already, or does not follow, changes nothing.
    mutating func apply(_ message: Message) {
        guard message.seq == seq + 1 else { return }
        seq = message.seq
        fold(message)
        trim()
    }

    /// Forgets what is further back, or stands by what it has.
    /// - Returns: false when that is less than is asked for: the texts have to be read.
    mutating func reach(_ depth: Depth) -> Bool {
        guard depth > self.depth else {
            self.depth = depth
            trim()
            return true
        }
        guard isWhole else { return false }
        self.depth = depth
        return true
    }

    /// A row's texts: the newest twenty within bounds. The newest is always there.
    func appendRow(to bytes: inout [UInt8]) {
        var left = Depth.list.bytesMax
        var first = entries.endIndex
        for index in entries.indices.reversed().prefix(Depth.list.textsMax) {
            left -= entries[index].whole.count + 1
            guard left >= 0 || index == entries.endIndex - 1 else { break }
            first = index
        }
        append(entries[first...], to: &bytes) { $0.short ?? $0.whole }
    }

    func appendAll(to bytes: inout [UInt8]) { append(entries[...], to: &bytes) { $0.whole } }

    /// Of all of them.
    var byteCount: Int { bytes }

    private func append(_ entries: ArraySlice<Entry>, to bytes: inout [UInt8], _ fragment: (Entry) -> [UInt8]) {
        for entry in entries {
            if entry.seq != entries.first?.seq { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: fragment(entry))
        }
    }

    /// What is shown of a file that came without words: these clients know texts only.
    private static let file = "[file]"

    // MARK: Folding

    private mutating func fold(_ message: Message) {
        switch message.kind {
        case .text, .system:
            // Deleted by now: its deletion comes, and finds nothing.
            guard !message.body.isEmpty || message.mediaID != nil else { return }
            let body = message.body.isEmpty ? Self.file : message.body
            add(Self.entry(message.seq, message.senderID, message.createdAt, body), at: entries.endIndex)
        case .edit, .delete:
            // An edit that was emptied is followed by the deletion.
            guard message.kind == .delete || !message.body.isEmpty else { return }
            // Of one's own texts, or by the service. The text may be further back than we go.
            guard let index = entries.lastIndex(where: { $0.seq == message.targetSeq }),
                message.senderID == entries[index].source || message.senderID == Message.system
            else { return }
            let old = entries.remove(at: index)
            bytes -= old.whole.count + 1
            if message.kind == .edit {
                add(Self.entry(old.seq, old.source, old.createdAt, message.body), at: index)
            }
        }
    }

    private mutating func add(_ entry: Entry, at index: Int) {
        entries.insert(entry, at: index)
        bytes += entry.whole.count + 1
    }

    private mutating func trim() {
        var gone = 0
        while entries.count - gone > depth.textsMax || (bytes > depth.bytesMax && entries.count - gone > 1) {
            bytes -= entries[gone].whole.count + 1
            gone += 1
        }
        guard gone > 0 else { return }
        entries.removeFirst(gone)
        isWhole = false
    }

    // MARK: Encoding

    private static func entry(_ seq: Int64, _ source: User.ID, _ createdAt: Date, _ body: String) -> Entry {
        let whole = fragment(seq, source, createdAt, body)
        let excess = whole.count - Depth.list.bytesMax
        return Entry(
            seq: seq, source: source, createdAt: createdAt, whole: whole,
            short: excess > 0 ? fragment(seq, source, createdAt, shortened(body)) : nil)
    }

    private static func fragment(_ seq: Int64, _ source: User.ID, _ createdAt: Date, _ text: String) -> [UInt8] {
        var json = JSONWriter(capacity: 96 + text.utf8.count)
        json.object { json in
            json.field("id", seq)
            json.field("source", source.value)
            json.field("text", text)
            json.field("created", Int64((createdAt.timeIntervalSince1970 * 1000).rounded()))
        }
        return EscapedJSON.bytes(json.finish())
    }

    /// As much as a row of the list holds beside the rest of the text's object, and a mark that there is more.
    private static func shortened(_ body: String) -> String {
        var left = Depth.list.bytesMax - 200
        let end = body.unicodeScalars.firstIndex { scalar in
            left -= UTF8.encode(scalar)?.reduce(0) { $0 + EscapedJSON.count(of: $1) } ?? 0
            return left < 0
        }
        return String(body.unicodeScalars[..<(end ?? body.unicodeScalars.endIndex)]) + "…"
    }
}

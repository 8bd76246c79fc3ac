import Foundation

/// Reads the records of a file one at a time, in bounded memory however large the file is: the elements of a JSON
/// array, of the array under "jobs" in an object, or objects one after the other (JSON lines). Comment lines that begin
/// with `//` may stand between values.
///
/// It only finds where records begin and end; what is wrong within one is its own and no other's.
final class RecordReader {
    enum Item: Equatable {
        case record(Record)
        case refused(Refusal)
    }

    struct Record: Equatable {
        let bytes: [UInt8]
        /// The line on which it begins, and its place among all, both from 1.
        let line: Int
        let index: Int
    }

    /// A larger record is refused without being read into memory.
    static let recordBytesMax = 4 * 1024 * 1024
    private static let chunkBytes = 256 * 1024

    private enum Place {
        /// Before, between or after values.
        case outside
        case comment
        /// Between the elements of the array.
        case array
        case record
        /// In what is left of an object whose array has been read.
        case tail
    }

    private let file: FileHandle
    /// Each line is a record of its own, so a broken one cannot reach into the next.
    private let isLines: Bool
    private var chunk: [UInt8] = []
    private var at = 0
    private var line = 1
    private var index = 0
    private var place = Place.outside
    private var isTopLevel = false
    private var isNested = false
    private var buffer: [UInt8] = []
    private var isOversize = false
    private var recordLine = 0
    private var depth = 0
    private var inString = false
    private var isEscaped = false
    private var isDone = false
    /// The file ends early or is no JSON: what was read stands, but it is not all.
    private(set) var isBroken = false

    init(path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path) else { throw ImportError("\(path) cannot be read") }
        self.file = file
        isLines = path.hasSuffix(".jsonl") || path.hasSuffix(".ndjson")
    }

    deinit { try? file.close() }

    func next() throws -> Item? {
        while !isDone {
            if at == chunk.count {
                chunk = [UInt8](try file.read(upToCount: Self.chunkBytes) ?? Data())
                at = 0
                if chunk.isEmpty { return finish() }
            }
            if let item = isLines ? scanLines() : scan() { return item }
        }
        return nil
    }

    /// Looks at bytes until a record is complete or the chunk is used up.
    private func scan() -> Item? {
        while at < chunk.count {
            switch place {
            case .outside:
                if let item = outside() { return item }
            case .comment:
                if chunk[at] == UInt8(ascii: "\n") { place = .outside } else { at += 1 }
            case .array: between()
            case .record:
                if let item = inside() { return item }
            case .tail: tail()
            }
        }
        return nil
    }

    private func outside() -> Item? {
        let byte = chunk[at]
        switch byte {
        case UInt8(ascii: "["):
            place = .array
            isNested = false
            at += 1
        case UInt8(ascii: "{"): begin(isTopLevel: true)
        case UInt8(ascii: "/"):
            place = .comment
            at += 1
        // White space, commas between objects, and the byte order mark.
        case 0x20, 0x0D, 0x09, UInt8(ascii: ","), 0xEF, 0xBB, 0xBF: at += 1
        case 0x0A:
            line += 1
            at += 1
        default:
            isDone = true
            isBroken = true
            return .refused(
                Refusal(line: line, index: index + 1, reason: "the file is neither a JSON array nor objects"))
        }
        return nil
    }

    private func between() {
        switch chunk[at] {
        case 0x20, 0x0D, 0x09, UInt8(ascii: ","): at += 1
        case 0x0A:
            line += 1
            at += 1
        case UInt8(ascii: "]"):
            at += 1
            place = isNested ? .tail : .outside
            depth = 1
        default: begin(isTopLevel: false)
        }
    }

    private func begin(isTopLevel: Bool) {
        place = .record
        self.isTopLevel = isTopLevel
        buffer.removeAll(keepingCapacity: true)
        isOversize = false
        recordLine = line
        depth = 0
        inString = false
        isEscaped = false
    }

    private func tail() {
        step(chunk[at])
        at += 1
        if depth == 0 { place = .outside }
    }

    /// Keeps the books of strings and brackets for one byte.
    private func step(_ byte: UInt8) {
        if byte == 0x0A { line += 1 }
        if inString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                inString = false
            }
            return
        }
        switch byte {
        case UInt8(ascii: "\""): inString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
    }

    private func inside() -> Item? {
        let start = at
        while at < chunk.count {
            let byte = chunk[at]
            if depth == 0, !inString, at > start || !buffer.isEmpty,
                byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == 0x0A
            {
                // A number or a word in the array: it ends before this byte.
                keep(start..<at)
                return complete()
            }
            if isTopLevel, depth == 1, !inString, byte == UInt8(ascii: "["), opensRecords(start..<at) {
                at += 1
                place = .array
                isNested = true
                return nil
            }
            step(byte)
            at += 1
            if depth <= 0, !inString, byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
                keep(start..<at)
                return complete()
            }
        }
        keep(start..<at)
        return nil
    }

    private func keep(_ range: Range<Int>) {
        guard !isOversize, buffer.count + range.count <= Self.recordBytesMax else {
            isOversize = true
            return
        }
        buffer.append(contentsOf: chunk[range])
    }

    /// Whether what comes before a bracket is `"jobs":`.
    private func opensRecords(_ range: Range<Int>) -> Bool {
        var before = (buffer.suffix(64) + chunk[range].suffix(64))[...]
        func dropSpace() { while let last = before.last, last <= 0x20 { before.removeLast() } }
        dropSpace()
        guard before.popLast() == UInt8(ascii: ":") else { return false }
        dropSpace()
        return before.suffix(6).elementsEqual("\"jobs\"".utf8)
    }

    private func complete() -> Item {
        place = isTopLevel ? .outside : .array
        index += 1
        if isOversize {
            return .refused(
                Refusal(line: recordLine, index: index, reason: "the record has over \(Self.recordBytesMax) bytes"))
        }
        return .record(Record(bytes: buffer, line: recordLine, index: index))
    }

    private func finish() -> Item? {
        isDone = true
        // Only a last line without its line end is still open here; the one before has been given out.
        if isLines, place == .record, !buffer.isEmpty || isOversize { return complete() }
        let refused: Bool
        switch place {
        case .outside, .comment: return nil
        case .record: refused = true
        case .array, .tail: refused = false
        }
        isBroken = true
        return .refused(
            Refusal(
                line: refused ? recordLine : line, index: index + 1,
                reason: refused ? "the file ends in the middle of this record" : "the file ends before its array does"))
    }

    private func scanLines() -> Item? {
        if place != .record { begin(isTopLevel: true) }
        guard let end = chunk[at...].firstIndex(of: 0x0A) else {
            keep(at..<chunk.count)
            at = chunk.count
            return nil
        }
        keep(at..<end)
        at = end + 1
        let isBlank = !isOversize && buffer.allSatisfy { $0 <= 0x20 }
        let isComment = buffer.starts(with: "//".utf8)
        defer { line += 1 }
        if isBlank || isComment {
            place = .outside
            return nil
        }
        return complete()
    }
}

/// A record that was not stored, and why. Lines and places count from 1.
struct Refusal: Equatable, Sendable {
    let line: Int
    let index: Int
    let reason: String
}

/// Why an import cannot go on.
struct ImportError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

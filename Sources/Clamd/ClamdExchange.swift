/// One question to clamd and its answer, without I/O: what is sent, and what that which comes back means.
///
/// Commands begin with "z": then commands and answers end with a NUL (clamd(8)). A question other than of a session is
/// answered once, and the connection ends; an answer counts when it has ended.
public struct ClamdExchange: Sendable {
    /// Of an answer. It is a line with the name of a signature.
    public static let answerBytesMax = 4096
    /// Of a signature's name. They have some 60 characters.
    static let signatureLengthMax = 300
    /// Of a wrong answer that an error repeats.
    static let excerptLengthMax = 100
    /// Of a piece of the file.
    public static let chunkBytesMax = 64 * 1024

    public static let ping = Array("zPING\0".utf8)
    public static let version = Array("zVERSION\0".utf8)
    public static let instream = Array("zINSTREAM\0".utf8)
    /// A piece of no length: the file ends.
    public static let end = lengthPrefix(0)

    /// Before each piece of the file: four bytes, in network order.
    public static func lengthPrefix(_ count: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) }
    }

    private var bytes: [UInt8] = []
    private var isAsked = false

    public init() {}

    /// All of the question has been sent. A verdict that came before is none: clamd has not seen the whole file.
    public mutating func asked() {
        // What is here already was said of a part.
        guard bytes.isEmpty else { return }
        isAsked = true
    }

    /// - Throws: `garbage` for more than any answer has.
    public mutating func received(_ piece: some Collection<UInt8>) throws(ClamdError) {
        guard bytes.count + piece.count <= Self.answerBytesMax else {
            throw .garbage("more than \(Self.answerBytesMax) bytes")
        }
        bytes.append(contentsOf: piece)
    }

    /// After the connection's end, of `instream`.
    /// - Throws: `ClamdError` when the answer is no verdict about the whole file.
    public func verdict() throws(ClamdError) -> ClamdVerdict {
        var (found, problem) = (String?.none, ClamdError?.none)
        for line in try lines() {
            if line == "INSTREAM size limit exceeded. ERROR" {
                problem = problem ?? .streamTooLong
            } else if line.hasSuffix(" ERROR") {
                problem = problem ?? .failed(line)
            } else if isAsked, let name = Self.signature(line) {
                found = found ?? name
            } else if !isAsked || line != "stream: OK" {
                throw .garbage(Self.excerpt(line))
            }
        }
        if let found { return .infected(found) }
        if let problem { throw problem }
        return .clean
    }

    /// After the connection's end, of any other command: its one line.
    public func text() throws(ClamdError) -> String {
        let lines = try lines()
        guard lines.count == 1, isAsked else { throw .garbage(Self.excerpt(lines.joined(separator: " "))) }
        return lines[0]
    }

    /// At least one, each of printable ASCII.
    private func lines() throws(ClamdError) -> [String] {
        guard bytes.last == 0 else {
            guard bytes.isEmpty else { throw .garbage(Self.excerpt(String(decoding: bytes, as: UTF8.self))) }
            throw .closed
        }
        let lines = bytes.dropLast().split(separator: 0, omittingEmptySubsequences: false)
        guard lines.allSatisfy({ line in !line.isEmpty && line.allSatisfy { (0x20...0x7E).contains($0) } }) else {
            throw .garbage(Self.excerpt(String(decoding: bytes, as: UTF8.self)))
        }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    /// `stream: NAME FOUND`
    private static func signature(_ line: String) -> String? {
        let (before, after) = ("stream: ", " FOUND")
        guard line.hasPrefix(before), line.hasSuffix(after), line.utf8.count > before.utf8.count + after.utf8.count
        else { return nil }
        let name = String(line.dropFirst(before.count).dropLast(after.count))
        return name.count <= signatureLengthMax ? name : nil
    }

    /// For a log: nothing that could be taken for more than a piece of text.
    private static func excerpt(_ text: String) -> String {
        let printable = text.unicodeScalars.prefix(excerptLengthMax).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }
        return "\"" + String(String.UnicodeScalarView(printable)) + "\""
    }
}

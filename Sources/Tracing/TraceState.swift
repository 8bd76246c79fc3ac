/// `tracestate` (W3C Trace Context §3.3): notes of other tracing systems, of which we make none.
public enum TraceState {
    public static let membersMax = 32
    /// The recommendation asks for as many at least.
    public static let lengthMax = 512
    static let keyLengthMax = 256
    static let valueLengthMax = 256

    /// The fields of a request as one. Nil when there is nothing in them or they are malformed: then none of it is
    /// passed on, and `traceparent` counts all the same.
    public static func whole(_ fields: [String]) -> String? {
        guard fields.reduce(0, { $0 + $1.utf8.count }) <= lengthMax else { return nil }
        var members: [String] = []
        var keys: Set<String> = []
        for member in fields.joined(separator: ",").split(separator: ",") {
            let member = trimmed(member.utf8)
            if member.isEmpty { continue }
            guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let (key, value) = (member[..<equals], member[(equals + 1)...])
            guard isKey(key), isValue(value), keys.insert(text(key)).inserted else { return nil }
            members.append(text(member))
        }
        guard (1...membersMax).contains(members.count) else { return nil }
        let whole = members.joined(separator: ",")
        return whole.utf8.count <= lengthMax ? whole : nil
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Without the spaces and tabs around it.
    private static func trimmed(_ text: some Sequence<UInt8>) -> ArraySlice<UInt8> {
        var bytes = Array(text)[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return bytes
    }

    private static func isKey(_ key: ArraySlice<UInt8>) -> Bool {
        guard let first = key.first, key.count <= keyLengthMax, isLetter(first) || isDigit(first) else { return false }
        return key.allSatisfy { isLetter($0) || isDigit($0) || Array("_-*/@".utf8).contains($0) }
            && key.count { $0 == UInt8(ascii: "@") } <= 1 && key.last != UInt8(ascii: "@")
    }

    /// Printable ASCII but for what separates members; a blank at its end was taken off before.
    private static func isValue(_ value: ArraySlice<UInt8>) -> Bool {
        !value.isEmpty && value.count <= valueLengthMax
            && value.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

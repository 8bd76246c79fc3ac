import Synchronization

/// The bytes of a request's head and where its parts are. Immutable but for the route, so that it may be shared by
/// whoever asks for a field.
final class RequestHead: Sendable {
    /// Offsets into the head; `HTTPLimits.headBytesMax` keeps them within 16 bits.
    struct Field {
        var nameStart: UInt16
        var nameEnd: UInt16
        var valueStart: UInt16
        var valueEnd: UInt16
    }

    let bytes: [UInt8]
    let fields: [Field]
    let targetStart: Int
    let targetEnd: Int
    /// The number of the route that was found, for whoever counts; -1 when there is none.
    let route = Atomic<Int32>(-1)

    init(bytes: [UInt8], fields: [Field], targetStart: Int, targetEnd: Int) {
        self.bytes = bytes
        self.fields = fields
        self.targetStart = targetStart
        self.targetEnd = targetEnd
    }

    var target: String { text(targetStart, targetEnd) }

    /// What follows the first `?`, or nothing.
    var query: String {
        guard let mark = bytes[targetStart..<targetEnd].firstIndex(of: UInt8(ascii: "?")) else { return "" }
        return text(mark + 1, targetEnd)
    }

    func name(_ field: Field) -> String { text(Int(field.nameStart), Int(field.nameEnd)) }
    func value(_ field: Field) -> String { text(Int(field.valueStart), Int(field.valueEnd)) }

    func first(_ name: String) -> Field? {
        for field in fields where isNamed(field, name) { return field }
        return nil
    }

    func isNamed(_ field: Field, _ name: String) -> Bool {
        let start = Int(field.nameStart)
        let name = name.utf8
        guard Int(field.nameEnd) - start == name.count else { return false }
        var index = start
        for byte in name {
            guard lowercase(bytes[index]) == lowercase(byte) else { return false }
            index += 1
        }
        return true
    }

    private func text(_ start: Int, _ end: Int) -> String {
        String(decoding: bytes[start..<end], as: UTF8.self)
    }
}

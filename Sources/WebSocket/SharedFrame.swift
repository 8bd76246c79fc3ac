import Synchronization

/// A frame of the server, built once and sent to any number of sockets of any loop.
public final class SharedFrame: Sendable {
    /// Header and payload, as they go to a socket without compression.
    public let bytes: [UInt8]
    private let headerCount: Int
    private let isText: Bool
    /// Made when the first socket wants it; empty when compressing does not pay.
    private let deflated = Mutex<[UInt8]?>(nil)

    /// A text message. The caller answers for its being UTF-8.
    public convenience init(text: [UInt8]) { self.init(opcode: 0x1, text) }

    public convenience init(binary: [UInt8]) { self.init(opcode: 0x2, binary) }

    static func ping(_ payload: [UInt8]) -> SharedFrame { SharedFrame(opcode: 0x9, payload) }
    static func pong(_ payload: [UInt8]) -> SharedFrame { SharedFrame(opcode: 0xA, payload) }

    /// - Parameter reason: cut to what a control frame holds, at the boundary of a character.
    static func close(_ code: CloseCode, reason: String) -> SharedFrame {
        guard code.isSendable else { return SharedFrame(opcode: 0x8, []) }
        var payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
        for character in reason {
            guard payload.count + character.utf8.count <= FrameReader.controlBytesMax else { break }
            payload += character.utf8
        }
        return SharedFrame(opcode: 0x8, payload)
    }

    private init(opcode: UInt8, _ payload: [UInt8]) {
        let header = Self.header(opcode, payload.count)
        headerCount = header.count
        isText = opcode == 0x1
        var whole: [UInt8] = []
        whole.reserveCapacity(header.count + payload.count)
        whole += header
        whole += payload
        bytes = whole
    }

    public var payload: ArraySlice<UInt8> { bytes[headerCount...] }
    var payloadCount: Int { bytes.count - headerCount }

    /// §5.2, without a mask: a server's frames have none.
    private static func header(_ opcode: UInt8, _ count: Int, compressed: Bool = false) -> [UInt8] {
        let first = 0x80 | (compressed ? 0x40 : 0) | opcode
        if count < 126 { return [first, UInt8(count)] }
        if count <= 0xFFFF { return [first, 126, UInt8(count >> 8), UInt8(count & 0xFF)] }
        return [first, 127] + (0..<8).map { UInt8(truncatingIfNeeded: UInt64(count) >> (56 - 8 * UInt64($0))) }
    }

    /// As it goes to a socket that reads compressed messages: smaller, or the same.
    func deflated(by deflater: Deflater, from bytesMin: Int) -> [UInt8] {
        guard payloadCount >= bytesMin, bytes[0] & 0x8 == 0 else { return bytes }
        return deflated.withLock { deflated in
            if let deflated { return deflated }
            var made = bytes
            if let small = deflater.deflate(payload), small.count < payload.count {
                made = Self.header(isText ? 0x1 : 0x2, small.count, compressed: true) + small
            }
            deflated = made
            return made
        }
    }
}

import Foundation

/// A packet of Engine.IO v4, as it stands in a WebSocket frame: for text the digit of its type and the data, for binary
/// the data alone, which is a message.
///
/// Source: the engine.io-protocol repository, README of v4, "Packet encoding".
public struct EnginePacket: Sendable, Equatable {
    public enum Kind: UInt8, Sendable {
        case open = 0x30
        case close, ping, pong, message, upgrade, noop
    }

    public let kind: Kind
    public let isBinary: Bool
    /// As in a frame. Shared by all who are sent the packet, never copied.
    public let encoded: [UInt8]

    /// A packet with text, which the caller answers for being UTF-8.
    public init(_ kind: Kind, _ text: some Collection<UInt8> = [UInt8]()) {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(1 + text.count)
        encoded.append(kind.rawValue)
        encoded += text
        self.kind = kind
        isBinary = false
        self.encoded = encoded
    }

    /// A binary message.
    public init(binary: [UInt8]) {
        kind = .message
        isBinary = true
        encoded = binary
    }

    /// A text frame.
    /// - Throws: `EngineFault` when it is empty or its type is unknown.
    public init(frame: [UInt8]) throws(EngineFault) {
        guard let first = frame.first, let kind = Kind(rawValue: first) else { throw .badPacket }
        self.kind = kind
        isBinary = false
        encoded = frame
    }

    /// What follows the type.
    public var data: ArraySlice<UInt8> { isBinary ? encoded[...] : encoded.dropFirst() }

    /// `2probe` and its answer, which try a new transport.
    static let probeText = Array("probe".utf8)
    static let probeAnswer = EnginePacket(.pong, probeText)
    static let ping = EnginePacket(.ping)
    static let noop = EnginePacket(.noop)
    static let close = EnginePacket(.close)
}

/// What a client did that ends its session.
public enum EngineFault: Error, Sendable {
    /// Malformed, of an unknown type, or of one that only the server sends.
    case badPacket
    case tooManyPackets
    /// Not UTF-8, or not Base64.
    case badText
}

/// Packets in the body of a poll or a POST: joined by `\u{1E}`, binary ones as `b` and Base64.
public enum EnginePayload {
    static let separator: UInt8 = 0x1E
    static let binaryMark = UInt8(ascii: "b")

    /// - Throws: `EngineFault`; then nothing of the payload counts.
    public static func parse(_ body: [UInt8], packetsMax: Int) throws(EngineFault) -> [EnginePacket] {
        guard String(validating: body, as: UTF8.self) != nil else { throw .badText }
        var packets: [EnginePacket] = []
        var start = 0
        while true {
            let end = body[start...].firstIndex(of: separator) ?? body.count
            guard packets.count < packetsMax else { throw .tooManyPackets }
            packets.append(try packet(body[start..<end]))
            guard end < body.count else { return packets }
            start = end + 1
        }
    }

    private static func packet(_ piece: ArraySlice<UInt8>) throws(EngineFault) -> EnginePacket {
        guard piece.first == binaryMark else { return try EnginePacket(frame: Array(piece)) }
        let text = String(decoding: piece.dropFirst(), as: UTF8.self)
        guard let data = Data(base64Encoded: text) else { throw .badText }
        return EnginePacket(binary: Array(data))
    }

    public static func encode(_ packets: [EnginePacket]) -> [UInt8] {
        if packets.count == 1, !packets[0].isBinary { return packets[0].encoded }
        var body: [UInt8] = []
        body.reserveCapacity(packets.reduce(packets.count) { $0 + size($1) })
        for (index, packet) in packets.enumerated() {
            if index > 0 { body.append(separator) }
            if packet.isBinary {
                body.append(binaryMark)
                body += Data(packet.encoded).base64EncodedData()
            } else {
                body += packet.encoded
            }
        }
        return body
    }

    /// Bytes of a packet in a payload.
    static func size(_ packet: EnginePacket) -> Int {
        packet.isBinary ? 1 + (packet.encoded.count + 2) / 3 * 4 : packet.encoded.count
    }
}

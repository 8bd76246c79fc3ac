import JSON
import SocketIO
import WebSocket

/// An event encoded once, for any number of sockets of any loop.
public final class SharedEvent: Sendable {
    public let namespace: String
    /// The text, then the attachments.
    let packets: [EnginePacket]
    let frames: [SharedFrame]

    /// - Parameters:
    ///   - arguments: writes the values one after the other; none is fine.
    ///   - attachments: what the arguments' `{"_placeholder":true,"num":n}` stand for.
    public convenience init(
        _ name: String, namespace: String = SocketPacket.root, attachments: [[UInt8]] = [],
        _ arguments: (inout JSONWriter) -> Void
    ) {
        var json = JSONWriter(capacity: 256)
        json.value(name)
        arguments(&json)
        let body = [UInt8(ascii: "[")] + json.finish() + [UInt8(ascii: "]")]
        let kind: SocketPacket.Kind = attachments.isEmpty ? .event : .binaryEvent
        self.init(namespace, kind, id: nil, json: body, attachments)
    }

    /// An event of the root namespace that was written out: a JSON array, its name first.
    convenience init(json: [UInt8]) { self.init(SocketPacket.root, .event, id: nil, json: json, []) }

    /// The answer to an event that asked for one.
    /// - Parameter json: a JSON array, written out.
    convenience init(acknowledging id: Int64, namespace: String, json: [UInt8], attachments: [[UInt8]]) {
        self.init(namespace, attachments.isEmpty ? .ack : .binaryAck, id: id, json: json, attachments)
    }

    private init(
        _ namespace: String, _ kind: SocketPacket.Kind, id: Int64?, json: [UInt8], _ attachments: [[UInt8]]
    ) {
        self.namespace = namespace
        let text = SocketPacket.message(
            kind, namespace: namespace, id: id, attachments: attachments.count, json: json)
        packets = [text] + attachments.map { EnginePacket(binary: $0) }
        frames = packets.map(SharedFrame.init(packet:))
    }

    /// Bytes of it on the wire, about.
    public var byteCount: Int { packets.reduce(0) { $0 + $1.encoded.count } }
}

extension SharedFrame {
    convenience init(packet: EnginePacket) {
        if packet.isBinary { self.init(binary: packet.encoded) } else { self.init(text: packet.encoded) }
    }
}

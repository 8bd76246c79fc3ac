import JSON
import Seeded
import Testing

@testable import SocketIO

@Suite("Packets, by chance") struct PacketFuzz {
    private static let samples = [
        "4hello\u{1E}bAQIDBA==", #"40/admin,{"token":"x"}"#, #"4512-/a,12["m",{"_placeholder":true,"num":0}]"#,
        #"42["message",1,"2",{"3":[true]}]"#, "41", "3", "43456[]", #"44{"message":"no"}"#, #"461-/b,7[1]"#,
    ]
    private static let words = [
        "\u{1E}", "b", "0", "/", ",", "-", "[", "]", "{}", "\"", "AQID", "=", #"{"_placeholder":true,"num":1}"#, "4",
        "51-",
    ]

    @Test("are taken or refused, and what is taken is written as it was")
    func packets() throws {
        try Fuzz("packets", rounds: 6_000).run { fuzz in
            let sample = (0..<fuzz.number(1...3)).map { _ in fuzz.pick(Self.samples) }.joined(separator: "\u{1E}")
            fuzz.input = fuzz.once(in: 8) ? Array(sample.utf8) : fuzz.mutated(Array(sample.utf8), words: Self.words)
            guard let packets = try? EnginePayload.parse(fuzz.input, packetsMax: 16) else { return }
            let payload = EnginePayload.encode(packets)
            try fuzz.checkEqual(try EnginePayload.parse(payload, packetsMax: 16), packets, "a payload written anew")
            let size = packets.reduce(packets.count - 1) { $0 + EnginePayload.size($1) }
            try fuzz.checkEqual(payload.count, size, "the size that was foretold")
            for packet in packets where packet.kind == .message && !packet.isBinary {
                guard let message = try? SocketPacket(packet.data, limits: SocketIOLimits()) else { continue }
                let again = SocketPacket.message(
                    message.kind, namespace: message.namespace, id: message.id, attachments: message.attachments,
                    json: message.data.map(Self.written) ?? [])
                try fuzz.checkEqual(try SocketPacket(again.data, limits: SocketIOLimits()), message, "written anew")
            }
        }
    }

    private static func written(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        write(value, to: &writer)
        return writer.finish()
    }

    private static func write(_ value: JSONValue, to json: inout JSONWriter) {
        switch value {
        case .null: json.null()
        case .bool(let flag): json.value(flag)
        case .int(let number): json.value(number)
        case .double(let number): json.value(number)
        case .string(let text): json.value(text)
        case .array(let items): json.array(items) { write($1, to: &$0) }
        case .object(let members):
            json.object { json in
                for (name, value) in members {
                    json.key(text: name)
                    write(value, to: &json)
                }
            }
        }
    }
}

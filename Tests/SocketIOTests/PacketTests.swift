import Foundation
import JSON
import Testing

@testable import SocketIO

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

@Suite("Packets of Engine.IO")
struct EnginePacketTests {
    @Test("a payload of text, of several packets and of text and binary is read, and written the same")
    func payloads() throws {
        for body in ["4hello", "4test1\u{1E}4test2\u{1E}4test3", "4hello\u{1E}bAQIDBA==", "2", "3", "1", "6", "5", "4"]
        {
            let packets = try EnginePayload.parse(bytes(body), packetsMax: 16)
            #expect(text(EnginePayload.encode(packets)) == body)
        }
        let mixed = try EnginePayload.parse(bytes("4hello\u{1E}bAQIDBA=="), packetsMax: 16)
        #expect(mixed.map(\.isBinary) == [false, true])
        #expect(text(mixed[0].data) == "hello")
        #expect(Array(mixed[1].data) == [1, 2, 3, 4])
    }

    @Test("a payload with a packet of an unknown type, an empty one, bad Base64 or bad UTF-8 is refused whole")
    func refused() {
        for body in ["", "abc", "7", "4a\u{1E}", "\u{1E}4a", "4a\u{1E}\u{1E}4b", "bAQID!", "bAQ", "4a\u{1E}x"] {
            #expect(throws: EngineFault.self, "\(body)") { try EnginePayload.parse(bytes(body), packetsMax: 16) }
        }
        #expect(throws: EngineFault.badText) { try EnginePayload.parse([0x34, 0xFF], packetsMax: 16) }
    }

    @Test("as many packets as the limit are read, one more is refused")
    func many() throws {
        let body = [String](repeating: "4a", count: 16).joined(separator: "\u{1E}")
        #expect(try EnginePayload.parse(bytes(body), packetsMax: 16).count == 16)
        #expect(throws: EngineFault.tooManyPackets) {
            try EnginePayload.parse(bytes(body + "\u{1E}4a"), packetsMax: 16)
        }
    }

    @Test("the open packet says what a client is to know, in the reference's keys")
    func open() {
        var limits = SocketIOLimits()
        limits.pingIntervalMilliseconds = 300
        limits.pingTimeoutMilliseconds = 200
        #expect(
            text(EngineSession.openPacket(sid: "a.0.x", .polling, limits: limits).encoded)
                == #"0{"sid":"a.0.x","upgrades":["websocket"],"pingInterval":300,"pingTimeout":200,"#
                + #""maxPayload":1000000}"#)
        #expect(
            text(EngineSession.openPacket(sid: "a.0.x", .webSocket, limits: limits).encoded).contains(
                #""upgrades":[],"#))
    }

    @Test("a query is read, and what is wrong with it is told by the reference's codes, in its order")
    func queries() throws {
        let open = try EngineQuery("transport=polling&b64=1&EIO=4", isGet: true)
        #expect(open.transport == .polling && open.sid == nil)
        #expect(try EngineQuery("EIO=4&transport=websocket&sid=a.0.x&t=1", isGet: false).sid == "a.0.x")
        for (query, isGet, error) in [
            ("EIO=4", true, EngineError.unknownTransport), ("EIO=4&transport=abc", true, .unknownTransport),
            ("", true, .unknownTransport), ("EIO=4&transport=polling", false, .badHandshakeMethod),
            ("EIO=4&transport=polling&sid=", false, .badHandshakeMethod),
            ("transport=polling", true, .unsupportedVersion), ("EIO=3&transport=polling", true, .unsupportedVersion),
            ("EIO=abc&transport=polling", true, .unsupportedVersion),
        ] {
            #expect(throws: error, "\(query)") { try EngineQuery(query, isGet: isGet) }
        }
        #expect(text(EngineError.unsupportedVersion.body) == #"{"code":5,"message":"Unsupported protocol version"}"#)
        #expect(text(EngineError.unknownSession.body) == #"{"code":1,"message":"Session ID unknown"}"#)
    }

    @Test("a sid is taken apart from its end, and one that has no owner is none")
    func sids() throws {
        let id = try #require(EngineSessionID("chat.eu-1.12.abc_-"))
        #expect(id.instance == "chat.eu-1" && id.loop == 12 && id.secret == "abc_-" && id.text == "chat.eu-1.12.abc_-")
        for bad in ["", "a", "a.b", ".0.x", "a.0.", "a..x", "a.-1.x", "a.70000.x", "a.b.x"] {
            #expect(EngineSessionID(bad) == nil, "\(bad)")
        }
        #expect(EngineSessionID(String(repeating: "a", count: 200) + ".0.x") == nil)
    }
}

@Suite("Packets of Socket.IO")
struct SocketPacketTests {
    private func parse(_ packet: String, _ change: (inout SocketIOLimits) -> Void = { _ in }) throws -> SocketPacket {
        var limits = SocketIOLimits()
        change(&limits)
        return try SocketPacket(bytes(packet)[...], limits: limits)
    }

    @Test("packets that clients send are read")
    func accepted() throws {
        let cases: [(String, SocketPacket.Kind, String, Int64?, Int)] = [
            ("0", .connect, "/", nil, 0), ("0/,", .connect, "/", nil, 0), ("0/", .connect, "/", nil, 0),
            (#"0{"token":"123"}"#, .connect, "/", nil, 0), (#"0/,{"token":"a\/b"}"#, .connect, "/", nil, 0),
            ("0/admin", .connect, "/admin", nil, 0), ("0/admin,", .connect, "/admin", nil, 0),
            (#"0/admin,{"token":"x"}"#, .connect, "/admin", nil, 0), ("1", .disconnect, "/", nil, 0),
            ("1/,", .disconnect, "/", nil, 0), ("1/admin", .disconnect, "/admin", nil, 0),
            (#"2["message",1,"2",{"3":[true]}]"#, .event, "/", nil, 0), (#"2456["a"]"#, .event, "/", 456, 0),
            (#"2/admin,456["a"]"#, .event, "/admin", 456, 0), ("3456[]", .ack, "/", 456, 0),
            (#"52-["m",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]"#, .binaryEvent, "/", nil, 2),
            (#"51-/admin,789["m",{"_placeholder":true,"num":0}]"#, .binaryEvent, "/admin", 789, 1),
            (#"61-12[{"_placeholder":true,"num":0}]"#, .binaryAck, "/", 12, 1), ("2[1]", .event, "/", nil, 0),
        ]
        for (packet, kind, namespace, id, attachments) in cases {
            let read = try parse(packet)
            #expect(
                read.kind == kind && read.namespace == namespace && read.id == id && read.attachments == attachments,
                "\(packet)")
        }
        #expect(try parse(#"0/,{"token":"a\/b"}"#).data == .object(["token": .string("a/b")]))
    }

    @Test("what no client may send is refused")
    func refused() {
        for packet in [
            "", "7", "abc", "2", "2{}", "2[]", "2[null]", #"2abc["m"]"#, #"2["disconnect"]"#, #"2["connect"]"#,
            "0[]", "0null", #"0"x""#, "1{}", "3[]", "34", "3{}", #"2["a""#, #"2["a"]x"#, #"5["a"]"#, #"50-["a"]"#,
            #"51["a"]"#, #"5x-["a"]"#, #"511-["a"]"#, #"599999999999-["a"]"#,
            #"51-["m",{"_placeholder":true,"num":1}]"#, #"51-["m",{"_placeholder":true,"num":-1}]"#,
            #"51-["m",{"_placeholder":true}]"#, #"2/admin["a"]"#, "4",
        ] {
            #expect(throws: SocketFault.self, "\(packet)") { try parse(packet) }
        }
    }

    @Test("each bound lets its last through and refuses the next")
    func bounds() throws {
        #expect(try parse("2" + String(repeating: "9", count: 18) + #"["a"]"#).id == 999_999_999_999_999_999)
        #expect(throws: SocketFault.tooMuch) { try parse("2" + String(repeating: "9", count: 19) + #"["a"]"#) }
        #expect(try parse("0/" + String(repeating: "n", count: 9)) { $0.namespaceBytesMax = 10 }.namespace.count == 10)
        #expect(throws: SocketFault.tooMuch) {
            try parse("0/" + String(repeating: "n", count: 10)) { $0.namespaceBytesMax = 10 }
        }
        #expect(try parse(#"510-["a"]"#).attachments == 10)
        let deep = String(repeating: "[", count: 31) + String(repeating: "]", count: 31)
        #expect(try parse(#"2["a",\#(deep)]"#).kind == .event)
        #expect(throws: SocketFault.malformed) { try parse(#"2["a",[\#(deep)]]"#) }
        #expect(throws: SocketFault.malformed) { try parse(#"2["a",1,2]"#) { $0.valuesMax = 3 } }
        #expect(try parse(#"2["a",1]"#) { $0.valuesMax = 3 }.kind == .event)
    }

    @Test("what is written is read as what it was")
    func roundTrip() throws {
        for kind in [SocketPacket.Kind.connect, .event, .ack, .connectError, .binaryEvent, .binaryAck] {
            for namespace in ["/", "/admin"] {
                for id in [nil, Int64(0), 12, 999_999_999_999_999_999] {
                    let isAck = kind == .ack || kind == .binaryAck
                    guard !isAck || id != nil, kind != .connect || id == nil else { continue }
                    let json = kind == .connect || kind == .connectError ? #"{"message":"x"}"# : #"["a",1]"#
                    let count = kind == .binaryEvent || kind == .binaryAck ? 2 : 0
                    let message = SocketPacket.message(
                        kind, namespace: namespace, id: id, attachments: count, json: bytes(json))
                    let read = try SocketPacket(message.data, limits: SocketIOLimits())
                    #expect(read.kind == kind && read.namespace == namespace && read.id == id)
                    #expect(read.attachments == count)
                    #expect(try read.data == JSONValue(parsing: bytes(json)))
                }
            }
        }
        #expect(text(SocketPacket.message(.event, json: bytes(#"["a"]"#)).encoded) == #"42["a"]"#)
        #expect(text(SocketPacket.message(.disconnect, namespace: "/admin").encoded) == "41/admin,")
    }
}

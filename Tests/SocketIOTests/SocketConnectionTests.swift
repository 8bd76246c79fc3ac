import JSON
import Testing

@testable import SocketIO

/// The cases of socket.io-protocol's test suite (branch main), by their names, on the connection alone; the sessions
/// under it are in EngineConformanceTests, real connections in ChatAppTests.
@Suite("Socket.IO: the reference's cases")
struct SocketConnectionTests {
    @Test("connect: the main namespace, with and without a payload, and custom ones")
    func connect() {
        let token = JSONValue.object(["token": .string("123")])
        for (packet, namespace, auth, answer) in [
            ("0", "/", nil, #"40{"sid":"x"}"#), ("0/,", "/", nil, #"40{"sid":"x"}"#),
            (#"0{"token":"123"}"#, "/", token, #"40{"sid":"x"}"#),
            (#"0/,{"token":"123"}"#, "/", token, #"40{"sid":"x"}"#),
            ("0/custom,", "/custom", nil, #"40/custom,{"sid":"x"}"#),
            ("0/custom", "/custom", nil, #"40/custom,{"sid":"x"}"#),
            (#"0/custom,{"token":"123"}"#, "/custom", token, #"40/custom,{"sid":"x"}"#),
        ] {
            let connection = Client()
            #expect(connection.receive(packet) == [.connect(serial: 1, namespace: namespace, auth: auth)])
            #expect(connection.connection.deadline == 45_000)
            #expect(connection.accept(1) == answer)
            #expect(connection.connection.isConnected(1) && connection.connection.deadline == .max)
            // It was answered.
            #expect(connection.accept(1) == nil && connection.refuse(1, "x") == nil)
        }
    }

    @Test("connect: an unknown namespace is refused with the reference's exact text")
    func unknownNamespace() {
        let connection = Client()
        _ = connection.receive("0/random")
        #expect(
            connection.refuse(1, SocketConnection.invalidNamespace) == #"44/random,{"message":"Invalid namespace"}"#)
        _ = connection.receive("0")
        #expect(
            connection.refuse(2, "a \"b\"", data: #"{"code":1}"#)
                == #"44{"message":"a \"b\"","data":{"code":1}}"#)
        // The client may ask again, and is no further from its deadline.
        #expect(connection.receive("0") == [.connect(serial: 3, namespace: "/", auth: nil)])
        #expect(connection.connection.isLate(now: 45_000) && !connection.connection.isLate(now: 44_999))
    }

    @Test("connect: an invalid handshake closes; so does an event before one, and a second one")
    func invalidHandshake() {
        for packet in ["abc", #"2["message"]"#, "1", "3456[]", #"4{"message":"x"}"#, "0[]"] {
            let connection = Client()
            #expect(connection.receive(packet) == [.close], "\(packet)")
        }
        let twice = Client(joining: "0")
        #expect(twice.receive("0") == [.close])
        let waiting = Client()
        _ = waiting.receive("0")
        #expect(waiting.receive(#"2["message"]"#) == [.close])
    }

    @Test("disconnect: from the main namespace, and from a custom one, which leaves the main one alone")
    func disconnect() {
        let connection = Client(joining: "0")
        #expect(connection.receive("1") == [.disconnected(serial: 1)])
        #expect(connection.connection.deadline == 45_000)
        #expect(connection.receive(#"2["message"]"#) == [.close])

        let both = Client(joining: "0")
        _ = both.receive("0/custom")
        _ = both.accept(2)
        #expect(both.receive("1/custom") == [.disconnected(serial: 2)])
        #expect(
            both.receive(#"2["message","m"]"#)
                == [.event(serial: 1, SocketEvent(name: "message", arguments: [.string("m")]))])
        #expect(both.end() == [1] && both.end().isEmpty)
    }

    @Test("message: plain text, with an ack, in a custom namespace")
    func events() {
        let connection = Client(joining: "0")
        let arguments: [JSONValue] = [.int(1), .string("2"), .object(["3": .array([.bool(true)])])]
        #expect(
            connection.receive(#"2["message",1,"2",{"3":[true]}]"#)
                == [.event(serial: 1, SocketEvent(name: "message", arguments: arguments))])
        #expect(
            connection.receive(#"2456["message-with-ack",1,"2",{"3":[true]}]"#)
                == [.event(serial: 1, SocketEvent(name: "message-with-ack", arguments: arguments, ack: 456))])
        #expect(
            connection.receive("312[1]")
                == [.acknowledged(serial: 1, id: 12, SocketEvent(name: "", arguments: [.int(1)]))])
        let custom = Client(joining: "0/custom")
        #expect(custom.receive(#"2/custom,["a"]"#) == [.event(serial: 1, SocketEvent(name: "a", arguments: []))])
        #expect(custom.receive(#"2["a"]"#) == [.close])
    }

    @Test("message: binary attachments, with and without an ack")
    func binary() {
        let connection = Client(joining: "0")
        let places = #"{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}"#
        let arguments = [0, 1].map { JSONValue.object(["_placeholder": .bool(true), "num": .int($0)]) }
        for (packet, ack) in [(#"52-["m",\#(places)]"#, nil), (#"52-789["m",\#(places)]"#, Int64(789))] {
            #expect(connection.receive(packet).isEmpty)
            #expect(connection.receive(binary: [1, 2, 3]).isEmpty)
            let event = SocketEvent(name: "m", arguments: arguments, attachments: [[1, 2, 3], [4]], ack: ack)
            #expect(connection.receive(binary: [4]) == [.event(serial: 1, event)])
        }
        // Nothing may come between, and nothing binary without a packet that says so.
        _ = connection.receive(#"52-["m",\#(places)]"#)
        #expect(connection.receive(#"2["m"]"#) == [.close])
        let other = Client(joining: "0")
        #expect(other.receive(binary: [1]) == [.close])
        let strange = Client()
        #expect(strange.receive(#"52-["m",\#(places)]"#) == [.close])
    }

    @Test("attachments of one packet are bounded together")
    func attachmentBytes() {
        var limits = SocketIOLimits()
        limits.payloadBytesMax = 10
        for (last, isTaken) in [(5, true), (6, false)] {
            let connection = Client(limits)
            _ = connection.receive("0")
            _ = connection.accept(1)
            _ = connection.receive(#"52-["m"]"#)
            _ = connection.receive(binary: [1, 2, 3, 4, 5])
            let actions = connection.receive(binary: [UInt8](repeating: 1, count: last))
            #expect((actions != [.close]) == isTaken)
        }
    }

    @Test("invalid format closes: an unknown packet type, a payload that is no array, an ack id that is no number")
    func invalidFormat() {
        for packet in ["abc", "2{}", #"2abc["message-with-ack",1,"2",{"3":[false]}]"#] {
            let connection = Client(joining: "0")
            #expect(connection.receive(packet) == [.close], "\(packet)")
        }
    }

    @Test("namespaces of one connection are bounded")
    func namespaces() {
        let connection = Client()
        for number in 1...8 {
            #expect(
                connection.receive("0/n\(number)")
                    == [.connect(serial: Int32(number), namespace: "/n\(number)", auth: nil)])
        }
        let refusal = EnginePacket(.message, bytes(#"4/n9,{"message":"Too many namespaces"}"#))
        #expect(connection.receive("0/n9") == [.reply(refusal)])
    }

    @Test("the application ends a namespace: the client is told once")
    func applicationEnds() {
        let connection = Client(joining: "0/custom")
        #expect(connection.disconnect(1) == "41/custom,")
        #expect(connection.disconnect(1) == nil && connection.connection.deadline == 45_007)
        #expect(connection.end().isEmpty)
    }
}

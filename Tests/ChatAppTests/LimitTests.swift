import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("What the chat refuses")
struct LimitTests {
    @Test("a wrong, foreign or expired token closes with 4401, and so does a first frame that is no hello")
    func unauthenticated() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            let good = Instance.token(user: 1)
            let tokens = [
                "", "x.y.z", String(good.dropLast(4)), Instance.token(user: 1, seconds: -1),
                String(repeating: "a", count: 5_000),
            ]
            for token in tokens {
                let client = try await ChatClient(port: instances[0].port)
                client.hello(token)
                #expect(try await client.closeCode() == 4401)
            }
            for frame in [#"{"type":"send","room":1,"id":"a","body":"b"}"#, "nonsense", "{}"] {
                let client = try await ChatClient(port: instances[0].port)
                client.socket.send(frame)
                #expect(try await client.closeCode() == 4401)
            }
        }
    }

    @Test(
        "a hello whose resume is wrong is closed with 1007 and a word about it; 2,000 rooms are right, and so is none")
    func wrongResume() async throws {
        func rooms(_ count: Int) -> String { (1...count).map { "\"\($0)\":0" }.joined(separator: ",") }
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            func greeting(with resume: String) async throws -> ChatClient {
                let client = try await ChatClient(port: instances[0].port)
                let token = Instance.token(user: 1)
                client.socket.send(#"{"type":"hello","resume":\#(resume),"token":"\#(token)"}"#)
                return client
            }
            let wrong = [
                #"{"1":-1}"#, #"{"1":9223372036854775808}"#, "[]", "7", #"{"x":1}"#, #"{"1":"2"}"#,
                "{\(rooms(2_001))}",
            ]
            for resume in wrong {
                let client = try await greeting(with: resume)
                #expect(try await client.closeCode() == 1007, "\(resume.prefix(40))")
            }
            for resume in ["{\(rooms(2_000))}", "{}"] {
                try await greeting(with: resume).awaitReady()
            }
        }
        // In words, within what a close frame holds.
        var connection = ChatConnection(limits: ChatLimits(), now: 0)
        let hello = Array(#"{"type":"hello","token":"t","resume":{"1":-1}}"#.utf8)
        guard case .close(.invalidData, let reason) = connection.received(hello, limits: ChatLimits(), now: 0) else {
            Issue.record("not closed")
            return
        }
        #expect(reason.hasPrefix("resume is wrong. ") && reason.contains("resume maps room ids to seqs"))
        #expect(reason.utf8.count <= 123)
    }

    @Test("who does not greet in time is closed with 4408; who has greeted is not")
    func silent() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]], limits: { $0.helloSecondsMax = 4 }) {
            instances, _ in
            let greeted = try await instances[0].client(user: 1)
            let silent = try await ChatClient(port: instances[0].port)
            #expect(try await silent.closeCode() == 4408)
            try await greeted.ping()
        }
    }

    @Test("a user has so many sockets in a process, and its place is free again when one goes")
    func tooManySockets() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1]], limits: { $0.socketsPerUserMax = 3 }) {
            instances, _ in
            var clients: [ChatClient] = []
            for _ in 1...3 { clients.append(try await instances[0].client(user: 1)) }
            let fourth = try await ChatClient(port: instances[0].port)
            fourth.hello(Instance.token(user: 1))
            #expect(try await fourth.closeCode() == 4429)
            _ = try await instances[0].client(user: 2)
            clients[0].socket.send(frame: 8, [3, 232])
            #expect(try await clients[0].closeCode() == 1000)
            // The client may hear of the end a moment before the hub does.
            try await eventually { (try? await instances[0].client(user: 1)) != nil }
        }
    }

    @Test("frames that cannot be read are answered, not fatal; too many in a row close with 4429")
    func nonsense() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]], limits: { $0.refusalsMax = 20 }) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let frames = [
                "", "[]", "{", #"{"type":7}"#, #"{"type":"dance"}"#, #"{"type":"send","room":1,"id":"a"}"#,
                #"{"type":"send","room":"1","id":"a","body":"b"}"#, #"{"type":"history","room":1,"limit":0}"#,
                #"{"type":"history","room":1,"before":0}"#, #"{"type":"history","room":1,"after":-1}"#,
                #"{"type":"edit","room":1,"id":"a","target":0,"body":"b"}"#,
                #"{"type":"send","room":1,"id":"a","body":""}"#,
                #"{"type":"send","room":1,"id":"a","media":-1}"#,
                #"{"type":"read","room":1,"seq":-1}"#, #"{"type":"hello","token":"x"}"#,
                #"{"type":"send","room":1,"id":"a","body":"\#\u0000"}"#, #"{"type":"join","room":1.5}"#,
            ]
            for frame in frames {
                one.socket.send(frame)
                #expect(try await one.next("error").string("code") == "invalid", "\(frame)")
            }
            one.send(1, "ok", "still here")
            #expect(try await one.next("ack").int("seq") == 1)
            for _ in 0...20 { one.socket.send("{") }
            #expect(try await one.closeCode() == 4429)
        }
    }

    @Test("binary frames close with 1003, broken framing with 1002, too big a frame with 1009")
    func framing() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            let binary = try await instances[0].client(user: 1)
            binary.socket.send(frame: 2, [1])
            #expect(try await binary.closeCode() == 1003)
            let unmasked = try await instances[0].client(user: 1)
            unmasked.socket.send(frame: 1, [0x7B], masked: false)
            #expect(try await unmasked.closeCode() == 1002)
            let big = try await instances[0].client(user: 1)
            big.socket.send(raw: [0x81, 0xFF, 0, 0, 0, 0, 0x10, 0, 0, 0, 1, 2, 3, 4])
            #expect(try await big.closeCode() == 1009)
        }
    }

    @Test("who sends faster than a person may is slowed down by errors, and loses nothing that was acknowledged")
    func rate() async throws {
        let slow: (inout ChatLimits) -> Void = {
            $0.sendsPerSecond = 1
            $0.sendsBurstMax = 5
        }
        try await withInstances(["chat-1"], users: 1, rooms: [[1]], limits: slow) { instances, test in
            let one = try await instances[0].client(user: 1)
            for number in 1...30 { one.send(1, "\(number)", "x") }
            var acknowledged: Set<String> = []
            var refused: Set<String> = []
            while acknowledged.count + refused.count < 30 {
                let frame = try Frame(try await one.socket.nextText())
                if frame.type == "ack" { acknowledged.insert(frame.string("id")!) }
                if frame.type == "error" {
                    #expect(frame.string("code") == "too_many")
                    refused.insert(frame.string("id")!)
                }
            }
            #expect(acknowledged.count >= 5 && refused.count >= 10)
            let stored = try await test.run("SELECT client_id FROM messages").map { $0[0]! }
            #expect(Set(stored) == acknowledged)
        }
    }

    @Test("a restart answers what was sent, then closes with 1012 and says when to come back")
    func restart() async throws {
        try await withTestDatabase { _, test in
            try await makeRooms(test, users: 1, rooms: [[1]])
            let instance = try await Instance("chat-1", test)
            let one = try await instance.client(user: 1)
            for number in 1...20 { one.send(1, "\(number)", "x") }
            _ = try await one.next("ack")
            async let stopped: Void = instance.stop()
            var acknowledged = 1
            while true {
                let received = try await one.socket.next()
                if case .text(let text) = received, try Frame(text).type == "ack" { acknowledged += 1 }
                guard case .closed(let code, let reason) = received else { continue }
                #expect(code == 1012 && reason.wholeMatch(of: /retry-after=[0-9]+/) != nil)
                break
            }
            await stopped
            let stored = try await test.run("SELECT count(*) FROM messages")
            #expect(stored == [["\(acknowledged)"]])
        }
    }

    @Test("only martlet.v1 is spoken, and only as WebSocket")
    func upgrade() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            await #expect(throws: WebSocketClient.Failure.self) {
                try await WebSocketClient.connect(port: instances[0].port, subprotocol: "other.v9")
            }
            _ = try await WebSocketClient.connect(port: instances[0].port, subprotocol: nil)
            await #expect(throws: WebSocketClient.Failure.self) {
                try await WebSocketClient.connect(port: instances[0].port, path: "/other")
            }
        }
    }
}

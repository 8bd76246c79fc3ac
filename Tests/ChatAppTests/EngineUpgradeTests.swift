import Foundation
import HTTPServer
import ServiceKit
import SocketIO
import TestSupport
import Testing

@testable import ChatApp

@Suite("Socket.IO's upgrade, namespaces and ends over real connections")
struct EngineUpgradeTests {
    @Test("a session goes from polling to WebSocket, whichever loop it comes in on, and loses nothing on the way")
    func upgrade() async throws {
        try await EngineInstance.with { instance in
            for round in 0..<24 {
                let client = try await instance.connect()
                let sid = try await instance.open(client)
                _ = try await client.post(sid, "40")
                _ = try await client.poll(sid)
                await client.send("GET", "\(EngineInstance.path)&sid=\(sid)")
                let socket = try await instance.webSocket(sid)
                socket.send("2probe")
                #expect(try await socket.nextText() == "3probe")
                #expect(try await client.reply().body == "6")
                // What comes between is not lost: it waits for the WebSocket, or for a last poll.
                let handle = try await instance.delegate.connected.wait(count: round + 1)[round]
                handle.emit(SharedEvent("between") { $0.value(1) })
                socket.send("5")
                #expect(try await socket.nextText() == #"42["between",1]"#)
                socket.send(#"42["message","hello"]"#)
                #expect(try await socket.nextText() == #"42["message-back","hello"]"#)
                #expect(try await client.poll(sid).status == 400)
                #expect(try await client.post(sid, "3").status == 400)
                // A second WebSocket of the session is opened and closed, and the first goes on.
                let second = try await instance.webSocket(sid)
                #expect(try await second.next() == .closed(1000, ""))
                socket.send(#"42["message","still"]"#)
                #expect(try await socket.nextText() == #"42["message-back","still"]"#)
            }
            #expect(instance.metrics.text().contains("martlet_socketio_upgrades_total 24"))
            #expect(instance.metrics.text().contains(#"martlet_socketio_sessions{transport="polling"} 0"#))
        }
    }

    @Test("polls after the probe are ended at once; a trial that fails leaves the session on polling")
    func trial() async throws {
        try await EngineInstance.with { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            let socket = try await instance.webSocket(sid)
            socket.send("2probe")
            #expect(try await socket.nextText() == "3probe")
            #expect(try await client.poll(sid).body == "6")
            socket.send("nonsense")
            #expect(try await socket.next() == .closed(1000, ""))
            _ = try await client.post(sid, "40")
            #expect(try await client.poll(sid).body.hasPrefix(#"40{"sid":""#))
            let unknown = String(sid.dropLast()) + (sid.hasSuffix("A") ? "B" : "A")
            await #expect(throws: WebSocketClient.Failure.self) { try await instance.webSocket(unknown) }
        }
    }

    @Test("namespaces: with and without a payload, an unknown one, one that is refused, and leaving one of two")
    func namespaces() async throws {
        try await EngineInstance.with { instance in
            let socket = try await instance.webSocket()
            _ = try await socket.nextText()
            socket.send("40/random")
            #expect(try await socket.nextText() == #"44/random,{"message":"Invalid namespace"}"#)
            socket.send(#"40{"token":"wrong"}"#)
            #expect(try await socket.nextText() == #"44{"message":"Not authorized"}"#)
            socket.send(#"40/,{"token":"123"}"#)
            #expect(try await socket.nextText().hasPrefix(#"40{"sid":""#))
            #expect(try await socket.nextText() == #"42["auth",{"token":"123"}]"#)
            socket.send(#"40/custom,{"token":"abc"}"#)
            #expect(try await socket.nextText().hasPrefix(#"40/custom,{"sid":""#))
            #expect(try await socket.nextText() == #"42/custom,["auth",{"token":"abc"}]"#)
            socket.send("41/custom")
            socket.send(#"42["message","message to main namespace"]"#)
            #expect(try await socket.nextText() == #"42["message-back","message to main namespace"]"#)
            try await instance.delegate.disconnected.wait(count: 1)
        }
    }

    @Test("what is no packet of Socket.IO closes; so does saying nothing, or something before joining")
    func invalid() async throws {
        try await EngineInstance.with(limits: { $0.socketIO.connectMillisecondsMax = 200 }) { instance in
            let socket = try await instance.webSocket()
            _ = try await socket.nextText()
            #expect(try await socket.next() == .closed(1000, ""))
        }
        try await EngineInstance.with { instance in
            for packet in ["4abc", "42{}", #"42abc["message-with-ack",1]"#, "40", "44{}"] {
                let socket = try await instance.joined()
                socket.send(packet)
                #expect(try await socket.next() == .closed(1000, ""), "\(packet)")
            }
            for packet in ["4abc", #"42["message"]"#] {
                let socket = try await instance.webSocket()
                _ = try await socket.nextText()
                socket.send(packet)
                #expect(try await socket.next() == .closed(1000, ""), "\(packet)")
            }
            // By polling it is told with the next poll.
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            #expect(try await client.post(sid, "4abc").body == "ok")
            #expect(try await client.poll(sid).body == "1")
            #expect(try await client.poll(sid).status == 400)
        }
    }

    @Test("the server ends a socket, with and without its session")
    func serverEnds() async throws {
        try await EngineInstance.with { instance in
            let socket = try await instance.joined()
            socket.send(#"42["leave",false]"#)
            #expect(try await socket.nextText() == "41")
            socket.send("40")
            #expect(try await socket.nextText().hasPrefix("40"))
            _ = try await socket.nextText()
            socket.send(#"42["leave",true]"#)
            #expect(try await socket.nextText() == "41")
            #expect(try await socket.next() == .closed(1000, ""))

            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            _ = try await client.poll(sid)
            _ = try await client.post(sid, #"42["leave",true]"#)
            #expect(try await client.poll(sid).body == "41\u{1E}1")
            #expect(try await client.poll(sid).status == 400)
            // It was the delegate's own wish.
            #expect(instance.delegate.disconnected.values.isEmpty)
        }
    }

    @Test("an event goes to many sockets of both transports, once each, and not to those who left")
    func fanOut() async throws {
        try await EngineInstance.with(loops: 1) { instance in
            var sockets: [WebSocketClient] = []
            for _ in 0..<5 { sockets.append(try await instance.joined()) }
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            _ = try await client.poll(sid)
            await client.send("GET", "\(EngineInstance.path)&sid=\(sid)")
            let handles = try await instance.delegate.connected.wait(count: 6)
            sockets[4].send("41")
            try await instance.delegate.disconnected.wait(count: 1)
            let engine = instance.engine.engine(of: instance.loops.loops[0])
            let ids = handles.map(\.id)
            engine.run { engine in
                for number in 0..<3 { engine.emit(SharedEvent("many") { $0.value(number) }, to: ids) }
            }
            for socket in sockets.prefix(4) {
                for number in 0..<3 { #expect(try await socket.nextText() == #"42["many",\#(number)]"#) }
            }
            // All of one turn in one answer.
            #expect(
                try await client.reply().body
                    == (0..<3).map { #"42["many",\#($0)]"# }.joined(separator: "\u{1E}"))
            #expect(sockets[4].takeAll().isEmpty)
        }
    }

    @Test("a process that ends tells everybody: WebSockets by 1012, polls by a 1; new sessions are refused")
    func drain() async throws {
        try await EngineInstance.with { instance in
            let socket = try await instance.joined()
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            await client.send("GET", "\(EngineInstance.path)&sid=\(sid)")
            let id = try #require(EngineSessionID(sid))
            try await eventually { await instance.engine.isPollWaiting(id) }
            await instance.engine.drain()
            #expect(try await socket.next() == .closed(1012, ""))
            #expect(try await client.reply().body == "1")
            let other = try await instance.connect()
            #expect(try await other.ask("GET", EngineInstance.path).status == 503)
            #expect(instance.engine.sessionCount == 0)
            #expect(instance.metrics.text().contains(#"martlet_socketio_sessions{transport="polling"} 0"#))
        }
    }

    @Test("sessions are bounded, and those of an address that have not signed in; signing in makes room")
    func bounds() async throws {
        try await EngineInstance.with(limits: { $0.engineSessionsMax = 3 }) { instance in
            let client = try await instance.connect()
            var last = ""
            for _ in 0..<3 { last = try await instance.open(client) }
            #expect(try await client.ask("GET", EngineInstance.path).status == 503)
            await #expect(throws: WebSocketClient.Failure.self) { try await instance.webSocket() }
            _ = try await client.post(last, "1")
            #expect(try await instance.open(client) != "")
        }
        try await EngineInstance.with(limits: { $0.strangersPerAddressMax = 2 }) { instance in
            let client = try await instance.connect()
            func open(_ address: String) async throws -> PollClient.Reply {
                try await client.ask("GET", EngineInstance.path, headers: "X-Forwarded-For: \(address)\r\n")
            }
            let first = try await open("192.0.2.1")
            #expect(try await open("192.0.2.1").status == 200)
            #expect(try await open("192.0.2.1").status == 429)
            #expect(try await open("192.0.2.2").status == 200)
            let start = try #require(first.body.range(of: #""sid":""#)).upperBound
            let sid = String(first.body[start...].prefix { $0 != "\"" })
            _ = try await client.post(sid, "40")
            #expect(try await open("192.0.2.1").status == 200)
            #expect(try await open("192.0.2.1").status == 429)
            // Whose address nobody knows is not counted.
            for _ in 0..<5 { #expect(try await client.ask("GET", EngineInstance.path).status == 200) }
        }
    }

    @Test("a sid of another instance is passed on, and what was passed on is not")
    func passOn() async throws {
        let away = Away()
        try await EngineInstance.with(passOn: away) { instance in
            let client = try await instance.connect()
            let reply = try await client.ask("GET", "\(EngineInstance.path)&sid=chat.2.0.AAAA")
            #expect(reply.status == 200 && reply.body == "from chat.2")
            let request = try HTTPRequest(
                .get, "\(EngineInstance.path)&sid=chat.2.0.AAAA", on: instance.loops.loops[0])
            let engine = instance.engine
            let answer = try await Task(executorPreference: request.loop) {
                try await engine.handle(request, isPassedOn: true)
            }.value
            #expect(answer.status == 400)
        }
    }

    @Test("another instance is told when a poll's client ends its side, and what cannot be passed on is answered")
    func passedPoll() async throws {
        let away = Silent()
        try await EngineInstance.with(passOn: away) { instance in
            let client = try await instance.connect()
            await client.send("GET", "\(EngineInstance.path)&sid=chat.2.0.AAAA")
            try await away.arrived.wait(count: 1)
            // Orderly, as a proxy does it.
            await client.close()
            try await away.cancelled.wait(count: 1)
            let other = try await instance.connect()
            #expect(try await other.ask("GET", "\(EngineInstance.path)&sid=full.0.AAAA").status == 503)
        }
    }
}

extension EngineUpgradeTests {
    @Test("what nobody expected of another instance is logged, without the query, and the client is told nothing of it")
    func unexpected() async throws {
        let pipe = Pipe()
        let sink = LogSink(descriptor: pipe.fileHandleForWriting.fileDescriptor)
        try await EngineInstance.with(passOn: Odd(), log: Log(service: "test", sink: sink)) { instance in
            let client = try await instance.connect()
            let answer = try await client.ask("GET", "\(EngineInstance.path)&sid=chat.2.0.HIDDEN")
            #expect(answer.status == 500 && !answer.body.contains("Fault"))
        }
        sink.flush()
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text.contains("Fault()") && text.contains("/socket.io/") && !text.contains("HIDDEN"))
    }
}

/// Another instance with a fault of its own.
private struct Odd: PassOn {
    struct Fault: Error {}

    func answer(_ request: HTTPRequest, instance: String) async throws -> HTTPResponse { throw Fault() }
}

/// Another instance that makes polls wait.
private struct Silent: PassOn {
    let arrived = Signal<Bool>()
    let cancelled = Signal<Bool>()

    func answer(_ request: HTTPRequest, instance: String) async throws -> HTTPResponse {
        guard instance != "full" else { throw HTTPError(503, "Too much is passed on.") }
        arrived.send(true)
        await withTaskCancellationHandler {
            _ = try? await cancelled.wait(count: 1)
        } onCancel: {
            cancelled.send(true)
        }
        return HTTPResponse(status: 200)
    }
}

/// Another instance that answers anything.
private struct Away: PassOn {
    func answer(_ request: HTTPRequest, instance: String) async throws -> HTTPResponse {
        HTTPResponse(status: 200, body: .bytes(Array("from \(instance)".utf8)))
    }
}

import Foundation
import SocketIO
import TestSupport
import Testing

@testable import ChatApp

/// Engine.IO over real connections: the reference's cases that have to do with HTTP, and what they leave out.
@Suite("Socket.IO's transport over HTTP")
struct EngineTests {
    @Test("a session opens by polling and by WebSocket, and says what a client is to know")
    func opens() async throws {
        try await EngineInstance.with(quick: true) { instance in
            let client = try await instance.connect()
            let reply = try await client.ask("GET", EngineInstance.path, headers: "Origin: http://app.example\r\n")
            #expect(reply.status == 200 && reply.body.hasPrefix("0"))
            for line in [
                "Content-Type: text/plain; charset=UTF-8", "Cache-Control: no-store",
                "Access-Control-Allow-Origin: http://app.example",
            ] { #expect(reply.head.contains(line), "\(reply.head)") }
            let socket = try await instance.webSocket()
            for (text, upgrades) in [(reply.body, ["websocket"]), (try await socket.nextText(), [])] {
                let open = try #require(
                    try JSONSerialization.jsonObject(with: Data(text.dropFirst().utf8)) as? [String: Any])
                #expect(Set(open.keys) == ["sid", "upgrades", "pingInterval", "pingTimeout", "maxPayload"])
                #expect(open["upgrades"] as? [String] == upgrades)
                #expect(open["pingInterval"] as? Int == 300 && open["pingTimeout"] as? Int == 200)
                #expect(open["maxPayload"] as? Int == 1_000_000)
                let sid = try #require(EngineSessionID(open["sid"] as? String ?? ""))
                #expect(sid.instance == "chat.1" && sid.secret.utf8.count == 20)
            }
        }
    }

    @Test("what is no request of Engine.IO v4 is refused with the reference's code")
    func refused() async throws {
        try await EngineInstance.with { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            let open = "/socket.io/?EIO=4&transport=polling"
            for (method, target, code) in [
                ("GET", "/socket.io/?transport=polling", 5), ("GET", "/socket.io/?EIO=abc&transport=polling", 5),
                ("GET", "/socket.io?EIO=3&transport=polling", 5), ("GET", "/socket.io/?EIO=4", 0),
                ("GET", "/socket.io/?EIO=4&transport=abc", 0), ("POST", open, 2), ("PUT", open, 2),
                ("GET", open + "&sid=nobody", 1), ("GET", open + "&sid=chat.1.0.AAAAAAAAAAAAAAAAAAAA", 1),
                ("GET", open + "&sid=other.0.AAAAAAAAAAAAAAAAAAAA", 1), ("POST", open + "&sid=chat.1.9.A", 1),
                ("PUT", open + "&sid=\(sid)", 3), ("DELETE", open + "&sid=\(sid)", 3),
                ("GET", "/socket.io/?EIO=4&transport=websocket", 3),
                ("POST", "/socket.io/?EIO=4&transport=websocket&sid=\(sid)", 3),
            ] {
                let reply = try await client.ask(method, target)
                #expect(reply.status == 400, "\(method) \(target)")
                #expect(reply.body.hasPrefix("{\"code\":\(code),\"message\":\""), "\(method) \(target): \(reply.body)")
            }
            #expect(
                try await client.ask("GET", "/socket.io/?EIO=3&transport=polling").body
                    == #"{"code":5,"message":"Unsupported protocol version"}"#)
            // The session has taken no harm.
            #expect(try await client.post(sid, "40").body == "ok")
            #expect(try await client.poll(sid).body.hasPrefix(#"40{"sid":"#))
            for query in ["transport=websocket", "EIO=abc&transport=websocket", "EIO=4"] {
                await #expect(throws: WebSocketClient.Failure.self) { try await instance.webSocket(query: query) }
            }
        }
    }

    @Test("a browser of another origin is let in: its preflight, with and without the slash")
    func preflight() async throws {
        try await EngineInstance.with { instance in
            let client = try await instance.connect()
            for path in ["/socket.io", "/socket.io/?EIO=4&transport=polling&sid=x"] {
                let reply = try await client.ask(
                    "OPTIONS", path,
                    headers: "Origin: http://a\r\nAccess-Control-Request-Headers: content-type,x-y\r\n")
                #expect(reply.status == 204 && reply.head.contains("Access-Control-Allow-Origin: http://a"))
                #expect(reply.head.contains("Access-Control-Allow-Methods: GET, POST"))
                #expect(reply.head.contains("Access-Control-Allow-Headers: content-type,x-y"))
            }
            let silent = try await client.ask("GET", EngineInstance.path)
            #expect(!silent.head.contains("Access-Control"))
        }
    }

    @Test("messages go both ways by polling, whichever loops the requests come in on, in order")
    func polling() async throws {
        try await EngineInstance.with { instance in
            for owner in 0..<2 {
                let opener = try await instance.connect(onLoop: owner)
                let sid = try await instance.open(opener)
                let poster = try await instance.connect(onLoop: 1 - owner)
                let poller = try await instance.connect(onLoop: 1 - owner)
                #expect(try await poster.post(sid, "40").body == "ok")
                let joined = try await poller.poll(sid).body.split(separator: "\u{1E}")
                #expect(joined.count == 2 && joined[0].hasPrefix(#"40{"sid":""#) && joined[1] == #"42["auth",{}]"#)
                // A poll that waits is answered when there is something, with all of it.
                await poller.send("GET", "\(EngineInstance.path)&sid=\(sid)")
                let events = [#"42["message",1,"2",{"3":[true]}]"#, #"42456["message-with-ack","é"]"#]
                #expect(try await opener.post(sid, events.joined(separator: "\u{1E}")).body == "ok")
                #expect(
                    try await poller.reply().body
                        == [#"42["message-back",1,"2",{"3":[true]}]"#, #"43456["é"]"#].joined(separator: "\u{1E}"))
            }
        }
    }

    @Test("binary values go both ways, in Base64 by polling and as they are by WebSocket")
    func binary() async throws {
        try await EngineInstance.with { instance in
            let places = #"{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}"#
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            _ = try await client.poll(sid)
            _ = try await client.post(sid, "452-[\"message\",\(places)]\u{1E}bAQID\u{1E}bBAU=")
            #expect(
                try await client.poll(sid).body == "452-[\"message-back\",\(places)]\u{1E}bAQID\u{1E}bBAU=")

            let socket = try await instance.joined()
            socket.send("452-789[\"message-with-ack\",\(places)]")
            socket.send(frame: 2, [1, 2, 3])
            socket.send(frame: 2, [4, 5])
            #expect(try await socket.nextText() == "462-789[\(places)]")
            #expect(try await socket.next() == .binary([1, 2, 3]))
            #expect(try await socket.next() == .binary([4, 5]))
        }
    }

    @Test("pings flow by polling and by WebSocket")
    func heartbeat() async throws {
        // A machine that is busy for seconds changes nothing.
        try await EngineInstance.with(limits: {
            $0.socketIO.pingIntervalMilliseconds = 50
            $0.socketIO.pingTimeoutMilliseconds = 60_000
        }) { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            let socket = try await instance.webSocket()
            #expect(try await socket.nextText().hasPrefix("0"))
            for _ in 0..<3 {
                #expect(try await client.poll(sid).body == "2")
                #expect(try await client.post(sid, "3").body == "ok")
                #expect(try await socket.nextText() == "2")
                socket.send("3")
            }
        }
    }

    @Test("whoever does not answer a ping is gone, by polling and by WebSocket")
    func pingTimeout() async throws {
        try await EngineInstance.with(limits: {
            $0.socketIO.pingIntervalMilliseconds = 200
            $0.socketIO.pingTimeoutMilliseconds = 100
        }) { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            // The ping, then the end while it waits; a busy machine may be too late for either.
            var answers: [String] = []
            while answers.last?.contains("Session ID unknown") != true {
                answers.append(try await client.poll(sid).body)
            }
            #expect(Set(answers.dropLast()).isSubset(of: ["2", "1"]) && answers.count <= 3, "\(answers)")

            let socket = try await instance.webSocket()
            var received: [WebSocketClient.Received] = []
            while received.last != .end { received.append(try await socket.next()) }
            #expect(received.contains(.text("2")) && received.contains(.closed(1000, "")), "\(received)")
        }
    }

    @Test("a second poll closes the session: the first is told, the second refused")
    func overlap() async throws {
        try await EngineInstance.with { instance in
            for owner in 0..<2 {
                let first = try await instance.connect(onLoop: 0)
                let second = try await instance.connect(onLoop: 1)
                let sid = try await instance.open(owner == 0 ? first : second)
                await first.send("GET", "\(EngineInstance.path)&sid=\(sid)")
                // It is there when the session has it.
                let id = try #require(EngineSessionID(sid))
                try await eventually { await instance.engine.isPollWaiting(id) }
                #expect(try await second.poll(sid).status == 400)
                #expect(try await first.reply().body == "1")
                #expect(try await second.poll(sid).body == #"{"code":1,"message":"Session ID unknown"}"#)
            }
        }
    }

    @Test("a client that says 1 has its poll ended with a noop, and the session is gone")
    func clientCloses() async throws {
        try await EngineInstance.with { instance in
            let client = try await instance.connect()
            let poller = try await instance.connect()
            let sid = try await instance.open(client)
            await poller.send("GET", "\(EngineInstance.path)&sid=\(sid)")
            #expect(try await client.post(sid, "1").body == "ok")
            #expect(try await poller.reply().body == "6")
            #expect(try await client.poll(sid).status == 400)

            let alone = try await instance.open(client)
            #expect(try await client.post(alone, "1").body == "ok")
            #expect(try await client.poll(alone).status == 400)
            let socket = try await instance.joined()
            socket.send("1")
            #expect(try await socket.next() == .closed(1000, ""))
            try await instance.delegate.disconnected.wait(count: 1)
        }
    }

    @Test("a POST above maxPayload is answered 413 and ends the session; a frame ends it with 1009")
    func tooBig() async throws {
        try await EngineInstance.with(limits: { $0.socketIO.payloadBytesMax = 5000 }) { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            let most = "42[\"message\",\"" + String(repeating: "x", count: 4984) + "\"]"
            #expect(most.utf8.count == 5000)
            #expect(try await client.post(sid, most).body == "ok")
            #expect(try await client.post(sid, most + " ").status == 413)
            let other = try await instance.connect()
            #expect(try await other.poll(sid).status == 400)

            let socket = try await instance.joined()
            socket.send(most)
            #expect(try await socket.nextText().hasPrefix(#"42["message-back","xxx"#))
            socket.send(most + " ")
            let end = try await socket.next()
            if case .closed(1009, _) = end {} else { Issue.record("\(end)") }
            try await instance.delegate.disconnected.wait(count: 2)
        }
    }

    @Test("a client that goes away while it polls is gone at once, whichever loop it polled on")
    func departure() async throws {
        try await EngineInstance.with { instance in
            for loop in 0..<2 {
                let client = try await instance.connect(onLoop: 0)
                let poller = try await instance.connect(onLoop: loop)
                let before = instance.delegate.disconnected.values.count
                let sid = try await instance.open(client)
                _ = try await client.post(sid, "40")
                _ = try await client.poll(sid)
                await poller.send("GET", "\(EngineInstance.path)&sid=\(sid)")
                let id = try #require(EngineSessionID(sid))
                try await eventually { await instance.engine.isPollWaiting(id) }
                await poller.close()
                try await instance.delegate.disconnected.wait(count: before + 1)
                #expect(try await client.poll(sid).status == 400)
            }
        }
    }
}

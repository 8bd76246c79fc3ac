import SocketIO
import TestSupport
import Testing

@testable import ChatApp

/// Many clients at once, each over several connections that any loop may serve.
@Suite("A crowd of Socket.IO's clients")
struct EngineCrowdTests {
    /// One client: polls, upgrades, goes on by WebSocket, and leaves in one of the ways there are.
    private struct Member {
        let instance: EngineInstance
        let number: Int
        var said = 0
        var heard: [String] = []

        private mutating func next() -> String {
            said += 1
            return #"42["message","\#(number).\#(said - 1)"]"#
        }

        private mutating func hear(_ payload: String) {
            for packet in payload.split(separator: "\u{1E}") where packet.hasPrefix("42[\"message-back\"") {
                heard.append(String(packet.dropFirst(#"42["message-back",""#.count).dropLast(2)))
            }
        }

        mutating func live() async throws {
            let poller = try await instance.connect()
            let poster = try await instance.connect()
            let sid = try await instance.open(poller)
            let poll = "\(EngineInstance.path)&sid=\(sid)"
            #expect(try await poster.post(sid, "40").body == "ok")
            hear(try await poller.poll(sid).body)
            for count in 1...6 {
                await poller.send("GET", poll)
                let payload = (0..<count).map { _ in next() }.joined(separator: "\u{1E}")
                #expect(try await poster.post(sid, payload).body == "ok")
                hear(try await poller.reply().body)
                while heard.count < said { hear(try await poller.poll(sid).body) }
            }
            await poller.send("GET", poll)
            guard number % 3 != 0 else { return await number % 2 == 0 ? poller.close() : leave(poster, poller, sid) }
            let socket = try await instance.webSocket(sid)
            socket.send("2probe")
            #expect(try await socket.nextText() == "3probe")
            #expect(try await poller.reply().body == "6")
            // On the way over: it waits for the WebSocket.
            #expect(try await poster.post(sid, next() + "\u{1E}" + next()).body == "ok")
            socket.send("5")
            for _ in 0..<20 { socket.send(next()) }
            while heard.count < said { hear(try await socket.nextText()) }
            if number % 2 == 0 { socket.send("1") } else { socket.cut() }
        }

        private func leave(_ poster: PollClient, _ poller: PollClient, _ sid: String) async {
            _ = try? await poster.post(sid, "1")
            _ = try? await poller.reply()
        }
    }

    @Test("everything said is heard back in order, once; when all have left nothing is left of them")
    func crowd() async throws {
        try await EngineInstance.with { instance in
            let count = 48
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    group.addTask {
                        var member = Member(instance: instance, number: number)
                        try await member.live()
                        #expect(member.heard == (0..<member.said).map { "\(number).\($0)" })
                    }
                }
                try await group.waitForAll()
            }
            try await eventually { instance.engine.sessionCount == 0 }
            let left = try await instance.delegate.disconnected.wait(count: count)
            #expect(left.count == count && Set(left).count == count)
            let metrics = instance.metrics.text()
            for transport in ["polling", "websocket"] {
                #expect(metrics.contains("martlet_socketio_sessions{transport=\"\(transport)\"} 0"))
            }
        }
    }
}

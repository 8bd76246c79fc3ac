import Testing

@testable import SocketIO

/// The cases of engine.io-protocol's test suite (branch main), by their names, on the session alone. Opening a session
/// and its refusals are in the packets' tests; all of it over real connections is in ChatAppTests.
@Suite("Engine.IO: the reference's cases")
struct EngineConformanceTests {
    @Test("message, polling: one plain text packet, several, and plain text with binary")
    func messages() {
        for body in ["4hello", "4test1\u{1E}4test2\u{1E}4test3", "4hello\u{1E}bAQIDBA=="] {
            let machine = Machine()
            machine.post(body)
            #expect(machine.posts == ["ok"])
            for packet in machine.delivered { _ = machine.session.send(packet) }
            machine.poll()
            #expect(machine.polls == [body])
        }
    }

    @Test("message, polling: closes the session upon invalid packet format")
    func invalidPost() {
        for body in ["abc", "2", "0{}", "4a\u{1E}abc", ""] {
            let machine = Machine()
            machine.post(body)
            #expect(machine.posts == ["400"] && machine.ended == [.badPacket] && machine.isGone)
            // A payload counts whole or not at all.
            #expect(machine.delivered.isEmpty)
            machine.poll()
            #expect(machine.refusedPolls == [.unknownSession])
        }
    }

    @Test("message, polling: closes the session upon duplicate poll requests, and upon duplicate POSTs")
    func duplicates() {
        let machine = Machine()
        machine.poll()
        machine.poll()
        #expect(machine.polls == ["1"] && machine.refusedPolls == [.badRequest])
        machine.poll()
        #expect(machine.refusedPolls == [.badRequest, .unknownSession] && machine.ended == [.overlap])

        let other = Machine()
        other.poll()
        other.perform(other.session.postBegan(now: 0))
        other.perform(other.session.postBegan(now: 0))
        #expect(other.posts == ["400"] && other.polls == ["1"] && other.isGone)
        other.perform(other.session.postEnded(bytes("4late"), now: 0))
        #expect(other.posts == ["400", "400"] && other.delivered.isEmpty)
        // One after the other is what clients do.
        let third = Machine()
        third.post("4a")
        third.post("4b")
        #expect(third.posts == ["ok", "ok"] && third.texts == ["a", "b"])
    }

    @Test("message, WebSocket: text, binary, and the end upon invalid packet format")
    func frames() {
        let machine = Machine(.webSocket)
        machine.frame("4hello")
        machine.perform(machine.session.frame([1, 2, 3, 4], isBinary: true, now: 0))
        #expect(machine.texts == ["hello", "binary"])
        #expect(machine.delivered[1].encoded == [1, 2, 3, 4])
        machine.frame("abc")
        #expect(machine.closedSockets == 1 && machine.ended == [.badPacket] && machine.isGone)
        machine.frame("4late")
        #expect(machine.texts == ["hello", "binary"])
    }

    @Test("heartbeat, polling: sends ping/pong packets, and closes upon ping timeout")
    func heartbeatPolling() {
        let machine = Machine()
        for round in 0..<3 {
            let start = UInt64(round) * 350
            machine.poll()
            machine.tick(at: start + 299)
            #expect(machine.polls.count == round)
            machine.tick(at: start + 300)
            #expect(machine.polls.last == "2" && machine.polls.count == round + 1)
            machine.now = start + 350
            machine.post("3")
        }
        #expect(machine.posts == ["ok", "ok", "ok"])
        // The ping waits for a poll; its pong is late all the same.
        machine.tick(at: 3 * 350 + 300)
        machine.now = 3 * 350 + 499
        machine.poll()
        #expect(machine.polls.last == "2")
        machine.now = 3 * 350 + 500
        machine.poll()
        #expect(machine.refusedPolls == [.unknownSession] && machine.ended == [.pingTimeout])
    }

    @Test("heartbeat, WebSocket: sends ping/pong packets, and closes upon ping timeout")
    func heartbeatWebSocket() {
        let machine = Machine(.webSocket)
        for round in 1...3 {
            machine.tick(at: UInt64(round) * 300)
            #expect(machine.written == [String](repeating: "2", count: round))
            machine.frame("3")
        }
        machine.tick(at: 1200)
        machine.tick(at: 1399)
        #expect(machine.closedSockets == 0)
        machine.tick(at: 1400)
        #expect(machine.closedSockets == 1 && machine.ended == [.pingTimeout])
    }

    @Test("close, polling: the client ends the session; its poll ends with a noop, and the next is refused")
    func closePolling() {
        let machine = Machine()
        machine.poll()
        machine.post("4bye\u{1E}1\u{1E}4lost")
        #expect(machine.polls == ["6"] && machine.posts == ["ok"] && machine.texts == ["bye"])
        #expect(machine.ended == [.clientLeft])
        machine.poll()
        #expect(machine.refusedPolls == [.unknownSession])
    }

    @Test("close, polling: a poll that its own close has overtaken is answered, and a later one is not")
    func closeOvertakes() {
        let machine = Machine()
        machine.post("1")
        #expect(machine.ended == [.clientLeft] && machine.posts.isEmpty && !machine.isGone)
        machine.poll()
        #expect(machine.polls == ["6"] && machine.posts == ["ok"] && machine.isGone)
        machine.poll()
        #expect(machine.refusedPolls == [.unknownSession])

        let alone = Machine()
        alone.post("1")
        alone.tick(at: alone.session.deadline)
        #expect(alone.posts == ["ok"] && alone.isGone)
        alone.poll()
        #expect(alone.polls.isEmpty && alone.refusedPolls == [.unknownSession])
    }

    @Test("close, WebSocket")
    func closeWebSocket() {
        let machine = Machine(.webSocket)
        machine.frame("1")
        #expect(machine.closedSockets == 1 && machine.ended == [.clientLeft] && machine.isGone)
    }

    @Test("upgrade: successfully upgrades from HTTP long-polling to WebSocket")
    func upgrade() {
        let machine = Machine()
        #expect(machine.openSocket())
        machine.frame("2probe")
        #expect(machine.written == ["3probe"])
        machine.poll()
        #expect(machine.polls == ["6"])
        machine.frame("5")
        machine.frame("4hello")
        #expect(machine.texts == ["hello"])
        machine.send("back")
        #expect(machine.written == ["3probe", "4back"])
    }

    @Test("upgrade: the poll that waits is ended with a noop; what waits goes over the WebSocket, in order, once")
    func upgradeFlushes() {
        let machine = Machine()
        machine.poll()
        #expect(machine.openSocket())
        machine.frame("2probe")
        #expect(machine.polls == ["6"] && machine.written == ["3probe"])
        machine.send("a")
        machine.send("b")
        machine.frame("5")
        #expect(machine.written == ["3probe", "4a", "4b"] && machine.session.buffered.packets == 0)
    }

    @Test("upgrade: ignores HTTP requests with same sid after upgrade")
    func requestsAfterUpgrade() {
        let machine = Machine()
        #expect(machine.openSocket())
        machine.frame("2probe")
        machine.frame("5")
        machine.poll()
        machine.post("4x")
        #expect(machine.refusedPolls == [.badRequest] && machine.posts == ["400"])
        machine.frame("4hello")
        #expect(machine.texts == ["hello"] && machine.ended.isEmpty)
    }

    @Test("upgrade: ignores WebSocket connection with same sid after upgrade, and during one")
    func secondWebSocket() {
        let machine = Machine()
        #expect(machine.openSocket())
        #expect(!machine.openSocket())
        machine.frame("2probe")
        #expect(!machine.openSocket())
        machine.frame("5")
        #expect(!machine.openSocket())
        machine.frame("4hello")
        #expect(machine.texts == ["hello"])
    }

    @Test("upgrade: a trial that fails, ends or takes too long leaves the session on polling")
    func failedUpgrades() {
        let failures: [(String, (Machine) -> Void)] = [
            ("another packet", { $0.frame("4hello") }), ("another ping", { $0.frame("2other") }),
            ("no packet", { $0.frame("abc") }), ("nothing", { $0.frame("") }),
            ("binary", { $0.perform($0.session.frame([1], isBinary: true, now: 0)) }),
            ("gone", { $0.perform($0.session.webSocketClosed()) }),
            (
                "gone after the probe",
                {
                    $0.frame("2probe")
                    $0.perform($0.session.webSocketClosed())
                }
            ),
            ("late", { $0.perform($0.session.tick(now: 10_000)) }),
        ]
        for (name, fail) in failures {
            var limits = SocketIOLimits()
            limits.payloadBytesMax = 100
            let machine = Machine(limits: limits)
            #expect(machine.openSocket())
            fail(machine)
            machine.poll()
            machine.send("still")
            #expect(machine.polls.last == "4still", "\(name)")
            #expect(machine.ended.isEmpty && machine.delivered.isEmpty, "\(name)")
            #expect(machine.openSocket(), "\(name)")
        }
    }
}

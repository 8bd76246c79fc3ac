import Testing

@testable import SocketIO

@Suite("A session beyond the reference's cases")
struct EngineSessionTests {
    @Test("the server's close brings what is left and a 1, over as many polls as it takes")
    func serverCloses() {
        let waiting = Machine()
        waiting.poll()
        waiting.perform(waiting.session.close(now: 0))
        #expect(waiting.polls == ["1"] && waiting.ended == [.serverClosed] && waiting.isGone)

        let machine = Machine()
        for number in 0..<20 { machine.send("\(number)") }
        machine.perform(machine.session.close(now: 0))
        #expect(machine.ended == [.serverClosed] && !machine.isGone)
        machine.send("late")
        machine.post("4late")
        #expect(machine.posts == ["ok"] && machine.delivered.isEmpty)
        machine.poll()
        #expect(machine.polls[0].hasPrefix("40\u{1E}41\u{1E}") && machine.polls[0].hasSuffix("\u{1E}415"))
        machine.poll()
        #expect(machine.polls[1] == "416\u{1E}417\u{1E}418\u{1E}419\u{1E}1" && machine.isGone)

        let left = Machine()
        left.perform(left.session.close(now: 0))
        left.tick(at: left.session.deadline - 1)
        #expect(!left.isGone)
        left.tick(at: left.session.deadline)
        #expect(left.isGone && left.ended == [.serverClosed])

        let socket = Machine(.webSocket)
        socket.perform(socket.session.close(now: 0))
        #expect(socket.closedSockets == 1 && socket.isGone)
    }

    @Test("a poll whose client leaves ends the session, but not on its way to a WebSocket")
    func pollLeaves() {
        let machine = Machine()
        machine.perform(machine.session.pollLeft())
        #expect(machine.ended.isEmpty)
        machine.poll()
        machine.perform(machine.session.pollLeft())
        #expect(machine.ended == [.transportClosed] && machine.isGone && machine.polls.isEmpty)

        let upgrading = Machine()
        upgrading.poll()
        #expect(upgrading.openSocket())
        upgrading.perform(upgrading.session.pollLeft())
        upgrading.frame("2probe")
        upgrading.send("a")
        upgrading.frame("5")
        #expect(upgrading.written == ["3probe", "4a"] && upgrading.ended.isEmpty)
    }

    @Test("a POST that is too big or cut off ends the session")
    func failedPosts() {
        for isTooBig in [true, false] {
            let machine = Machine()
            machine.poll()
            machine.perform(machine.session.postBegan(now: 0))
            machine.perform(machine.session.postFailed(isTooBig: isTooBig))
            #expect(machine.posts == [isTooBig ? "413" : "400"] && machine.polls == ["1"])
            #expect(machine.ended == [isTooBig ? .tooBig : .transportClosed])
        }
    }

    @Test("a client that does not read is ended at the bound, and one that reads is not")
    func overflow() {
        var limits = Machine.limits
        limits.waitingPacketsMax = 5
        limits.waitingBytesMax = 1000
        let machine = Machine(limits: limits)
        for _ in 0..<5 { machine.send("x") }
        #expect(machine.ended.isEmpty)
        machine.send("x")
        #expect(machine.ended == [.slowReader] && machine.isGone)

        let big = Machine(limits: limits)
        // One may go beyond the bytes alone; the next may not.
        big.send(String(repeating: "x", count: 2000))
        #expect(big.ended.isEmpty)
        big.send("x")
        #expect(big.ended == [.slowReader])

        let reader = Machine(limits: limits)
        for _ in 0..<50 {
            reader.send("x")
            reader.poll()
        }
        #expect(reader.polls.count == 50 && reader.ended.isEmpty)
    }

    @Test("an answer to a poll has no more packets than the Python client takes, and no more bytes than a payload")
    func payloads() {
        let machine = Machine()
        for number in 0..<40 { machine.send("\(number)") }
        for count in [16, 16, 8] {
            machine.poll()
            #expect(machine.polls.last?.split(separator: "\u{1E}").count == count)
        }
        var limits = Machine.limits
        limits.payloadBytesMax = 100
        let bytes = Machine(limits: limits)
        for size in [40, 40, 40, 300, 10] { bytes.send(String(repeating: "x", count: size)) }
        for size in [83, 41, 301, 11] {
            bytes.poll()
            #expect(bytes.polls.last?.utf8.count == size)
        }
    }

    @Test("a ping that comes late costs its client nothing, and whoever still sends is not taken for gone")
    func lateness() {
        let machine = Machine(.webSocket)
        machine.tick(at: 5000)
        machine.tick(at: 5199)
        #expect(machine.ended.isEmpty)
        machine.tick(at: 5200)
        #expect(machine.ended == [.pingTimeout])

        let busy = Machine(.webSocket)
        busy.tick(at: 300)
        busy.now = 450
        busy.frame("4a")
        busy.tick(at: 500)
        #expect(busy.ended.isEmpty && busy.session.deadline == 650)
        busy.tick(at: 650)
        #expect(busy.ended == [.pingTimeout])
    }

    @Test("a noop and an upgrade where they mean nothing do no harm")
    func noops() {
        let machine = Machine()
        machine.post("6\u{1E}4a")
        machine.post("5")
        #expect(machine.posts == ["ok", "ok"] && machine.texts == ["a"] && machine.ended.isEmpty)
        #expect(machine.session.transport == .polling)
    }
}

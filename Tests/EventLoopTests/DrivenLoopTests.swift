import Foundation
import Testing

@testable import EventLoop

private actor Counter {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var count = 0
    private var waiting: CheckedContinuation<Void, Never>?

    init(_ loop: EventLoop) { self.loop = loop }

    func begin() { _ = Task(executorPreference: loop) { await self.run() } }

    private func run() async {
        count = 1
        await withCheckedContinuation { waiting = $0 }
        count = 2
    }

    func goOn() { waiting?.resume() }
}

/// What a stream has told.
private final class Told {
    var events: [String] = []
}

@Suite("A driven loop")
struct DrivenLoopTests {
    @Test("timers fire with the turn of their time, in order, one that repeats once after a long pause")
    func timers() {
        let loop = EventLoop(driven: "driven", milliseconds: 1000)
        var fired: [String] = []
        let late = LoopTimer(on: loop) { fired.append("late at \(loop.nowMilliseconds)") }
        let early = LoopTimer(on: loop) { fired.append("early") }
        let repeating = LoopTimer(on: loop) { fired.append("repeating") }
        let cancelled = LoopTimer(on: loop) { fired.append("cancelled") }
        late.start(milliseconds: 20)
        early.start(milliseconds: 10)
        repeating.start(milliseconds: 15, repeating: 15)
        cancelled.start(milliseconds: 10)
        cancelled.cancel()
        #expect(loop.nextTimerMilliseconds == 1010)
        loop.turn(at: 1009)
        #expect(fired.isEmpty)
        loop.turn(at: 1100)
        #expect(fired == ["early", "repeating", "late at 1100"])
        loop.turn(at: 1114)
        #expect(fired.count == 3)
        loop.turn(at: 1115)
        #expect(fired.last == "repeating" && fired.count == 4)
        #expect(loop.nextTimerMilliseconds == 1130)
        repeating.cancel()
        #expect(loop.nextTimerMilliseconds == nil)
    }

    @Test("time does not go back, and a timer that lets go of itself is gone")
    func released() {
        let loop = EventLoop(driven: "driven")
        var timer: LoopTimer?
        timer = LoopTimer(on: loop) { timer = nil }
        timer?.start(milliseconds: 5, repeating: 5)
        loop.turn(at: 7)
        #expect(timer == nil && loop.nextTimerMilliseconds == nil)
        loop.turn(at: 3)
        #expect(loop.nowMilliseconds == 7)
    }

    @Test("an actor's work waits for the turn, and so does what comes after a suspension")
    func actors() async {
        // On a thread of its own: a task inside of a task's turn would take the outer one's place.
        let seen: [Int] = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let loop = EventLoop(driven: "driven")
                let counter = Counter(loop)
                nonisolated(unsafe) var count = 0
                func look() -> Int {
                    loop.execute { count = counter.assumeIsolated { $0.count } }
                    loop.turn(at: 0)
                    return count
                }
                loop.execute { counter.assumeIsolated { $0.begin() } }
                var seen = [loop.isDue ? -1 : 0]
                loop.turn(at: 0)
                seen.append(loop.isDue ? -1 : 1)
                seen.append(look())
                loop.execute { counter.assumeIsolated { $0.goOn() } }
                loop.turn(at: 0)
                seen.append(look())
                continuation.resume(returning: seen)
            }
        }
        #expect(seen == [-1, 1, 1, 2])
    }

    private func connect(
        capacity: Int, loop: EventLoop, told: Told
    ) -> (stream: TCPStream, wire: DrivenWire) {
        let peer = SocketAddress(host: "192.0.2.1", port: 7)
        let (stream, wire) = DrivenWire.connect(to: loop, from: peer, capacity: capacity)
        stream.onRead = { told.events.append("read \(String(decoding: $0, as: UTF8.self))") }
        stream.onEnd = { told.events.append("end") }
        stream.onDrain = { told.events.append("drain") }
        stream.onClose = { told.events.append($0 == nil ? "close" : "broken") }
        return (stream, wire)
    }

    @Test("a stream reads what its peer sends while it wants to, then the end")
    func reads() {
        let (loop, told) = (EventLoop(driven: "driven"), Told())
        let (stream, wire) = connect(capacity: 10, loop: loop, told: told)
        #expect(stream.peer == SocketAddress(host: "192.0.2.1", port: 7))
        wire.send(Array("one".utf8))
        loop.turn(at: 0)
        #expect(told.events.isEmpty)
        stream.startReading()
        loop.turn(at: 0)
        wire.send(Array("two".utf8))
        wire.send(Array("three".utf8))
        wire.end()
        loop.turn(at: 0)
        #expect(told.events == ["read one", "read twothree", "end"])
        stream.write(Array("bye".utf8))
        stream.close()
        #expect(told.events.last == "close" && wire.isShutDown)
        #expect(wire.read(max: 2) == Array("by".utf8) && wire.read(max: 9) == Array("e".utf8))
    }

    @Test("a slow peer makes the stream keep what the network does not take, in order")
    func slow() {
        let (loop, told) = (EventLoop(driven: "driven"), Told())
        let (stream, wire) = connect(capacity: 4, loop: loop, told: told)
        stream.write(Array("abcdef".utf8))
        stream.write(Array("gh".utf8))
        #expect(stream.pendingBytes == 4 && stream.unsentBytes == 4 && wire.readable == 4)
        #expect(wire.read(max: 3) == Array("abc".utf8))
        loop.turn(at: 0)
        #expect(stream.pendingBytes == 2 && stream.unsentBytes == 1 && told.events.isEmpty)
        stream.closeAfterFlush()
        #expect(stream.isOpen)
        #expect(wire.read(max: 9) == Array("defg".utf8))
        loop.turn(at: 0)
        #expect(wire.read(max: 9) == Array("h".utf8))
        #expect(told.events == ["close"] && !stream.isOpen)
    }

    @Test("drained is told when all has been taken, and a cut or a reset loses what was on the way")
    func cut() {
        let (loop, told) = (EventLoop(driven: "driven"), Told())
        let (stream, wire) = connect(capacity: 4, loop: loop, told: told)
        stream.startReading()
        stream.write(Array("abcdef".utf8))
        _ = wire.read(max: 9)
        loop.turn(at: 0)
        #expect(told.events == ["drain"] && wire.readable == 2)
        wire.send([65])
        wire.cut()
        #expect(wire.readable == 0)
        loop.turn(at: 0)
        #expect(told.events == ["drain", "broken"] && !stream.isOpen)

        let (other, its) = connect(capacity: 4, loop: loop, told: told)
        other.write(Array("ab".utf8))
        other.reset()
        #expect(its.isReset && its.readable == 0 && told.events.last == "close")

        let (third, wireOfThird) = connect(capacity: 4, loop: loop, told: told)
        wireOfThird.cut()
        third.write([1])
        #expect(!third.isOpen && told.events.last == "broken")
    }

    @Test("a group of driven loops knows the one that is at work")
    func group() {
        let group = LoopGroup(driven: (0..<2).map { EventLoop(driven: "driven-\($0)", index: $0) })
        nonisolated(unsafe) var here: [String] = []
        for loop in group.loops.reversed() {
            loop.execute { here.append(group.here().name) }
            loop.turn(at: 0)
        }
        #expect(here == ["driven-1", "driven-0"])
        #expect(EventLoop.current == nil)
    }
}

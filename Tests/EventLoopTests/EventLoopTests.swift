import Synchronization
import Testing

@testable import EventLoop

private actor Pinned {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    init(_ loop: EventLoop) { self.loop = loop }
    func isHere() -> Bool { loop.isCurrent }
    func other(_ other: Pinned) async -> Bool { await other.isHere() && loop.isCurrent }
}

@Suite("The event loop")
struct EventLoopTests {
    @Test("an actor pinned on a loop runs on its thread, and comes back to it after a call elsewhere")
    func pinned() async {
        let group = LoopGroup(count: 2)
        let first = Pinned(group.loops[0])
        let second = Pinned(group.loops[1])
        #expect(await first.isHere())
        #expect(await first.other(second))
        #expect(EventLoop.current == nil)
        await group.stop()
    }

    @Test("calls from one thread run in order, and before the loop ends")
    func executeOrder() async {
        let loop = EventLoop(name: "order")
        let seen = Mutex<[Int]>([])
        for number in 0..<10_000 { loop.execute { seen.withLock { $0.append(number) } } }
        await loop.stop()
        #expect(seen.withLock { $0 } == Array(0..<10_000))
    }

    @Test("what is due at the turn's end runs once, after the turn's jobs")
    func turnEnd() async {
        let loop = EventLoop(name: "turn")
        let seen = Mutex<[String]>([])
        await withCheckedContinuation { continuation in
            loop.execute {
                loop.atTurnEnd {
                    seen.withLock { $0.append("end") }
                    continuation.resume()
                }
                seen.withLock { $0.append("call") }
            }
        }
        #expect(seen.withLock { $0 } == ["call", "end"])
        await loop.stop()
    }

    @Test("a timer fires on its loop, and not after it is cancelled")
    func timer() async {
        let loop = EventLoop(name: "timer")
        let fired = Mutex(0)
        await withCheckedContinuation { continuation in
            loop.execute {
                let cancelled = LoopTimer(on: loop) { fired.withLock { $0 += 100 } }
                cancelled.start(milliseconds: 1)
                cancelled.cancel()
                var kept: LoopTimer?
                kept = LoopTimer(on: loop) {
                    fired.withLock { $0 += 1 }
                    if fired.withLock({ $0 }) == 3 {
                        kept = nil
                        continuation.resume()
                    }
                }
                kept?.start(milliseconds: 1, repeating: 1)
            }
        }
        #expect(fired.withLock { $0 } == 3)
        await loop.stop()
    }

    @Test("a stopped loop answers a second stop")
    func stopTwice() async {
        let loop = EventLoop(name: "twice")
        await loop.stop()
        await loop.stop()
        #expect(!loop.isCurrent)
        loop.execute { Issue.record("a loop that has ended runs nothing") }
    }

    @Test("the offload pool runs work off the loop, and refuses more than its queue holds")
    func offload() async throws {
        let pool = OffloadPool(name: "pool", threads: 1, queueMax: 1)
        #expect(try await pool.run { EventLoop.current == nil })
        let gate = DispatchGate()
        async let running = pool.run { gate.wait() }
        await gate.entered()
        // The one thread is held and the queue holds one: of two more, one waits and the other is refused.
        let answers = await withTaskGroup(of: Int.self) { group in
            for number in [7, 8] {
                group.addTask {
                    if let answer = try? await pool.run({ number }) { return answer }
                    gate.open()
                    return 0
                }
            }
            var answers: [Int] = []
            for await answer in group { answers.append(answer) }
            return answers
        }
        try await running
        #expect(answers.count == 2 && answers.contains(0) && answers.reduce(0, +) >= 7)
        pool.stop()
    }

    @Test(
        "addresses are numeric, with a port in range",
        arguments: [
            ("127.0.0.1:80", "127.0.0.1:80"), (":8080", "0.0.0.0:8080"), ("[::1]:1", "[::1]:1"),
            ("localhost:5", "127.0.0.1:5"),
        ])
    func address(text: String, expected: String) {
        #expect(SocketAddress(text)?.description == expected)
    }

    @Test(
        "other addresses are refused",
        arguments: [
            "", "80", "example.com:80", "1.2.3:80", "127.0.0.1:65536", "::1:x",
        ])
    func addressRefused(text: String) {
        #expect(SocketAddress(text) == nil)
    }
}

import SocketIO
import TestSupport
import Testing

@testable import ChatApp

@Suite("Readers of Socket.IO, slow and gone")
struct EngineReaderTests {
    private static let piece = String(repeating: "x", count: 100_000)

    /// Who does not read answers no ping either: that it is over must not come first on a busy machine.
    private static func patient(_ limits: inout ChatLimits) { limits.socketIO.pingTimeoutMilliseconds = 600_000 }

    @Test("a WebSocket that takes nothing is closed at the bound; one that takes it late hears all, and it is told")
    func slowWebSocket() async throws {
        try await EngineInstance.with(limits: Self.patient) { instance in
            let late = try await instance.joined()
            let handle = try await instance.delegate.connected.wait(count: 1)[0]
            late.pauseReading()
            // More than the kernel takes at once, less than the bound beyond it.
            try await eventually {
                handle.emit(SharedEvent("piece") { $0.value(Self.piece) })
                return await handle.buffered() > 0
            }
            late.resumeReading()
            try await instance.delegate.drained.wait(seconds: 90) { $0.contains(handle) }
            #expect(await handle.buffered() == 0)

            late.pauseReading()
            try await eventually {
                handle.emit(SharedEvent("piece") { $0.value(Self.piece) })
                return !instance.delegate.disconnected.values.isEmpty
            }
            late.resumeReading()
            var last = try await late.next()
            while case .text = last { last = try await late.next() }
            #expect(last == .closed(1013, "Too slow a reader."))
        }
    }

    @Test("a client that does not poll is ended at the bound; one that polls late hears all, and it is told")
    func slowPoller() async throws {
        try await EngineInstance.with(limits: Self.patient) { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            _ = try await client.poll(sid)
            let handle = try await instance.delegate.connected.wait(count: 1)[0]
            let told = instance.delegate.drained.values.count
            for number in 0..<20 { handle.emit(SharedEvent("piece") { $0.value(number) }) }
            try await eventually { await handle.buffered() > 100 }
            #expect(try await client.poll(sid).body.hasPrefix(#"42["piece",0]"#))
            #expect(instance.delegate.drained.values.count == told)
            #expect(try await client.poll(sid).body.hasSuffix(#"42["piece",19]"#))
            try await instance.delegate.drained.wait(count: told + 1)

            for _ in 0..<30 { handle.emit(SharedEvent("piece") { $0.value(Self.piece) }) }
            try await instance.delegate.disconnected.wait(count: 1)
            #expect(try await client.poll(sid).status == 400)
        }
    }

    @Test("what waited for a poll and went over the WebSocket instead is told of as taken")
    func drainedByUpgrade() async throws {
        try await EngineInstance.with { instance in
            let client = try await instance.connect()
            let sid = try await instance.open(client)
            _ = try await client.post(sid, "40")
            _ = try await client.poll(sid)
            let handle = try await instance.delegate.connected.wait(count: 1)[0]
            handle.emit(SharedEvent("waits") { $0.value(1) })
            try await eventually { await handle.buffered() > 0 }
            let told = instance.delegate.drained.values.count
            let socket = try await instance.webSocket(sid)
            socket.send("2probe")
            #expect(try await socket.nextText() == "3probe")
            socket.send("5")
            #expect(try await socket.nextText() == #"42["waits",1]"#)
            try await instance.delegate.drained.wait(count: told + 1)
            #expect(await handle.buffered() == 0)
        }
    }

    @Test("a wheel gives each entry when its time has come, once, however far ahead and however late it is turned")
    func wheel() {
        var wheel = DeadlineWheel(tickMilliseconds: 10, now: 1_000_000)
        var random = SystemRandomNumberGenerator()
        var due: [Int: UInt64] = [:]
        var now: UInt64 = 1_000_000
        for id in 0..<2_000 {
            let deadline = now + UInt64.random(in: 0..<20_000, using: &random)
            due[id] = deadline
            wheel.insert(id, tick: wheel.tick(for: deadline))
            guard id % 10 == 0 else { continue }
            // Now and then later than a whole round.
            now += id % 500 == 0 ? 9_000 : UInt64.random(in: 0..<30, using: &random)
            turn(&wheel, to: now, &due)
        }
        for _ in 0..<3_000 {
            now += 10
            turn(&wheel, to: now, &due)
        }
        #expect(due.isEmpty)
    }

    private func turn(_ wheel: inout DeadlineWheel, to now: UInt64, _ due: inout [Int: UInt64]) {
        for entry in wheel.advance(to: now) {
            guard let deadline = due[entry.id] else {
                Issue.record("\(entry.id) came twice")
                continue
            }
            if deadline <= now {
                due[entry.id] = nil
            } else {
                // It lay beyond the wheel: its owner puts it back.
                wheel.insert(entry.id, tick: wheel.tick(for: deadline))
            }
        }
        for (id, deadline) in due where deadline + 10 <= now { Issue.record("\(id) is late by \(now - deadline) ms") }
    }
}

extension SocketIOHandle {
    /// From any thread.
    func buffered() async -> Int { await engine.bufferedBytes(id) }
}

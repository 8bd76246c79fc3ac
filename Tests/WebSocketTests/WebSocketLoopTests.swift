import EventLoop
import Foundation
import HTTPServer
import Synchronization
import TestSupport
import Testing

@testable import WebSocket

/// Answers each message with itself, and remembers what it heard.
private final class Echo: WebSocketDelegate {
    let opened = Mutex<[WebSocketHandle]>([])
    let closed = Mutex<[CloseCode]>([])
    let reply: @Sendable (WebSocketHandle, [UInt8]) -> Void

    init(_ reply: @escaping @Sendable (WebSocketHandle, [UInt8]) -> Void = { $0.send(text: $1) }) { self.reply = reply }

    func opened(_ socket: WebSocketHandle) { opened.withLock { $0.append(socket) } }
    func received(_ socket: WebSocketHandle, text: [UInt8]) { reply(socket, text) }
    func received(_ socket: WebSocketHandle, binary: [UInt8]) { socket.send(SharedFrame(binary: binary)) }
    func drained(_ socket: WebSocketHandle) {}
    func closed(_ socket: WebSocketHandle, _ code: CloseCode) { closed.withLock { $0.append(code) } }
}

@Suite("Sockets of a loop")
struct WebSocketLoopTests {
    /// Frames from the first byte on: the handshake is tested elsewhere.
    private func withLoop(
        _ delegate: Echo, limits: WebSocketLimits = WebSocketLimits(), compression: Bool = false,
        _ body: (Int, WebSocketLoop) async throws -> Void
    ) async throws {
        let loop = EventLoop(name: "sockets")
        let sockets = WebSocketLoop(on: loop, limits: limits, delegate: delegate)
        let port = try await sockets.listen(compression: compression)
        try await body(port, sockets)
        await loop.stop()
    }

    private func connect(_ port: Int) async throws -> WebSocketClient {
        try await WebSocketClient.connect(port: port, path: nil)
    }

    @Test("messages come back, whole ones and those in fragments, text and binary")
    func echo() async throws {
        let echo = Echo()
        try await withLoop(echo) { port, _ in
            let client = try await connect(port)
            client.send("hello")
            #expect(try await client.next() == .text("hello"))
            client.send(frame: 2, [0, 255])
            #expect(try await client.next() == .binary([0, 255]))
            client.send(frame: 1, Array("a".utf8), final: false)
            client.send(frame: 9, [1])
            client.send(frame: 0, Array("b".utf8))
            #expect(try await client.next() == .pong([1]))
            #expect(try await client.next() == .text("ab"))
        }
    }

    @Test("a close is answered with its code, and the connection ends")
    func peerCloses() async throws {
        let echo = Echo()
        try await withLoop(echo) { port, _ in
            let client = try await connect(port)
            client.send(frame: 8, [0x0F, 0xA0])
            #expect(try await client.next() == .closed(4000, ""))
            #expect(try await client.next() == .end)
            #expect(echo.closed.withLock { $0 } == [CloseCode(rawValue: 4000)])
        }
    }

    @Test("our close waits for the peer's and is not reported back")
    func weClose() async throws {
        let echo = Echo { socket, _ in socket.close(CloseCode(rawValue: 4401), "over") }
        try await withLoop(echo) { port, _ in
            let client = try await connect(port)
            client.send("x")
            #expect(try await client.next() == .closed(4401, "over"))
            #expect(try await client.next() == .end)
            #expect(echo.closed.withLock { $0 }.isEmpty)
        }
    }

    @Test("who breaks the protocol behind our close frame is let go at once too")
    func faultAfterClose() async throws {
        let signal = AsyncStream<Void>.makeStream()
        let echo = Echo { socket, _ in
            socket.close(CloseCode(rawValue: 4401), "over")
            signal.continuation.yield()
        }
        var limits = WebSocketLimits()
        limits.closeSecondsMax = 3_600
        try await withLoop(echo, limits: limits) { port, _ in
            let client = try await connect(port)
            // Or it answers the close frame before it does wrong.
            client.pauseReading()
            client.send("x")
            for await _ in signal.stream { break }
            client.send(frame: 3, [])
            client.resumeReading()
            #expect(try await client.next() == .closed(4401, "over"))
            #expect(try await client.next() == .end)
        }
    }

    static let faulty: [(bytes: [UInt8], code: UInt16)] = [
        (WebSocketClient.frame(1, [0x61], masked: false), 1002), (WebSocketClient.frame(1, [0xFF]), 1007),
        (WebSocketClient.frame(1, [UInt8](repeating: 0x61, count: 2_000)), 1009),
        (WebSocketClient.frame(3, []), 1002), (WebSocketClient.frame(1, [], rsv: 4), 1002),
    ]

    @Test("who breaks the protocol is told why, alone", arguments: faulty.indices)
    func faults(index: Int) async throws {
        let (bytes, code) = Self.faulty[index]
        let echo = Echo()
        var limits = WebSocketLimits()
        limits.messageBytesMax = 1_000
        try await withLoop(echo, limits: limits) { port, _ in
            let neighbour = try await connect(port)
            let client = try await connect(port)
            // More behind it, unread: the reason must arrive all the same.
            client.send(raw: bytes + [UInt8](repeating: 0x2A, count: 10_000))
            guard case .closed(let got, let reason) = try await client.next() else { throw CancellationError() }
            #expect(got == code && !reason.isEmpty)
            #expect(try await client.next() == .end)
            neighbour.send("still here")
            #expect(try await neighbour.next() == .text("still here"))
            #expect(echo.closed.withLock { $0 } == [CloseCode(rawValue: code)])
        }
    }

    @Test("a connection that breaks is reported as 1006")
    func cut() async throws {
        let signal = AsyncStream<Void>.makeStream()
        let echo = Echo { _, _ in signal.continuation.yield() }
        try await withLoop(echo) { port, sockets in
            let client = try await connect(port)
            client.send("x")
            for await _ in signal.stream { break }
            client.cut()
            try await poll { echo.closed.withLock { $0 } == [.abnormal] }
            #expect(await sockets.count == 0)
        }
    }

    @Test("what one turn sends arrives in order, however much it is")
    func burst() async throws {
        let echo = Echo { socket, _ in for number in 0..<3_000 { socket.send(text: Array("\(number)".utf8)) } }
        try await withLoop(echo) { port, _ in
            let client = try await connect(port)
            client.send("go")
            for number in 0..<3_000 { #expect(try await client.nextText() == "\(number)") }
        }
    }

    @Test("a reader that does not read is closed with 1013 at the limit; its neighbour notices nothing")
    func slowReader() async throws {
        let echo = Echo { socket, text in
            let frame = SharedFrame(text: [UInt8](repeating: 0x61, count: 10_000))
            for _ in 0..<2_000 { socket.send(frame) }
        }
        var limits = WebSocketLimits()
        // However long a busy machine takes to read what was taken.
        limits.closeSecondsMax = 600
        try await withLoop(echo, limits: limits) { port, _ in
            let slow = try await connect(port)
            let neighbour = try await connect(port)
            slow.pauseReading()
            slow.send("flood me")
            try await poll { echo.closed.withLock { $0 } == [.tryAgainLater] }
            neighbour.send(frame: 9, [3])
            #expect(try await neighbour.next() == .pong([3]))
            slow.resumeReading()
            var texts = 0
            var last = try await slow.next()
            while case .text(let text) = last {
                #expect(text.utf8.count == 10_000)
                texts += 1
                last = try await slow.next()
            }
            // What was taken before arrives whole; then comes the reason.
            #expect(texts > 0 && texts < 2_000)
            #expect(last == .closed(1013, "Too slow a reader."))
            #expect(try await slow.next() == .end)
        }
    }

    @Test("a silent peer is pinged, then taken for dead; one that answers stays")
    func keepAlive() async throws {
        let echo = Echo()
        var limits = WebSocketLimits()
        limits.pingAfterSeconds = 1
        // The one that answers has the time between the two for it, on a busy machine as well.
        limits.silenceSecondsMax = 8
        try await withLoop(echo, limits: limits) { port, sockets in
            let silent = try await connect(port)
            silent.ignorePings()
            let lively = try await connect(port)
            #expect(try await silent.next() == .end)
            lively.send("here")
            #expect(try await lively.next() == .text("here"))
            #expect(await sockets.count == 1)
        }
    }

    @Test("compressed messages are read and, above the threshold, written")
    func compression() async throws {
        try await withLoop(Echo(), compression: true) { port, _ in
            let client = try await connect(port)
            let text = [UInt8](repeating: 0x61, count: 4_000)
            let small = try #require(Deflater().deflate(text[...]))
            client.send(frame: 1, small, rsv: 4)
            guard case .compressed(let answer) = try await client.next() else { throw CancellationError() }
            #expect(try Inflater().inflate(answer, bytesMax: 4_000) == text)
            client.send(frame: 1, try #require(Deflater().deflate([0x62])), rsv: 4)
            #expect(try await client.next() == .text("b"))
            // Not UTF-8 once inflated; then a bomb.
            client.send(frame: 1, try #require(Deflater().deflate([0xFF])), rsv: 4)
            guard case .closed(1007, _) = try await client.next() else { throw CancellationError() }
            let other = try await connect(port)
            let bomb = [UInt8](repeating: 0x61, count: 8_000_000)
            other.send(frame: 1, try #require(Deflater().deflate(bomb[...])), rsv: 4)
            guard case .closed(1009, _) = try await other.next() else { throw CancellationError() }
        }
    }

    @Test("who waits for the sockets that are there does not wait for those that come meanwhile")
    func departures() async throws {
        let echo = Echo()
        try await withLoop(echo) { port, sockets in
            let first = try await connect(port)
            first.send("here")
            #expect(try await first.next() == .text("here"))
            let waiting = Task(executorPreference: sockets.loop) { await sockets.untilGone() }
            // Behind the call in the loop's queue.
            #expect(await sockets.count == 1)
            let second = try await connect(port)
            second.send("too late")
            #expect(try await second.next() == .text("too late"))
            first.cut()
            await waiting.value
            #expect(await sockets.count == 1)
            second.cut()
        }
    }
}

extension WebSocketLoop {
    /// A listener on the loop whose connections are sockets at once.
    func listen(compression: Bool) throws -> Int {
        let listener = try TCPListener(on: loop, address: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
            self.adopt(stream, leftover: [], compression: compression ? Compression() : nil)
        }
        // It lives as long as the loop, which closes what is left open.
        _ = Unmanaged.passRetained(listener)
        return listener.address.port
    }
}

/// Looks again whenever the scheduler lets it, until the deadline.
func poll(seconds: Double = 300, _ condition: () -> Bool) async throws {
    let deadline = Date().addingTimeInterval(seconds)
    while !condition() {
        guard Date() < deadline else { throw WebSocketClient.Failure(description: "not within \(seconds) s") }
        await Task.yield()
    }
}

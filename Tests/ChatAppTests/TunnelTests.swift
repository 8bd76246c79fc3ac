import EventLoop
import HTTPServer
import Synchronization
import TestSupport
import Testing
import WebSocket

@testable import ChatApp

/// Echoes text; sends as much as it is asked to at once; closes when told.
private final class Far: WebSocketDelegate {
    let sockets = Mutex<[WebSocketHandle]>([])
    let closed = Signal<UInt16>()

    func opened(_ socket: WebSocketHandle) {
        sockets.withLock { $0.append(socket) }
        socket.send(text: Array("hello".utf8))
    }
    func received(_ socket: WebSocketHandle, text: [UInt8]) {
        let words = String(decoding: text, as: UTF8.self)
        if words == "close" { return socket.close(.goingAway, "as asked") }
        guard let count = Int(words) else { return socket.send(text: text) }
        for _ in 0..<count { socket.send(text: [UInt8](repeating: 0x61, count: 100_000)) }
    }
    func received(_ socket: WebSocketHandle, binary: [UInt8]) { socket.send(SharedFrame(binary: binary)) }
    func drained(_ socket: WebSocketHandle) {}
    func closed(_ socket: WebSocketHandle, _ code: CloseCode) { closed.send(code.rawValue) }
}

@Suite("Tunnels between instances")
struct TunnelTests {
    /// An owner whose every loop takes WebSockets for `far`, and answers 400 at `/no`.
    private func withTunnels(
        _ far: Far, limits: @escaping (inout PassOnLimits) -> Void = { _ in },
        _ body: (PassOnPair) async throws -> Void
    ) async throws {
        var webSocketLimits = WebSocketLimits()
        webSocketLimits.outboundBytesMax = 64 * 1024 * 1024
        webSocketLimits.closeSecondsMax = 1
        let made = Mutex<[Int: WebSocketLoop]>([:])
        let shared = Shared(made: made, limits: webSocketLimits, far: far)
        // The tests' client does not close its side when the other has.
        let all: (inout PassOnLimits) -> Void = { each in
            each.tunnelEndSecondsMax = 1
            limits(&each)
        }
        try await withPair(
            limits: all,
            handler: { request in
                guard request.path != "/no" else {
                    return HTTPResponse(status: 400, body: .bytes(Array("no".utf8)))
                }
                return try shared.loop(for: request).respond(to: request, protocols: ["martlet.v1"])
            }, body)
    }

    private final class Shared: Sendable {
        private let made: Mutex<[Int: WebSocketLoop]>
        private let limits: WebSocketLimits
        private let far: Far
        init(made: consuming Mutex<[Int: WebSocketLoop]>, limits: WebSocketLimits, far: Far) {
            self.made = made
            self.limits = limits
            self.far = far
        }
        func loop(for request: HTTPRequest) -> WebSocketLoop {
            made.withLock { made in
                let known = made[request.loop.index]
                let loop = known ?? WebSocketLoop(on: request.loop, limits: limits, delegate: far)
                made[request.loop.index] = loop
                return loop
            }
        }
    }

    @Test("a WebSocket passes through: the handshake's answer, frames both ways, and the end with its code")
    func passes() async throws {
        let far = Far()
        try await withTunnels(far) { pair in
            let client = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(client.head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
            #expect(client.head.contains("Sec-WebSocket-Protocol: martlet.v1"))
            #expect(try await client.nextText() == "hello")
            for number in 0..<50 { client.send("word \(number) €") }
            for number in 0..<50 { #expect(try await client.nextText() == "word \(number) €") }
            client.send(frame: 2, [0, 1, 255])
            #expect(try await client.next() == .binary([0, 1, 255]))
            #expect(await pair.passOn.counts.tunnels == 1)
            client.send("close")
            #expect(try await client.next() == .closed(1001, "as asked"))
            #expect(try await client.next() == .end)
            try await eventually { await pair.passOn.counts.tunnels == 0 }
        }
    }

    @Test("a client that is cut off, or says goodbye, ends the owner's socket")
    func clientEnds() async throws {
        let far = Far()
        try await withTunnels(far) { pair in
            let cut = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(try await cut.nextText() == "hello")
            cut.cut()
            try await far.closed.wait(count: 1)
            let polite = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(try await polite.nextText() == "hello")
            polite.send(frame: 8, [0x03, 0xE8])
            try await far.closed.wait { $0.last == 1000 }
            #expect(try await polite.next() == .closed(1000, ""))
            try await eventually { await pair.passOn.counts.tunnels == 0 }
        }
    }

    @Test("a client that reads slowly stops the owner, and gets everything when it reads again")
    func slow() async throws {
        let far = Far()
        try await withTunnels(far) { pair in
            let client = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(try await client.nextText() == "hello")
            client.pauseReading()
            client.send("300")
            // 30 MB are more than the kernel and the tunnel hold, so most waits at the owner.
            let socket = try #require(far.sockets.withLock { $0.first })
            try await eventually {
                await withCheckedContinuation { continuation in
                    socket.actor.loop.execute { continuation.resume(returning: socket.bufferedBytes > 5_000_000) }
                }
            }
            client.resumeReading()
            for _ in 0..<300 { #expect(try await client.nextText().utf8.count == 100_000) }
            client.send("still here")
            #expect(try await client.nextText() == "still here")
        }
    }

    @Test("an upgrade that the owner refuses, or that finds no owner, is answered and no tunnel")
    func refused() async throws {
        try await withTunnels(Far()) { pair in
            let headers = [
                "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            ]
            let client = try await RawClient(port: pair.port, on: pair.loops.loops[0])
            let no = try await client.ask("GET", "/no?to=owner", headers: headers)
            #expect(no.status == 400 && no.body == "no")
            #expect(try await client.ask("GET", "/?to=nobody", headers: headers).body == PassOnTests.unknown)
            #expect(await pair.passOn.counts.tunnels == 0)
        }
    }

    @Test("tunnels are bounded; one in which nothing moves is ended, and makes room")
    func bounded() async throws {
        let far = Far()
        let limits: (inout PassOnLimits) -> Void = { limits in
            limits.tunnelsMax = 0
        }
        try await withTunnels(far, limits: limits) { pair in
            await #expect(throws: WebSocketClient.Failure.self) {
                try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            }
        }
        try await withTunnels(far, limits: { $0.tunnelIdleSecondsMax = 4 }) { pair in
            let client = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(try await client.nextText() == "hello")
            #expect(try await client.next() == .end)
            try await far.closed.wait(count: 1)
            try await eventually { await pair.passOn.counts.tunnels == 0 }
        }
    }

    @Test("draining ends every tunnel")
    func drains() async throws {
        let far = Far()
        try await withTunnels(far) { pair in
            let client = try await WebSocketClient.connect(port: pair.port, path: "/?to=owner")
            #expect(try await client.nextText() == "hello")
            await pair.passOn.drain()
            #expect(try await client.next() == .end)
            try await far.closed.wait(count: 1)
            try await eventually { await pair.passOn.counts.tunnels == 0 }
        }
    }
}

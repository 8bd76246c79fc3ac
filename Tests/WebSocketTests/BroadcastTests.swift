import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import WebSocket

/// Knows its sockets and does nothing with them.
private final class Audience: WebSocketDelegate {
    let opened = Mutex<[WebSocketHandle]>([])
    let closed = Mutex<[CloseCode]>([])

    func opened(_ socket: WebSocketHandle) { opened.withLock { $0.append(socket) } }
    func received(_ socket: WebSocketHandle, text: [UInt8]) {}
    func received(_ socket: WebSocketHandle, binary: [UInt8]) {}
    func drained(_ socket: WebSocketHandle) {}
    func closed(_ socket: WebSocketHandle, _ code: CloseCode) { closed.withLock { $0.append(code) } }
}

@Suite("Frames to many sockets")
struct BroadcastTests {
    /// More than go the usual way.
    private static let many = 40

    private func withAudience(
        compression: Bool = false,
        _ body: ([WebSocketClient], [WebSocketHandle], WebSocketLoop, Audience) async throws -> Void
    ) async throws {
        let loop = EventLoop(name: "sockets")
        let audience = Audience()
        let sockets = WebSocketLoop(on: loop, delegate: audience)
        let port = try await sockets.listen(compression: compression)
        var clients: [WebSocketClient] = []
        for count in 1...Self.many {
            clients.append(try await WebSocketClient.connect(port: port, path: nil))
            // One after the other, so that places here and there are the same.
            try await poll { audience.opened.withLock { $0.count == count } }
        }
        try await body(clients, audience.opened.withLock { $0 }, sockets, audience)
        await loop.stop()
    }

    private func frame(_ text: String) -> SharedFrame { SharedFrame(text: Array(text.utf8)) }

    @Test(
        "they come in the order of the calls, with what else a socket is sent in the same turn",
        arguments: [false, true])
    func order(compression: Bool) async throws {
        try await withAudience(compression: compression) { clients, handles, sockets, _ in
            let (first, second, third) = (frame("a"), frame("b"), frame("c"))
            // Long enough to be compressed where that is agreed on.
            let long = frame(String(repeating: "x", count: 4_000))
            await sockets.onLoop { sockets in
                handles[0].send(text: Array("before".utf8))
                sockets.send([first, second], to: handles.map(\.id))
                handles[0].send(text: Array("after".utf8))
                sockets.send([long, third], to: handles.map(\.id))
            }
            for (place, client) in clients.enumerated() {
                if place == 0 { #expect(try await client.nextText() == "before") }
                #expect(try await client.nextText() == "a")
                #expect(try await client.nextText() == "b")
                if place == 0 { #expect(try await client.nextText() == "after") }
                if compression {
                    guard case .compressed = try await client.next() else { throw CancellationError() }
                } else {
                    #expect(try await client.nextText() == String(repeating: "x", count: 4_000))
                }
                #expect(try await client.nextText() == "c")
            }
        }
    }

    @Test("one that does not read gets what it took whole, and is closed at the limit; the others get all of it")
    func slowReader() async throws {
        try await withAudience { clients, handles, sockets, audience in
            clients[1].pauseReading()
            let text = String(repeating: "a", count: 20_000)
            let frames = (0..<10).map { _ in frame(text) }
            var rounds = 0
            while audience.closed.withLock({ $0.isEmpty }), rounds < 1_000 {
                rounds += 1
                await sockets.onLoop { $0.send(frames, to: handles.map(\.id)) }
                // All together, so that nobody else is slow.
                for (place, client) in clients.enumerated() where place != 1 {
                    for _ in frames { #expect(try await client.nextText() == text) }
                }
            }
            #expect(audience.closed.withLock { $0 } == [.tryAgainLater])
            clients[1].resumeReading()
            var last = try await clients[1].next()
            while case .text(let taken) = last {
                #expect(taken == text)
                last = try await clients[1].next()
            }
            #expect(last == .closed(1013, "Too slow a reader."))
        }
    }

    @Test("a socket that catches up is given the next broadcast behind what waited")
    func catchesUp() async throws {
        try await withAudience { clients, handles, sockets, audience in
            // More than the kernel takes of one who does not read, less than what closes it.
            clients[1].pauseReading()
            let text = String(repeating: "a", count: 50_000)
            let filler = frame(text)
            var sent = 0
            while await sockets.onLoop({ $0.bufferedBytes(handles[1].id) }) == 0 {
                sent += 1
                await sockets.onLoop { $0.send([filler], to: handles.map(\.id)) }
            }
            let (live, next) = (frame("live"), frame("next"))
            await sockets.onLoop { $0.send([live], to: handles.map(\.id)) }
            clients[1].resumeReading()
            for _ in 0..<sent {
                let filled = try await clients[1].nextText()
                #expect(filled == text)
            }
            #expect(try await clients[1].nextText() == "live")
            await sockets.onLoop { $0.send([next], to: handles.map(\.id)) }
            #expect(try await clients[1].nextText() == "next")
            #expect(audience.closed.withLock { $0.isEmpty })
        }
    }

    @Test("a place's next owner is not given what its former one was sent")
    func formerOwner() async throws {
        try await withAudience { clients, handles, sockets, audience in
            clients[0].cut()
            try await poll { audience.closed.withLock { $0 } == [.abnormal] }
            let (old, new) = (frame("old"), frame("new"))
            let handle = handles[0]
            try await sockets.connectOne { client in
                try await poll { audience.opened.withLock { $0.count == Self.many + 1 } }
                let owner = try #require(audience.opened.withLock { $0.last })
                await sockets.onLoop { $0.send([old], to: handles.map(\.id)) }
                await sockets.onLoop { $0.send([new], to: handles.dropFirst().map(\.id) + [owner.id]) }
                #expect(owner.id != handle.id)
                #expect(try await client.nextText() == "new")
            }
        }
    }
}

extension WebSocketLoop {
    func onLoop<Value: Sendable>(_ body: @Sendable (isolated WebSocketLoop) -> Value) -> Value { body(self) }

    func connectOne(_ body: (WebSocketClient) async throws -> Void) async throws {
        try await body(try await WebSocketClient.connect(port: try listen(compression: false), path: nil))
    }
}

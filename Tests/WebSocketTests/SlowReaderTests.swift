import EventLoop
import Synchronization
import Testing

@testable import WebSocket

/// Sends what it is asked to when a socket opens, and remembers how it ended.
private final class Sender: WebSocketDelegate {
    let opened: @Sendable (WebSocketHandle) -> Void
    let closed = Mutex<[CloseCode]>([])

    init(_ opened: @escaping @Sendable (WebSocketHandle) -> Void) { self.opened = opened }

    func opened(_ socket: WebSocketHandle) { opened(socket) }
    func received(_ socket: WebSocketHandle, text: [UInt8]) {}
    func received(_ socket: WebSocketHandle, binary: [UInt8]) {}
    func drained(_ socket: WebSocketHandle) {}
    func closed(_ socket: WebSocketHandle, _ code: CloseCode) { closed.withLock { $0.append(code) } }
}

@Suite("What waits for a reader")
struct SlowReaderTests {
    /// A short message and one that is longer than what may wait, in one turn, to a peer whose network takes so much.
    private func send(capacity: Int) -> (read: [UInt8], closed: [CloseCode]) {
        let loop = EventLoop(driven: "sockets")
        let sender = Sender { socket in
            socket.send(text: Array("short".utf8))
            socket.send(text: [UInt8](repeating: 65, count: 2_000))
        }
        var limits = WebSocketLimits()
        limits.outboundBytesMax = 1_000
        let sockets = WebSocketLoop(on: loop, limits: limits, delegate: sender)
        let peer = SocketAddress(host: "192.0.2.1", port: 1)
        let (stream, wire) = DrivenWire.connect(to: loop, from: peer, capacity: capacity)
        nonisolated(unsafe) let taken = stream
        loop.execute { sockets.assumeIsolated { $0.adopt(taken, leftover: [], compression: nil) } }
        loop.turn(at: 0)
        return (wire.read(max: 10_000), sender.closed.withLock { $0 })
    }

    @Test("what the network takes at once does not wait: nobody is closed for it")
    func quick() {
        let (read, closed) = send(capacity: 10_000)
        #expect(read.count == 2 + 5 + 4 + 2_000)
        #expect(closed.isEmpty)
    }

    @Test("what it does not take waits, and too much of that closes the socket")
    func slow() {
        let (read, closed) = send(capacity: 3)
        #expect(read == [0x81, 5, UInt8(ascii: "s")])
        #expect(closed == [.tryAgainLater])
    }
}

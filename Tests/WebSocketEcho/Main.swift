import EventLoop
import Foundation
import HTTPServer
import WebSocket

/// Sends back what it hears, as it came: the peer of the framing cases in Tests/Clients, not a program to ship.
private final class Echo: WebSocketDelegate {
    func opened(_ socket: WebSocketHandle) {}
    func received(_ socket: WebSocketHandle, text: [UInt8]) { socket.send(text: text) }
    func received(_ socket: WebSocketHandle, binary: [UInt8]) { socket.send(SharedFrame(binary: binary)) }
    func drained(_ socket: WebSocketHandle) {}
    func closed(_ socket: WebSocketHandle, _ code: CloseCode) {}
}

@main
enum Main {
    /// The cases go up to 16 MiB a message; two of them may wait for a client that is still writing.
    private static let messageBytesMax = 64 * 1024 * 1024

    /// Serves at any free port of the loopback, which it prints, until its standard input ends.
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let loops = LoopGroup(count: 2, name: "echo")
        let sockets = loops.loops.map { WebSocketLoop(on: $0, limits: limits, delegate: Echo()) }
        let server = HTTPServer(
            loops: loops, address: SocketAddress(host: "127.0.0.1", port: 0),
            onError: { error, _ in ((error as? HTTPError) ?? HTTPError(500, "\(error)")).response },
            handler: { try sockets[$0.loop.index].respond(to: $0, protocols: ["echo"]) })
        print(try await server.start().port)
        fflush(nil)
        // The loops have threads of their own; this one has nothing else to do.
        while readLine() != nil {}
    }

    private static var limits: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.messageBytesMax = messageBytesMax
        limits.outboundBytesMax = messageBytesMax
        return limits
    }
}

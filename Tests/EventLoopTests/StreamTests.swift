import Foundation
import Testing

@testable import EventLoop

@Suite("Sockets and files of a loop")
struct StreamTests {
    /// Runs `body` on the loop and waits until it calls back.
    private func on<T: Sendable>(
        _ loop: EventLoop, _ body: @escaping @Sendable (@escaping @Sendable (T) -> Void) -> Void
    ) async -> T {
        await withCheckedContinuation { continuation in
            loop.execute { body { continuation.resume(returning: $0) } }
        }
    }

    @Test("a stream sends what it is given and what its peer sends back, and ends when both sides have ended")
    func echo() async throws {
        let loop = EventLoop(name: "streams")
        let text: String = await on(loop) { done in
            var listener: TCPListener?
            listener = try? TCPListener(on: loop, address: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
                stream.onRead = { stream.write($0) }
                stream.onEnd = { stream.closeAfterFlush() }
                stream.startReading()
            }
            guard let address = listener?.address else { return done("no listener") }
            TCPStream.connect(to: address, on: loop) { result in
                guard let stream = try? result.get() else { return done("not connected") }
                var received = ""
                stream.onRead = { received += String(decoding: $0, as: UTF8.self) }
                stream.onEnd = {
                    stream.close()
                    listener?.close()
                    done(received)
                }
                stream.startReading()
                stream.write(Array("hello ".utf8))
                stream.write(Array("world".utf8))
                stream.shutdown()
            }
        }
        #expect(text == "hello world")
        await loop.stop()
    }

    @Test("a stream goes on on another loop: what was sent meanwhile is read there, and the former loop has let go")
    func moves() async throws {
        let (first, second) = (EventLoop(name: "first"), EventLoop(name: "second"))
        let text: String = await on(first) { done in
            var listener: TCPListener?
            listener = try? TCPListener(on: first, address: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
                listener?.close()
                stream.onClose = { _ in done("told of its end") }
                // Two descriptors are one connection: it is neither ended nor read by the one that is left behind.
                stream.startReading()
                stream.move(to: second) { moved in
                    moved.onRead = { bytes in
                        moved.write(Array("on \(EventLoop.current?.name ?? "none"): ".utf8))
                        moved.write(bytes)
                    }
                    moved.onEnd = { moved.closeAfterFlush() }
                    moved.startReading()
                }
            }
            guard let address = listener?.address else { return done("no listener") }
            TCPStream.connect(to: address, on: first) { result in
                guard let stream = try? result.get() else { return done("not connected") }
                var received = ""
                stream.onRead = { received += String(decoding: $0, as: UTF8.self) }
                stream.onEnd = {
                    stream.close()
                    done(received)
                }
                stream.startReading()
                stream.write(Array("hello".utf8))
                stream.shutdown()
            }
        }
        #expect(text == "on second: hello")
        await first.stop()
        await second.stop()
    }

    @Test("a stream with bytes to write, or whose new loop has ended, does not move: its peer sees the end")
    func movesNot() async throws {
        for hasPending in [true, false] {
            let (first, second) = (EventLoop(name: "first"), EventLoop(name: "second"))
            if !hasPending { await second.stop() }
            let ended: Bool = await on(first) { done in
                var listener: TCPListener?
                listener = try? TCPListener(on: first, address: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
                    listener?.close()
                    // More than the kernel takes while nobody reads.
                    while hasPending, stream.pendingBytes == 0 { stream.write([UInt8](repeating: 0, count: 1 << 20)) }
                    stream.move(to: second) { _ in done(false) }
                }
                guard let address = listener?.address else { return done(false) }
                TCPStream.connect(to: address, on: first) { result in
                    guard let stream = try? result.get() else { return done(false) }
                    stream.onEnd = { stream.close() }
                    stream.onClose = { _ in done(true) }
                    stream.startReading()
                }
            }
            #expect(ended)
            await first.stop()
            await second.stop()
        }
    }

    @Test("connecting where nobody listens, or to what is no address, fails")
    func refused() async throws {
        let loop = EventLoop(name: "refused")
        let code: Int32 = await on(loop) { done in
            guard
                let listener = try? TCPListener(
                    on: loop, address: SocketAddress(host: "127.0.0.1", port: 0), accepted: { _ in })
            else { return done(0) }
            let address = listener.address
            listener.close()
            // The port is closed once the loop has gone round.
            loop.execute {
                TCPStream.connect(to: address, on: loop) { result in
                    if case .failure(let error) = result { done(error.code) } else { done(0) }
                }
            }
        }
        #expect(code == -ECONNREFUSED)
        let named: Int32 = await on(loop) { done in
            TCPStream.connect(to: SocketAddress(host: "localhost", port: 1), on: loop) { result in
                if case .failure(let error) = result { done(error.code) } else { done(0) }
            }
        }
        #expect(named == -EINVAL)
        await loop.stop()
    }

    @Test("a file is read in pieces; a folder and a missing file are not opened")
    func files() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)").path
        try Data("0123456789".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let loop = EventLoop(name: "files")
        let reader = FileReader(loop)
        #expect(try await reader.read(path, at: 2, count: 3) == Array("234".utf8))
        #expect(try await reader.read(path, at: 8, count: 100) == Array("89".utf8))
        #expect(try await reader.read(path, at: 10, count: 1) == [])
        for (wrong, code) in [("/tmp", -EISDIR), (path + "x", -ENOENT), ("/dev/null", -EISDIR)] {
            let error = await #expect(throws: LoopError.self) { try await reader.read(wrong, at: 0, count: 1) }
            #expect(error?.code == code, "\(wrong)")
        }
        await loop.stop()
    }
}

private actor FileReader {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ loop: EventLoop) { self.loop = loop }

    func read(_ path: String, at offset: Int, count: Int) async throws -> [UInt8] {
        let file = try await LoopFile.open(path, on: loop)
        return try await file.read(at: offset, count: count, on: loop)
    }
}

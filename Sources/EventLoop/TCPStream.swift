import Cuv
import Foundation
import Synchronization

/// A TCP connection of one loop. Not Sendable: everything happens on the loop's thread.
///
/// Set the callbacks before `startReading()`. After `onClose` nothing else is called and every method does nothing.
public final class TCPStream {
    public let loop: EventLoop
    public private(set) var peer = SocketAddress(host: "", port: 0)

    /// What arrived. The bytes are valid during the call only: all connections of a loop read into one buffer.
    public var onRead: ((UnsafeRawBufferPointer) -> Void)?
    /// The peer will send no more. It may still read.
    public var onEnd: (() -> Void)?
    /// What was buffered by `write` has all been handed to the kernel.
    public var onDrain: (() -> Void)?
    /// Called exactly once, when the connection is over for whatever reason; nil after `close()`.
    public var onClose: ((LoopError?) -> Void)?

    /// Bytes accepted by `write` that the kernel has not taken yet. The owner bounds it.
    public private(set) var pendingBytes = 0
    public private(set) var isOpen = true
    public private(set) var isReading = false

    private let handle: UnsafeMutablePointer<uv_tcp_t>
    /// What there is instead of the kernel on a driven loop; nil on a real one. Its handle is never used.
    let wire: DrivenWire?
    private var socket: Int32 = -1
    private var closeWhenDrained = false
    private var isShutDown = false

    private struct WriteRequest {
        var request = uv_write_t()
        var bytes: UnsafeMutableRawBufferPointer
    }

    init(on loop: EventLoop, wire: DrivenWire, peer: SocketAddress) {
        self.loop = loop
        self.wire = wire
        self.peer = peer
        handle = .allocate(capacity: 1)
    }

    private init(on loop: EventLoop) {
        self.loop = loop
        wire = nil
        handle = .allocate(capacity: 1)
        uv_tcp_init(loop.uv, handle)
    }

    deinit {
        if wire != nil { handle.deallocate() }
    }

    convenience init?(accepting server: UnsafeMutablePointer<uv_tcp_t>, on loop: EventLoop) {
        self.init(on: loop)
        let from = UnsafeMutableRawPointer(server).assumingMemoryBound(to: uv_stream_t.self)
        guard uv_accept(from, stream) == 0 else {
            isOpen = false
            closeAndFree(handle)
            return nil
        }
        connected()
    }

    private func connected() {
        uv_tcp_nodelay(handle, 1)
        socket = descriptor
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &storage) {
            _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { uv_tcp_getpeername(handle, $0, &length) }
        }
        peer = SocketAddress(storage)
        // The handle owns the stream until its close callback, so callbacks never meet a freed object.
        handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    private final class Connecting {
        let stream: TCPStream
        let body: (Result<TCPStream, LoopError>) -> Void
        init(_ stream: TCPStream, _ body: @escaping (Result<TCPStream, LoopError>) -> Void) {
            self.stream = stream
            self.body = body
        }

        func ended(_ status: Int32) {
            guard status < 0 else {
                stream.connected()
                body(.success(stream))
                return
            }
            stream.isOpen = false
            closeAndFree(stream.handle)
            body(.failure(LoopError(code: status, doing: "connect")))
        }
    }

    /// Connects, and calls `body` once: with the stream, or with why there is none. On the loop's thread only; how long
    /// it takes is the kernel's affair, so a caller with a deadline has a timer of its own.
    public static func connect(
        to address: SocketAddress, on loop: EventLoop, _ body: @escaping (Result<TCPStream, LoopError>) -> Void
    ) {
        let stream = TCPStream(on: loop)
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        let connecting = Unmanaged.passRetained(Connecting(stream, body))
        request.pointee.data = connecting.toOpaque()
        let result = address.withSockaddr {
            uv_tcp_connect(request, stream.handle, $0) { request, status in
                guard let request, let data = request.pointee.data else { return }
                request.deallocate()
                Unmanaged<Connecting>.fromOpaque(data).takeRetainedValue().ended(status)
            }
        }
        let code = result ?? Int32(UV_EINVAL.rawValue)
        guard code != 0 else { return }
        request.deallocate()
        connecting.release()
        stream.isOpen = false
        closeAndFree(stream.handle)
        body(.failure(LoopError(code: code, doing: "connect to \(address)")))
    }

    /// Goes on with this connection on another loop: `body` is called there, soon, with a stream that does not read,
    /// and this one is over without a word, `onClose` included. What the peer sends meanwhile waits in the kernel.
    ///
    /// With bytes still to be written the connection is closed instead, and `body` is not called; neither is it when
    /// the process has no descriptor left, or when the other loop has ended.
    public func move(to other: EventLoop, _ body: @escaping @Sendable (sending TCPStream) -> Void) {
        onClose = nil
        guard isOpen, pendingBytes == 0, wire == nil else { return close() }
        // A second descriptor of the same connection: closing the first one leaves it alone, and takes it out of this
        // loop's poll.
        let moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        close()
        guard moved >= 0 else { return }
        let carried = CarriedDescriptor(moved)
        other.execute {
            guard let descriptor = carried.take(), let stream = TCPStream(adopting: descriptor, on: other) else {
                return
            }
            body(stream)
        }
    }

    /// - Parameter descriptor: of a connected socket; closed if it cannot be taken.
    private convenience init?(adopting descriptor: Int32, on loop: EventLoop) {
        self.init(on: loop)
        guard uv_tcp_open(handle, descriptor) == 0 else {
            isOpen = false
            Glibc.close(descriptor)
            closeAndFree(handle)
            return nil
        }
        connected()
    }

    private var stream: UnsafeMutablePointer<uv_stream_t> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
    }

    /// For sendfile and socket options. Valid while open.
    public var descriptor: Int32 {
        var descriptor: Int32 = -1
        uv_fileno(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self), &descriptor)
        return descriptor
    }

    public func startReading() {
        guard isOpen, !isReading else { return }
        isReading = true
        if let wire { return wire.wake() }
        uv_read_start(
            stream,
            { handle, _, buffer in
                guard let handle, let buffer else { return }
                buffer.pointee = EventLoop.readBuffer(of: handle.pointee.loop)
            },
            { handle, count, buffer in
                guard let data = handle?.pointee.data else { return }
                // The handle holds the stream until its close callback, which never runs inside this one.
                Unmanaged<TCPStream>.fromOpaque(data)._withUnsafeGuaranteedRef {
                    $0.received(count, buffer?.pointee.base)
                }
            })
    }

    /// Back-pressure: the kernel's buffer fills and the peer waits.
    public func stopReading() {
        guard isOpen, isReading else { return }
        isReading = false
        if wire == nil { uv_read_stop(stream) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) { onRead?(bytes) }

    /// The peer will send no more.
    func ended() {
        isReading = false
        onEnd?()
    }

    private func received(_ count: Int, _ base: UnsafeMutablePointer<CChar>?) {
        if count > 0 {
            onRead?(UnsafeRawBufferPointer(start: base, count: count))
        } else if count == Int(UV_EOF.rawValue) {
            uv_read_stop(stream)
            ended()
        } else if count < 0 {
            close(LoopError(code: Int32(count), doing: "read"))
        }
    }

    /// Sends now what the kernel takes and copies the rest, which goes out in order.
    public func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    public func write(_ bytes: UnsafeRawBufferPointer) {
        guard isOpen, let base = bytes.baseAddress, !bytes.isEmpty else { return }
        var sent = 0
        if pendingBytes == 0 {
            // As uv_try_write would, but by send: a tenth cheaper than write, which matters when a message goes to a
            // thousand sockets.
            let result =
                wire?.take(bytes) ?? send(socket, base, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            if result >= 0 {
                sent = result
            } else if errno != EAGAIN, errno != EINTR {
                close(LoopError(code: -errno, doing: "write"))
                return
            }
        }
        if sent < bytes.count { queue(UnsafeRawBufferPointer(rebasing: bytes[sent...])) }
    }

    /// Where `offer(_:to:)` is as good as `write` for the moment, as nothing waits before it; -1 where it is not.
    public var directDescriptor: Int32 { isOpen && pendingBytes == 0 ? socket : -1 }

    /// Sends what the kernel takes of these bytes: for who gives the same ones to a thousand streams, whose descriptors
    /// it keeps at hand.
    /// - Returns: how many bytes that were. With fewer than all, `write` the rest; it also finds out what was wrong.
    public static func offer(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int {
        max(0, Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)))
    }

    private func queue(_ rest: UnsafeRawBufferPointer) {
        if let wire {
            pendingBytes += rest.count
            return wire.queue(rest)
        }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: rest.count, alignment: 1)
        copy.copyMemory(from: rest)
        let request = UnsafeMutablePointer<WriteRequest>.allocate(capacity: 1)
        request.initialize(to: WriteRequest(bytes: copy))
        pendingBytes += rest.count
        var buffer = uv_buf_init(copy.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(copy.count))
        let raw = UnsafeMutableRawPointer(request).assumingMemoryBound(to: uv_write_t.self)
        let result = uv_write(raw, stream, &buffer, 1) { request, status in
            guard let request, let data = request.pointee.handle?.pointee.data else { return }
            let whole = UnsafeMutableRawPointer(request).assumingMemoryBound(to: WriteRequest.self)
            let count = whole.pointee.bytes.count
            whole.pointee.bytes.deallocate()
            whole.deinitialize(count: 1)
            whole.deallocate()
            Unmanaged<TCPStream>.fromOpaque(data).takeUnretainedValue().wrote(count, status)
        }
        if result != 0 {
            copy.deallocate()
            request.deallocate()
            close(LoopError(code: result, doing: "write"))
        }
    }

    func wrote(_ count: Int, _ status: Int32) {
        pendingBytes -= count
        guard isOpen else { return }
        if status < 0 {
            close(LoopError(code: status, doing: "write"))
        } else if pendingBytes == 0 {
            if closeWhenDrained { close() } else { onDrain?() }
        }
    }

    /// Bytes that the kernel has not taken yet, partial progress counted: how a slow reader is told from a dead one.
    public var unsentBytes: Int {
        guard isOpen else { return 0 }
        return wire?.unsentBytes ?? uv_stream_get_write_queue_size(stream)
    }

    /// Ends our side at once, while nothing is pending: the peer reads on to what was sent last, and its bytes still
    /// arrive.
    public func halfClose() {
        guard isOpen, pendingBytes == 0 else { return }
        if let wire { wire.shutdown() } else { Glibc.shutdown(descriptor, Int32(SHUT_WR)) }
    }

    /// Ends our side once everything written has been taken; the peer's bytes still arrive.
    public func shutdown() {
        guard isOpen, !isShutDown else { return }
        isShutDown = true
        if let wire { return wire.shutdown() }
        let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
        // A failure means the connection is already over, which reading tells as well.
        let result = uv_shutdown(request, stream) { request, _ in request?.deallocate() }
        if result != 0 { request.deallocate() }
    }

    /// Closes once everything written has been taken by the kernel.
    public func closeAfterFlush() {
        guard isOpen else { return }
        if pendingBytes == 0 { close() } else { closeWhenDrained = true }
    }

    /// Closes at once; what was buffered is dropped.
    public func close() { close(nil) }

    /// Ends with a reset instead of an orderly close: for peers that are being thrown out.
    public func reset() {
        guard isOpen else { return }
        if let wire {
            wire.reset()
            return close(nil)
        }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close(nil)
    }

    func close(_ error: LoopError?) {
        guard isOpen else { return }
        isOpen = false
        isReading = false
        if let wire { wire.close() } else { closeHandle() }
        let closed = onClose
        onRead = nil
        onEnd = nil
        onDrain = nil
        onClose = nil
        closed?(error)
    }

    private func closeHandle() {
        // The loop may have ended and closed its handles itself.
        let raw = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
        guard uv_is_closing(raw) == 0 else { return }
        uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) { handle in
            guard let handle else { return }
            let data = handle.pointee.data
            UnsafeMutableRawPointer(handle).deallocate()
            if let data { Unmanaged<TCPStream>.fromOpaque(data).release() }
        }
    }
}

/// A descriptor on its way to another loop: closed if it does not get there.
private final class CarriedDescriptor: Sendable {
    private let descriptor: Atomic<Int32>

    init(_ descriptor: Int32) { self.descriptor = Atomic(descriptor) }

    deinit {
        if let left = take() { Glibc.close(left) }
    }

    func take() -> Int32? {
        let descriptor = descriptor.exchange(-1, ordering: .relaxed)
        return descriptor >= 0 ? descriptor : nil
    }
}

import Cuv
import Foundation

/// Accepts TCP connections on one loop. Every loop of a process may listen on the same address, and the kernel spreads
/// connections over them (SO_REUSEPORT); no other process may. On the loop's thread only.
public final class TCPListener {
    /// Connections the kernel holds before the loop takes them.
    public static let backlogMax: Int32 = 4096

    public let loop: EventLoop
    public private(set) var address: SocketAddress
    private let handle: UnsafeMutablePointer<uv_tcp_t>
    private let accepted: (TCPStream) -> Void
    private var open = true

    /// - Parameter joins: false: nobody may be listening there, and who joins may follow. True: another listener of
    ///   this process is there already.
    /// - Throws: `LoopError` when the address is taken, or not one of this machine.
    public init(
        on loop: EventLoop, address: SocketAddress, joins: Bool = false, accepted: @escaping (TCPStream) -> Void
    ) throws(LoopError) {
        self.loop = loop
        self.address = address
        self.accepted = accepted
        handle = .allocate(capacity: 1)
        let family = address.host.contains(":") ? AF_INET6 : AF_INET
        uv_tcp_init_ex(loop.uv, handle, UInt32(family))
        do {
            // Two sockets with SO_REUSEPORT share a port whichever processes of a user they are of, and without a word.
            // The first of a process has it only once it listens, so the kernel compares it with every other, also
            // with one on all addresses; of two processes at once, listen() is granted to one at most (it looks again).
            if joins { try sharePort() }
            let bound = address.withSockaddr { uv_tcp_bind(handle, $0, 0) } ?? Int32(UV_EINVAL.rawValue)
            try LoopError.check(bound, "listen on \(address)")
            let stream = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
            let listening = uv_listen(stream, Self.backlogMax) { server, status in
                guard status == 0, let data = server?.pointee.data else { return }
                Unmanaged<TCPListener>.fromOpaque(data).takeUnretainedValue().accept()
            }
            try LoopError.check(listening, "listen on \(address)")
            if !joins { try sharePort() }
        } catch {
            closeAndFree(handle)
            open = false
            throw error
        }
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &storage) {
            _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { uv_tcp_getsockname(handle, $0, &length) }
        }
        self.address = SocketAddress(storage)
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        close()
    }

    private var uvHandle: UnsafeMutablePointer<uv_handle_t> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
    }

    private func sharePort() throws(LoopError) {
        var descriptor: Int32 = -1
        try LoopError.check(uv_fileno(uvHandle, &descriptor), "listen on \(address)")
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    private func accept() {
        guard let stream = TCPStream(accepting: handle, on: loop) else { return }
        accepted(stream)
    }

    /// Whether no connection waits to be accepted at this moment.
    public var isBacklogEmpty: Bool {
        var descriptor: Int32 = -1
        guard open, uv_fileno(uvHandle, &descriptor) == 0 else { return true }
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) == 0
    }

    /// Connections that the kernel had already taken are accepted in the turn before; call this a turn after going
    /// unready.
    public func close() {
        guard open else { return }
        open = false
        handle.pointee.data = nil
        closeAndFree(handle)
    }
}

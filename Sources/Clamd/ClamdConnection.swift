import Foundation

/// One connection to clamd, with blocking calls that all end at its deadline. Used by one thread.
final class ClamdConnection {
    private let descriptor: Int32
    private let deadline: ContinuousClock.Instant

    deinit { close(descriptor) }

    /// - Parameters:
    ///   - connectSeconds: of the connection alone.
    ///   - seconds: of everything.
    init(_ address: ClamdAddress, connectSeconds: Double, seconds: Double) throws(ClamdError) {
        let now = ContinuousClock.now
        deadline = now + .seconds(seconds)
        descriptor = try Self.connect(address, until: min(deadline, now + .seconds(connectSeconds)))
    }

    // MARK: The exchange

    /// Sends all of it, or as much as clamd takes before it answers or leaves.
    /// - Returns: whether it was all.
    func send(_ bytes: UnsafeRawBufferPointer) throws(ClamdError) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            let count = Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count > 0 {
                sent += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                let ready = try Self.wait(descriptor, for: Int16(POLLIN) | Int16(POLLOUT), until: deadline)
                if ready & Int16(POLLIN) != 0 { return false }
            // It has left, and may have said why.
            case EPIPE, ECONNRESET: return false
            default: throw .unreachable(Self.text(errno))
            }
        }
        return true
    }

    func send(_ bytes: [UInt8]) throws(ClamdError) -> Bool {
        // The closure's error is of no type here, so that it is carried as a result.
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(ClamdError) in try send(bytes) }
        }
        return try result.get()
    }

    /// Reads what clamd says until it ends the connection.
    func receive(into exchange: inout ClamdExchange) throws(ClamdError) {
        var buffer = [UInt8](repeating: 0, count: 1024)
        while true {
            _ = try Self.wait(descriptor, for: Int16(POLLIN), until: deadline)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 {
                try exchange.received(buffer[..<count])
            } else if count == 0 || errno == ECONNRESET {
                return
            } else if errno != EINTR, errno != EAGAIN {
                throw .unreachable(Self.text(errno))
            }
        }
    }

    // MARK: Connecting

    private static func connect(_ address: ClamdAddress, until end: ContinuousClock.Instant) throws(ClamdError) -> Int32
    {
        switch address {
        case .socket(let path):
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
            let result = withUnsafeBytes(of: &name) { bytes in
                Result { () throws(ClamdError) in try connect(AF_UNIX, bytes, until: end) }
            }
            return try result.get()
        case .tcp(let host, let port): return try connect(host: host, port: port, until: end)
        }
    }

    /// To the first of the host's addresses that takes the connection. The look-up of a name has times of its own.
    private static func connect(
        host: String, port: Int, until end: ContinuousClock.Instant
    ) throws(ClamdError) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let found else {
            throw .unreachable("the name \(host) has no address")
        }
        defer { freeaddrinfo(found) }
        var problem = ClamdError.unreachable("the name \(host) has no address")
        var next: UnsafeMutablePointer<addrinfo>? = found
        while let address = next {
            next = address.pointee.ai_next
            let bytes = UnsafeRawBufferPointer(start: address.pointee.ai_addr, count: Int(address.pointee.ai_addrlen))
            do { return try connect(address.pointee.ai_family, bytes, until: end) } catch { problem = error }
        }
        throw problem
    }

    private static func connect(
        _ family: Int32, _ address: UnsafeRawBufferPointer, until end: ContinuousClock.Instant
    ) throws(ClamdError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { throw .unreachable(text(errno)) }
        do throws(ClamdError) {
            let name = address.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            guard Glibc.connect(descriptor, name, socklen_t(address.count)) != 0 else { return descriptor }
            guard errno == EINPROGRESS else { throw ClamdError.unreachable(text(errno)) }
            _ = try wait(descriptor, for: Int16(POLLOUT), until: end)
            var (code, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code == 0 else {
                throw ClamdError.unreachable(text(code))
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    // MARK: Waiting

    /// - Returns: which of the events it is; an end or an error of the connection is all of them.
    private static func wait(
        _ descriptor: Int32, for events: Int16, until end: ContinuousClock.Instant
    ) throws(ClamdError) -> Int16 {
        while true {
            let left = (end - ContinuousClock.now) / .milliseconds(1)
            guard left > 0 else { throw .timedOut }
            var asked = pollfd(fd: descriptor, events: events, revents: 0)
            let count = poll(&asked, 1, Int32(min(left.rounded(.up), Double(Int32.max))))
            if count > 0 { return asked.revents & events != 0 ? asked.revents & events : events }
            guard count == 0 || errno == EINTR else { throw .unreachable(text(errno)) }
        }
    }

    private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}

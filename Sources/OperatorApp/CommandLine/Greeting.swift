import Foundation
import Glibc

/// Asks whether somebody listens. Blocking, on a thread of its own, for the few times an operator wants to know.
enum Greeting {
    static let waitSecondsMax = 5
    static let bytesMax = 1024

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Connects by TCP and, when asked, waits for the first words of the other side.
    static func ask(host: String, port: Int, waitsForWords: Bool) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            // A detached thread, because a look-up of names cannot be given up.
            Thread.detachNewThread {
                continuation.resume(with: Result { try blocking(host, port, waitsForWords) })
            }
        }
    }

    private static func blocking(_ host: String, _ port: Int, _ waitsForWords: Bool) throws -> String {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let found else {
            throw Failure(description: "the name has no address")
        }
        defer { freeaddrinfo(found) }
        var reason = "no address"
        var next: UnsafeMutablePointer<addrinfo>? = found
        while let address = next {
            next = address.pointee.ai_next
            let handle = socket(address.pointee.ai_family, address.pointee.ai_socktype, address.pointee.ai_protocol)
            guard handle >= 0 else { continue }
            defer { close(handle) }
            // The timeout of sending holds for connect as well (socket(7)).
            var limit = timeval(tv_sec: waitSecondsMax, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
            setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            guard connect(handle, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 else {
                reason = String(cString: strerror(errno))
                continue
            }
            guard waitsForWords else { return "" }
            var buffer = [UInt8](repeating: 0, count: bytesMax)
            let count = recv(handle, &buffer, buffer.count, 0)
            guard count > 0 else { throw Failure(description: "it accepts connections but says nothing") }
            return String(decoding: buffer[..<count], as: UTF8.self)
        }
        throw Failure(description: reason)
    }
}

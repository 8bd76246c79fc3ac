import Foundation

/// Length-prefixed messages (four bytes, big-endian) over a pipe.
enum Frames {
    /// A document's text in JSON, where each byte of it may become two.
    static let bytesMax = 16 << 20

    enum Failure: Error, Equatable {
        /// The other side is gone.
        case ended
        case tooLong
        case timedOut
        case system(Int32)
    }

    static func write(_ body: Data, to descriptor: Int32) throws(Failure) {
        guard body.count <= bytesMax else { throw .tooLong }
        var frame: [UInt8] = []
        withUnsafeBytes(of: UInt32(body.count).bigEndian) { frame.append(contentsOf: $0) }
        frame.append(contentsOf: body)
        var sent = 0
        while sent < frame.count {
            let count = frame[sent...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                sent += count
            } else if errno == EPIPE {
                throw .ended
            } else if errno != EINTR {
                throw .system(errno)
            }
        }
    }

    /// The next message. Waits until `deadline`, without one for ever.
    static func read(from descriptor: Int32, until deadline: ContinuousClock.Instant? = nil) throws(Failure) -> Data {
        let head = try readExactly(4, from: descriptor, until: deadline)
        let count = head.reduce(0) { $0 << 8 | Int($1) }
        guard count <= bytesMax else { throw .tooLong }
        return try readExactly(count, from: descriptor, until: deadline)
    }

    private static func readExactly(
        _ count: Int, from descriptor: Int32, until deadline: ContinuousClock.Instant?
    ) throws(Failure) -> Data {
        var data = Data(capacity: min(count, 1 << 20))
        var buffer = [UInt8](repeating: 0, count: min(count, 1 << 16))
        while data.count < count {
            if let deadline { try wait(for: descriptor, until: deadline) }
            let got = Glibc.read(descriptor, &buffer, min(buffer.count, count - data.count))
            if got > 0 {
                data.append(contentsOf: buffer[..<got])
            } else if got == 0 {
                throw .ended
            } else if errno != EINTR {
                throw .system(errno)
            }
        }
        return data
    }

    private static func wait(for descriptor: Int32, until deadline: ContinuousClock.Instant) throws(Failure) {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { throw .timedOut }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // At least a millisecond, so that the last part of one does not spin.
            let milliseconds = min(max(left / .milliseconds(1), 1), 60_000)
            let ready = poll(&waiting, 1, Int32(milliseconds))
            if ready > 0 { return }
            if ready < 0 && errno != EINTR { throw .system(errno) }
        }
    }
}

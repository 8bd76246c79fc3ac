import Cseccomp
import Foundation
import Synchronization

/// Length-prefixed messages (four bytes, big-endian) over a pipe.
enum Frames {
    /// A document's text in JSON, where each byte of it may become two.
    static let bytesMax = 16 << 20

    enum Failure: Error, Equatable {
        /// The other side is gone.
        case ended
        case tooLong
        case timedOut
        case givenUp
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

    /// The next message. Waits until `deadline` or the signal, without a deadline for ever.
    static func read(
        from descriptor: Int32, until deadline: ContinuousClock.Instant? = nil, unless signal: EndSignal? = nil
    ) throws(Failure) -> Data {
        let head = try readExactly(4, from: descriptor, until: deadline, unless: signal)
        let count = head.reduce(0) { $0 << 8 | Int($1) }
        guard count <= bytesMax else { throw .tooLong }
        return try readExactly(count, from: descriptor, until: deadline, unless: signal)
    }

    private static func readExactly(
        _ count: Int, from descriptor: Int32, until deadline: ContinuousClock.Instant?, unless signal: EndSignal?
    ) throws(Failure) -> Data {
        var data = Data(capacity: min(count, 1 << 20))
        var buffer = [UInt8](repeating: 0, count: min(count, 1 << 16))
        while data.count < count {
            if let deadline { try wait(for: descriptor, until: deadline, unless: signal) }
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

    private static func wait(
        for descriptor: Int32, until deadline: ContinuousClock.Instant, unless signal: EndSignal?
    ) throws(Failure) {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { throw .timedOut }
            // A negative descriptor is passed by.
            var waiting = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signal?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            // At least a millisecond, so that the last part of one does not spin.
            let milliseconds = min(max(left / .milliseconds(1), 1), 60_000)
            let ready = poll(&waiting, 2, Int32(milliseconds))
            if waiting[0].revents != 0 { return }
            if waiting[1].revents != 0 { throw .givenUp }
            if ready < 0 && errno != EINTR { throw .system(errno) }
        }
    }
}

/// Told once, to all who wait on a descriptor.
final class EndSignal: Sendable {
    /// Readable, at its end, when the signal has been given.
    let descriptor: Int32
    private let other: Mutex<Int32>

    init() {
        var ends: [Int32] = [-1, -1]
        // Without a pipe nobody is told, and waits end by their deadlines.
        _ = martlet_pipe(&ends)
        descriptor = ends[0]
        other = Mutex(ends[1])
    }

    deinit {
        give()
        if descriptor >= 0 { close(descriptor) }
    }

    func give() {
        other.withLock { end in
            if end >= 0 { close(end) }
            end = -1
        }
    }
}

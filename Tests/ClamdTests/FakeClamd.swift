import Foundation
import Synchronization

/// A clamd that does as the test says, on a socket in a folder of its own. It takes one connection after the other.
final class FakeClamd: Sendable {
    let path: String
    private let listener: Int32
    private let seen = Mutex<[[UInt8]]>([])

    /// What each connection has sent, up to its end or until the script left.
    var received: [[UInt8]] { seen.withLock { $0 } }

    /// - Parameter script: has the connection's descriptor, which is closed after it; returns what it has read.
    init(_ script: @escaping @Sendable (Int32) -> [UInt8]) throws {
        path = NSTemporaryDirectory() + "clamd-" + String(UInt64.random(in: .min ... .max), radix: 16)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        let isListening = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 && listen(listener, 8) == 0
            }
        }
        guard isListening else { throw CocoaError(.fileWriteUnknown) }
        Thread.detachNewThread { [listener, weak self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else {
                    // Here and nowhere else: the number may be another test's afterwards.
                    close(listener)
                    return
                }
                let bytes = script(descriptor)
                self?.seen.withLock { $0.append(bytes) }
                close(descriptor)
            }
        }
    }

    deinit {
        // Wakes the thread, which ends then.
        shutdown(listener, Int32(SHUT_RDWR))
        unlink(path)
    }

    static func say(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Reads as clamd does: a command, and of INSTREAM the pieces up to the empty one, or `bytesMax` of them.
    static func read(_ descriptor: Int32, bytesMax: Int = .max) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 8192)
        while bytes.count < bytesMax {
            let count = recv(descriptor, &buffer, min(buffer.count, bytesMax - bytes.count), 0)
            guard count > 0 else { break }
            bytes += buffer[..<count]
            let isStream = bytes.starts(with: Array("zINSTREAM\0".utf8))
            if isStream ? bytes.count > 3 && bytes[(bytes.count - 4)...].allSatisfy({ $0 == 0 }) : bytes.last == 0 {
                break
            }
        }
        return bytes
    }
}

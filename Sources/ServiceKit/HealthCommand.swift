import EventLoop
import Foundation
import Glibc

/// `PROGRAM health`: asks the service that runs beside it, by the same settings, whether it is ready. For containers:
/// an image has no other program that could.
enum HealthCommand {
    static let argument = "health"
    /// For the connection, and again for the answer. A service that does not answer within is not well.
    static let waitSecondsMax = 3
    /// Of the answer: the status and the problems by name.
    static let answerBytesMax = 4096

    /// - Returns: 0 when the service is ready; 1 when it is not, with its words, or does not answer; 78 when no address
    ///   is set to ask at.
    static func run(_ name: String, _ environment: inout Environment) -> Int32 {
        guard environment.value("MARTLET_ADMIN_ADDRESS") != nil else {
            complain(name, "MARTLET_ADMIN_ADDRESS is not set: there is nobody to ask")
            return ConfigurationError.exitStatus
        }
        let address = environment.address("MARTLET_ADMIN_ADDRESS", default: "")
        do { try environment.check() } catch {
            complain(name, "\(error)")
            return ConfigurationError.exitStatus
        }
        guard let answer = ask(address) else {
            complain(name, "nobody answers at \(address)")
            return 1
        }
        guard answer.hasPrefix("HTTP/1.1 200 ") else {
            complain(name, answer.components(separatedBy: "\r\n\r\n").last ?? answer)
            return 1
        }
        return 0
    }

    private static func complain(_ name: String, _ text: String) {
        FileHandle.standardError.write(Data("\(name): \(text)\n".utf8))
    }

    /// What comes back of `GET /readyz`, to its end; nil without a connection or without a word.
    private static func ask(_ address: SocketAddress) -> String? {
        // A service that listens everywhere listens here.
        let host = ["0.0.0.0": "127.0.0.1", "::": "::1"][address.host] ?? address.host
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(address.port), &hints, &found) == 0, let found else { return nil }
        defer { freeaddrinfo(found) }
        let handle = socket(found.pointee.ai_family, found.pointee.ai_socktype, found.pointee.ai_protocol)
        guard handle >= 0 else { return nil }
        defer { close(handle) }
        // The timeout of sending holds for connect as well (socket(7)).
        var limit = timeval(tv_sec: waitSecondsMax, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        guard connect(handle, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 else { return nil }
        let request = Array("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        guard send(handle, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return nil }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: answerBytesMax)
        while answer.count < answerBytesMax {
            let count = recv(handle, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        return answer.isEmpty ? nil : String(decoding: answer, as: UTF8.self)
    }
}

import Foundation
import Synchronization

/// A mail server for tests: real sockets, scripted replies, everything it took kept.
public final class SMTPSink: Sendable {
    public struct Mail: Sendable {
        public let from: String
        public let to: [String]
        /// As it came, dots unstuffed.
        public let data: String

        /// The unfolded value of a header.
        public func header(_ name: String) -> String? {
            let head = data.components(separatedBy: "\r\n\r\n")[0].replacingOccurrences(of: "\r\n ", with: " ")
            let line = head.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
            return line.map { String($0.dropFirst(name.count + 1)).trimmingCharacters(in: .whitespaces) }
        }
    }

    public struct Script: Sendable {
        /// The reply to RCPT, MAIL and the greeting; nil hangs up instead.
        public var greeting: String? = "220 sink ESMTP"
        public var from: @Sendable (String) -> String? = { _ in "250 fine" }
        public var recipient: @Sendable (String) -> String? = { _ in "250 fine" }
        /// The reply after the data of the n-th mail, from 0, which is kept in any case; nil hangs up.
        public var data: @Sendable (Int) -> String? = { _ in "250 taken" }
        /// Wanted as AUTH PLAIN, when set.
        public var credentials: (user: String, password: String)?

        public init() {}
    }

    private struct State {
        var mails: [Mail] = []
        var waiters: [(count: Int, id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var nextWaiter = 0
        var connections = 0
    }

    public let port: UInt16
    private let listener: Int32
    private let state = Mutex(State())
    private let script: Script

    public init(_ script: Script = Script()) {
        self.script = script
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        precondition(bound, "no port for the mail sink")
        port = UInt16(bigEndian: address.sin_port)
        let thread = Thread { [weak self] in
            while true {
                let peer = accept(listener, nil, nil)
                guard peer >= 0, let sink = self else { return }
                sink.state.withLock { $0.connections += 1 }
                Thread { sink.serve(peer) }.start()
            }
        }
        thread.start()
    }

    deinit { stop() }

    /// No further connections.
    public func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    public var mails: [Mail] { state.withLock { $0.mails } }
    public var connections: Int { state.withLock { $0.connections } }

    /// Waits until `count` mails came in all, or for `seconds`; whether they did.
    public func wait(for count: Int, seconds: Double = 300) async -> Bool {
        await withCheckedContinuation { continuation in
            let id = state.withLock { state -> Int? in
                guard state.mails.count < count else { return nil }
                state.nextWaiter += 1
                state.waiters.append((count, state.nextWaiter, continuation))
                return state.nextWaiter
            }
            guard let id else { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [weak self] in
                let late = self?.state.withLock { state in
                    state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).continuation }
                }
                (late ?? nil)?.resume(returning: false)
            }
        }
    }

    private func keep(_ mail: Mail) -> Int {
        let (index, due) = state.withLock { state in
            state.mails.append(mail)
            let count = state.mails.count
            let due = state.waiters.filter { $0.count <= count }
            state.waiters.removeAll { $0.count <= count }
            return (count - 1, due)
        }
        for waiter in due { waiter.continuation.resume(returning: true) }
        return index
    }

    private func serve(_ peer: Int32) {
        guard let file = fdopen(peer, "r") else { return }
        defer { fclose(file) }
        let talk = Talk(peer: peer, file: file)
        guard talk.say(script.greeting) else { return }
        var (from, to, trusted) = ("", [String](), script.credentials == nil)
        while let line = talk.hear() {
            let upper = line.uppercased()
            if upper.hasPrefix("EHLO") {
                guard talk.say(script.credentials == nil ? "250 sink" : "250-sink\r\n250 AUTH PLAIN") else { return }
            } else if upper.hasPrefix("AUTH PLAIN") {
                trusted = isTrusted(line, talk)
                guard talk.say(trusted ? "235 welcome" : "535 no") else { return }
            } else if upper.hasPrefix("MAIL FROM:") {
                (from, to) = (Self.path(line), [])
                guard talk.say(trusted ? script.from(from) : "530 who are you") else { return }
            } else if upper.hasPrefix("RCPT TO:") {
                to.append(Self.path(line))
                guard talk.say(script.recipient(Self.path(line))) else { return }
            } else if upper == "DATA" {
                guard let data = talk.data() else { return }
                guard talk.say(script.data(keep(Mail(from: from, to: to, data: data)))) else { return }
            } else if upper == "QUIT" {
                _ = talk.say("221 bye")
                return
            } else {
                guard talk.say(upper == "RSET" || upper == "NOOP" ? "250 fine" : "500 what") else { return }
            }
        }
    }

    private func isTrusted(_ line: String, _ talk: Talk) -> Bool {
        var word = String(line.dropFirst(10)).trimmingCharacters(in: .whitespaces)
        if word.isEmpty {
            guard talk.say("334 "), let next = talk.hear() else { return false }
            word = next
        }
        let given = Data(base64Encoded: word).map { String(decoding: $0, as: UTF8.self) }
        return given == script.credentials.map { "\0\($0.user)\0\($0.password)" }
    }

    private static func path(_ line: String) -> String {
        guard let open = line.firstIndex(of: "<"), let close = line.firstIndex(of: ">") else { return "" }
        return String(line[line.index(after: open)..<close])
    }

    /// Lines in and out of one connection.
    private struct Talk {
        let peer: Int32
        let file: UnsafeMutablePointer<FILE>

        func say(_ line: String?) -> Bool {
            guard let line else { return false }
            let bytes = Array((line + "\r\n").utf8)
            return send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
        }

        func hear() -> String? {
            var line: UnsafeMutablePointer<CChar>?
            var capacity = 0
            defer { free(line) }
            let count = getline(&line, &capacity, file)
            guard count > 0, let line else { return nil }
            let bytes = UnsafeRawBufferPointer(start: line, count: count)
            return String(decoding: bytes, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "")
        }

        func data() -> String? {
            guard say("354 go on") else { return nil }
            var data = ""
            while let line = hear() {
                if line == "." { return data }
                data += (line.hasPrefix(".") ? String(line.dropFirst()) : line) + "\r\n"
            }
            return nil
        }
    }
}

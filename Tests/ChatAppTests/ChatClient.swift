import Foundation
import Synchronization
import TestSupport

/// A frame of the server, its members by name.
struct Frame: CustomStringConvertible {
    let text: String
    private let members: [String: Any]

    init(_ text: String) throws {
        self.text = text
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
        members = object as? [String: Any] ?? [:]
    }

    var type: String { string("type") ?? "" }
    func string(_ name: String) -> String? { members[name] as? String }
    func int(_ name: String) -> Int64? { (members[name] as? NSNumber)?.int64Value }
    func bool(_ name: String) -> Bool { (members[name] as? NSNumber)?.boolValue ?? false }
    func list(_ name: String) -> [[String: Any]] { members[name] as? [[String: Any]] ?? [] }
    /// A number of the first room of `ready`.
    func firstRoom(_ name: String) -> Int64? { (list("rooms").first?[name] as? NSNumber)?.int64Value }
    func seqs(_ name: String) -> [Int64] { list(name).compactMap { ($0["seq"] as? NSNumber)?.int64Value } }
    func ints(_ name: String) -> [Int64] { (members[name] as? [NSNumber] ?? []).map(\.int64Value) }
    func object(_ name: String) -> [String: Any] { members[name] as? [String: Any] ?? [:] }
    var description: String { text }
}

/// Speaks `martlet.v1` over a real socket.
final class ChatClient: Sendable {
    struct Seen: Sendable, Equatable {
        let room: Int64
        let seq: Int64
        let body: String
        var kind = "text"
        var target: Int64?
    }

    private struct State {
        var ready: String?
        var messages: [Seen] = []
        var passed: [String] = []
    }

    let socket: WebSocketClient
    private let state = Mutex(State())

    /// - Parameter address: what a proxy says of who it is.
    init(port: Int, address: String? = nil) async throws {
        socket = try await WebSocketClient.connect(
            port: port, headers: address.map { ["X-Forwarded-For": $0] } ?? [:])
    }

    var ready: Frame? { state.withLock { $0.ready }.flatMap { try? Frame($0) } }
    /// Every message that came, in order.
    var messages: [Seen] { state.withLock { $0.messages } }
    /// Frames that came before the one that was waited for, and are not messages.
    var passed: [Frame] { state.withLock { $0.passed }.compactMap { try? Frame($0) } }
    func seqs(_ room: Int64) -> [Int64] { messages.filter { $0.room == room }.map(\.seq) }
    func last(_ room: Int64) -> Int64 { state.withLock { $0.messages.last { $0.room == room }?.seq ?? 0 } }

    func hello(_ token: String, resume: [Int: Int64] = [:]) {
        let rooms = resume.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        socket.send(#"{"type":"hello","token":"\#(token)","resume":{\#(rooms)}}"#)
    }

    /// The answer to a hello.
    func awaitReady() async throws {
        let frame = try await next("ready")
        state.withLock { $0.ready = frame.text }
    }

    func send(_ room: Int, _ id: String, _ body: String) {
        socket.send(#"{"type":"send","room":\#(room),"id":"\#(id)","body":"\#(body)"}"#)
    }

    /// The next frame of this type; messages on the way are remembered.
    func next(_ type: String, seconds: Double = 300) async throws -> Frame {
        while true {
            let frame = try Frame(try await socket.nextText(seconds: seconds))
            note(frame)
            if frame.type == type { return frame }
            if frame.type != "message" { state.withLock { $0.passed.append(frame.text) } }
        }
    }

    /// Waits until this client has the message of a room with this seq.
    func until(room: Int64, seq: Int64, seconds: Double = 300) async throws {
        while last(room) < seq { _ = try await next("message", seconds: seconds) }
    }

    /// Everything that has come, without waiting.
    func drain() throws {
        for received in socket.takeAll() {
            if case .text(let text) = received { note(try Frame(text)) }
        }
    }

    private func note(_ frame: Frame) {
        guard frame.type == "message", let room = frame.int("room"), let seq = frame.int("seq") else { return }
        let seen = Seen(
            room: room, seq: seq, body: frame.string("body") ?? "", kind: frame.string("kind") ?? "",
            target: frame.int("target"))
        state.withLock { $0.messages.append(seen) }
    }

    /// The code of the server's close.
    func closeCode(seconds: Double = 300) async throws -> UInt16 {
        while true {
            switch try await socket.next(seconds: seconds) {
            case .closed(let code, _): return code
            case .text(let text): note(try Frame(text))
            case .end: return 1006
            default: continue
            }
        }
    }

    /// An answer to a question proves that nothing that was due before it is missing.
    func ping() async throws {
        socket.send(frame: 9, [1])
        while try await socket.next() != .pong([1]) {}
    }
}

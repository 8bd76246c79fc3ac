import Cwslay
import Seeded
import TestSupport
import Testing

@testable import WebSocket

/// wslay reading the same bytes: a second opinion by people who are not us.
private final class Wslay {
    enum Seen: Equatable {
        case message(opcode: UInt8, [UInt8])
    }

    private(set) var seen: [Seen] = []
    private var bytes: [UInt8]
    private var index = 0

    /// The messages and control frames, and whether wslay found a fault.
    static func read(_ bytes: [UInt8]) -> (seen: [Seen], fault: Bool) {
        let reader = Wslay(bytes)
        let fault = reader.run()
        return (reader.seen, fault)
    }

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    private func run() -> Bool {
        var callbacks = wslay_event_callbacks()
        callbacks.recv_callback = { context, buffer, length, _, data in
            guard let data, let buffer else { return -1 }
            let reader = Unmanaged<Wslay>.fromOpaque(data).takeUnretainedValue()
            let count = min(length, reader.bytes.count - reader.index)
            guard count > 0 else {
                wslay_event_set_error(context, Int32(WSLAY_ERR_WOULDBLOCK.rawValue))
                return -1
            }
            for offset in 0..<count { buffer[offset] = reader.bytes[reader.index + offset] }
            reader.index += count
            return count
        }
        callbacks.on_msg_recv_callback = { _, message, data in
            guard let data, let message = message?.pointee else { return }
            let reader = Unmanaged<Wslay>.fromOpaque(data).takeUnretainedValue()
            let payload = Array(UnsafeBufferPointer(start: message.msg, count: message.msg_length))
            reader.seen.append(.message(opcode: message.opcode, payload))
        }
        var context: wslay_event_context_ptr?
        wslay_event_context_server_init(&context, &callbacks, Unmanaged.passUnretained(self).toOpaque())
        defer { wslay_event_context_free(context) }
        wslay_event_config_set_max_recv_msg_length(context, 70_000)
        let result = wslay_event_recv(context)
        // At a fault it stops to read without having been closed.
        return result != 0
            || (wslay_event_get_read_enabled(context) == 0
                && wslay_event_get_close_received(context) == 0)
    }
}

@Suite("Frames in the eyes of wslay")
struct SecondOpinionTests {
    private static func ours(_ bytes: [UInt8]) -> (seen: [Wslay.Seen], fault: Bool) {
        var seen: [Wslay.Seen] = []
        var fault = false
        for outcome in FrameReaderTests.run(bytes, pieces: [.max]) {
            switch outcome {
            case .event(.message(let isText, _, let payload)): seen.append(.message(opcode: isText ? 1 : 2, payload))
            case .event(.ping(let payload)): seen.append(.message(opcode: 9, payload))
            case .event(.pong(let payload)): seen.append(.message(opcode: 10, payload))
            case .event(.close(let code, let reason)):
                let head = code == .noStatus ? [] : [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
                seen.append(.message(opcode: 8, head + Array(reason.utf8)))
            case .fault: fault = true
            }
        }
        return (seen, fault)
    }

    @Test("both see the same messages in noise, and what is a fault there is one here", arguments: 0..<64)
    func noise(seed: Int) {
        var random = SeededGenerator(seed: UInt64(1_000 + seed))
        for _ in 0..<100 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let opcode: UInt8 = [0, 0, 1, 2, 9, 10, 8].randomElement(using: &random)!
                let isControl = opcode >= 8
                let count = Int.random(in: 0...(isControl ? 125 : 300), using: &random)
                var payload = (0..<count).map { _ in UInt8.random(in: 0x20...0x7E, using: &random) }
                if opcode == 8, count >= 2 { (payload[0], payload[1]) = (0x03, 0xE8) }
                bytes += WebSocketClient.frame(
                    opcode, payload, final: isControl || Bool.random(using: &random))
            }
            if Bool.random(using: &random) {
                bytes[bytes.indices.randomElement(using: &random)!] ^= 1 << UInt8.random(in: 0...7, using: &random)
            }
            let ours = Self.ours(bytes)
            let theirs = Wslay.read(bytes)
            // Where wslay is more lenient than §5.5.1: half a close code.
            if case .message(8, let payload) = theirs.seen.last, payload.count == 1 { continue }
            #expect(ours.seen == theirs.seen)
            // It waits for a whole head where we refuse at the first byte that cannot be right.
            if theirs.fault { #expect(ours.fault) }
        }
    }
}

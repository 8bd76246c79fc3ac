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
struct FrameFuzz {
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

    /// Frames, most of them as they may come.
    private static func frames(_ fuzz: inout FuzzCase) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<fuzz.number(1...6) {
            let opcode: UInt8 = fuzz.pick([0, 0, 1, 2, 9, 10, 8])
            let isControl = opcode >= 8
            var payload = (0..<fuzz.number(0...(isControl ? 125 : 300))).map { _ in
                UInt8.random(in: 0x20...0x7E, using: &fuzz.random)
            }
            if opcode == 8, payload.count >= 2 { (payload[0], payload[1]) = (0x03, 0xE8) }
            let isFinal = fuzz.once(in: 2) || (isControl && !fuzz.once(in: 20))
            bytes += WebSocketClient.frame(opcode, payload, final: isFinal)
        }
        return bytes
    }

    @Test("both see the same messages, and what is a fault there is one here; the same however they are cut")
    func frames() throws {
        try Fuzz("frames", rounds: 6_000).run { fuzz in
            let frames = Self.frames(&fuzz)
            fuzz.input = fuzz.once(in: 2) ? frames : fuzz.mutated(frames, timesMax: 2)
            let whole = FrameReaderTests.run(fuzz.input, pieces: [.max])
            let pieces = fuzz.split(fuzz.input).map(\.count)
            try fuzz.checkEqual(
                FrameReaderTests.run(fuzz.input, pieces: pieces.isEmpty ? [1] : pieces), whole,
                "in pieces of \(pieces.prefix(20))")
            let ours = Self.ours(fuzz.input)
            let theirs = Wslay.read(fuzz.input)
            // Where wslay is more lenient than §5.5.1: half a close code.
            if case .message(8, let payload) = theirs.seen.last, payload.count == 1 { return }
            try fuzz.check(ours.seen == theirs.seen, "wslay sees \(theirs.seen), we \(ours.seen)")
            // It waits for a whole head where we refuse at the first byte that cannot be right, and refuses a reason
            // to close at its first wrong byte where we wait for the whole.
            let isFault = ours.fault || Self.ours(fuzz.input + [UInt8](repeating: 0, count: 125)).fault
            try fuzz.check(isFault || !theirs.fault, "a fault for wslay, and not for us")
        }
    }
}

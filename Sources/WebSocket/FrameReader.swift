/// Reads the frames of a client (RFC 6455 §5): bytes in, in pieces of any size; messages and control frames out. It
/// does no I/O and holds no buffer between messages, so an idle connection costs the size of this struct.
///
/// Why it is ours and not a library's: docs/decisions/0010-websocket-frames.md.
public struct FrameReader {
    public enum Event: Equatable, Sendable {
        /// A whole message, its fragments put together. Text that is not compressed has been checked to be UTF-8.
        case message(text: Bool, compressed: Bool, [UInt8])
        case ping([UInt8])
        case pong([UInt8])
        /// Nothing is read after it. Without a code: `CloseCode.noStatus`.
        case close(CloseCode, reason: String)
    }

    private enum Step: UInt8 {
        case first, second, length, mask, payload, ended
    }

    private enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
        var isControl: Bool { rawValue >= 8 }
    }

    /// §5.5
    static let controlBytesMax = 125

    /// Of a message, all its fragments together, as it comes over the wire.
    private let messageBytesMax: Int
    /// Whether RSV1 may mark a compressed message (RFC 7692 §6).
    private let compression: Bool

    private var step = Step.first
    private var opcode = Opcode.continuation
    private var isFinal = false
    private var isCompressed = false
    /// The kind of the message whose fragments are coming: nil between messages.
    private var fragmented: Opcode?
    /// Bytes of the length or of the mask that are still to come.
    private var missing: UInt8 = 0
    private var extended: UInt8 = 0
    private var utf8 = UTF8Checker()
    /// The mask, first byte lowest, turned so that its lowest byte meets the next byte of the payload.
    private var mask: UInt32 = 0
    private var left: UInt64 = 0
    private var message: [UInt8] = []
    private var control: [UInt8] = []

    public init(messageBytesMax: Int, compression: Bool = false) {
        self.messageBytesMax = messageBytesMax
        self.compression = compression
    }

    /// Whether nothing of a frame or of a message has been read that is not complete.
    public var isIdle: Bool { step == .first && fragmented == nil }

    /// Reads on.
    /// - Parameter body: called for each event, in order.
    /// - Throws: `WebSocketFault`: 1002, 1007 or 1009; nothing is read after it.
    public mutating func feed(
        _ bytes: UnsafeRawBufferPointer, _ body: (Event) -> Void
    ) throws(WebSocketFault) {
        do throws(WebSocketFault) {
            try read(bytes, body)
        } catch {
            end()
            throw error
        }
    }

    /// Stops reading: what comes from now on is thrown away.
    public mutating func end() {
        step = .ended
        message = []
        control = []
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (Event) -> Void) throws(WebSocketFault) {
        var index = 0
        while index < bytes.count {
            switch step {
            case .ended:
                return
            case .payload:
                let count = Int(min(left, UInt64(bytes.count - index)))
                try take(UnsafeRawBufferPointer(rebasing: bytes[index..<index + count]))
                index += count
                left -= UInt64(count)
            case .first:
                try readFirst(bytes[index])
                index += 1
            case .second:
                try readSecond(bytes[index])
                index += 1
            case .length:
                left = left << 8 | UInt64(bytes[index])
                missing -= 1
                index += 1
                if missing == 0 { try checkLength() }
            case .mask:
                mask |= UInt32(bytes[index]) << (8 * UInt32(4 - missing))
                missing -= 1
                index += 1
                if missing == 0 { step = .payload }
            }
            // An empty payload is complete as soon as its mask is.
            if step == .payload, left == 0 {
                step = .first
                try finishFrame(body)
            }
        }
    }

    private mutating func readFirst(_ byte: UInt8) throws(WebSocketFault) {
        isFinal = byte & 0x80 != 0
        guard let opcode = Opcode(rawValue: byte & 0x0F) else {
            throw WebSocketFault(.protocolError, "Reserved opcode.")
        }
        self.opcode = opcode
        let isMarked = byte & 0x40 != 0
        guard byte & 0x30 == 0, !isMarked || (compression && (opcode == .text || opcode == .binary)) else {
            throw WebSocketFault(.protocolError, "Reserved bits are set.")
        }
        if opcode.isControl {
            guard isFinal else { throw WebSocketFault(.protocolError, "A control frame is fragmented.") }
        } else if opcode == .continuation {
            guard fragmented != nil else {
                throw WebSocketFault(.protocolError, "A continuation without a message.")
            }
        } else {
            guard fragmented == nil else {
                throw WebSocketFault(.protocolError, "A message begins within a message.")
            }
            isCompressed = isMarked
            fragmented = opcode
            utf8 = UTF8Checker()
        }
        step = .second
    }

    private mutating func readSecond(_ byte: UInt8) throws(WebSocketFault) {
        guard byte & 0x80 != 0 else { throw WebSocketFault(.protocolError, "A client's frame is not masked.") }
        left = UInt64(byte & 0x7F)
        extended = 0
        if left > UInt64(Self.controlBytesMax) {
            guard !opcode.isControl else { throw WebSocketFault(.protocolError, "A control frame is too long.") }
            extended = left == 126 ? 2 : 8
            missing = extended
            left = 0
            step = .length
        } else {
            try checkLength()
        }
    }

    private mutating func checkLength() throws(WebSocketFault) {
        // §5.2: the shortest form, and never the highest bit.
        if extended == 2 && left < 126 || extended == 8 && (left <= 0xFFFF || left >> 63 != 0) {
            throw WebSocketFault(.protocolError, "A length is not in its shortest form.")
        }
        if !opcode.isControl, left > UInt64(messageBytesMax - message.count) {
            throw WebSocketFault(.tooBig, "A message is limited to \(messageBytesMax) bytes.")
        }
        mask = 0
        missing = 4
        step = .mask
    }

    private mutating func take(_ bytes: UnsafeRawBufferPointer) throws(WebSocketFault) {
        if opcode.isControl {
            control.append(contentsOf: bytes)
            Self.unmask(&control, last: bytes.count, mask)
            turnMask(bytes.count)
            return
        }
        let start = message.count
        message.append(contentsOf: bytes)
        Self.unmask(&message, last: bytes.count, mask)
        turnMask(bytes.count)
        guard fragmented == .text, !isCompressed else { return }
        let isValid = message.withUnsafeBytes { whole in
            utf8.feed(UnsafeRawBufferPointer(rebasing: whole[start...]))
        }
        guard isValid else { throw WebSocketFault(.invalidData, "Text that is not UTF-8.") }
    }

    private static func unmask(_ array: inout [UInt8], last count: Int, _ mask: UInt32) {
        guard mask != 0 else { return }
        array.withUnsafeMutableBytes { whole in
            let bytes = UnsafeMutableRawBufferPointer(rebasing: whole[(whole.count - count)...])
            let wide = UInt64(mask) << 32 | UInt64(mask)
            var index = 0
            while index + 8 <= count {
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                // The lowest byte of the mask meets the first byte whatever the machine's byte order is.
                bytes.storeBytes(of: word ^ wide.littleEndian, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            while index < count {
                bytes[index] ^= UInt8(truncatingIfNeeded: mask >> (8 * UInt32(index & 3)))
                index += 1
            }
        }
    }

    private mutating func turnMask(_ count: Int) {
        let turn = UInt32(count & 3) * 8
        if turn != 0 { mask = mask >> turn | mask << (32 - turn) }
    }

    private mutating func finishFrame(_ body: (Event) -> Void) throws(WebSocketFault) {
        switch opcode {
        case .ping: body(.ping(takeControl()))
        case .pong: body(.pong(takeControl()))
        case .close:
            let event = try Self.closeEvent(takeControl())
            end()
            body(event)
        case .continuation, .text, .binary:
            guard isFinal, let kind = fragmented else { return }
            guard utf8.isComplete else { throw WebSocketFault(.invalidData, "Text that is not UTF-8.") }
            let whole = message
            message = []
            fragmented = nil
            body(.message(text: kind == .text, compressed: isCompressed, whole))
        }
    }

    private mutating func takeControl() -> [UInt8] {
        defer { control = [] }
        return control
    }

    private static func closeEvent(_ payload: [UInt8]) throws(WebSocketFault) -> Event {
        if payload.isEmpty { return .close(.noStatus, reason: "") }
        guard payload.count >= 2 else { throw WebSocketFault(.protocolError, "Half a close code.") }
        let code = CloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw WebSocketFault(.protocolError, "Not a close code to send.") }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else {
            throw WebSocketFault(.invalidData, "A close reason that is not UTF-8.")
        }
        return .close(code, reason: reason)
    }
}

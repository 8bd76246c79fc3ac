import TestSupport
import Testing

@testable import WebSocket

/// The steps of RFC 6455 as the Autobahn suite numbers them: what is sent, and what must come of it.
struct FramingCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]
    let expected: [Outcome]

    enum Outcome: Equatable, Sendable {
        case event(FrameReader.Event)
        case fault(CloseCode)
    }

    init(_ name: String, _ frames: [[UInt8]], _ expected: Outcome...) {
        testDescription = name
        bytes = frames.flatMap { $0 }
        self.expected = expected
    }
}

private func frame(
    _ opcode: UInt8, _ payload: [UInt8] = [], final: Bool = true, rsv: UInt8 = 0, masked: Bool = true
) -> [UInt8] {
    WebSocketClient.frame(opcode, payload, final: final, rsv: rsv, masked: masked)
}

private func frame(_ opcode: UInt8, _ text: String, final: Bool = true) -> [UInt8] {
    frame(opcode, Array(text.utf8), final: final)
}

private func text(_ text: String) -> FramingCase.Outcome { message(Array(text.utf8)) }
private func message(_ bytes: [UInt8], text: Bool = true) -> FramingCase.Outcome {
    .event(.message(text: text, compressed: false, bytes))
}
private func many(_ count: Int, _ byte: UInt8 = 0x2A) -> [UInt8] { [UInt8](repeating: byte, count: count) }
private func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
    frame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
}

/// The limit of the reader under test.
private let limit = 70_000

private let lengths: [FramingCase] = [0, 125, 126, 127, 128, 65535, 65536, 70_000].flatMap { count in
    [
        FramingCase("1.1 text of \(count)", [frame(1, many(count))], message(many(count))),
        FramingCase("1.2 binary of \(count)", [frame(2, many(count, 0xFE))], message(many(count, 0xFE), text: false)),
    ]
}

private let controls: [FramingCase] =
    [
        FramingCase("2.1 empty ping", [frame(9)], .event(.ping([]))),
        FramingCase("2.3 binary ping", [frame(9, [0, 0xFF, 0xFE])], .event(.ping([0, 0xFF, 0xFE]))),
        FramingCase("2.4 ping of 125", [frame(9, many(125))], .event(.ping(many(125)))),
        FramingCase("2.5 ping of 126", [frame(9, many(126))], .fault(.protocolError)),
        FramingCase("2.7 pong unasked", [frame(10), frame(1, "a")], .event(.pong([])), text("a")),
        FramingCase("3.1 RSV 1", [frame(1, many(4), rsv: 1)], .fault(.protocolError)),
        FramingCase(
            "3.2 RSV 2 after a message", [frame(1, "a"), frame(1, many(4), rsv: 2)], text("a"), .fault(.protocolError)),
        FramingCase("3.4 RSV 4 without the extension", [frame(1, many(4), rsv: 4)], .fault(.protocolError)),
        FramingCase("3.7 RSV on a close", [frame(8, [], rsv: 7)], .fault(.protocolError)),
    ]
    + [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map { opcode in
        FramingCase("4 opcode \(opcode)", [frame(UInt8(opcode), many(3))], .fault(.protocolError))
    }

private let fragments: [FramingCase] = [
    FramingCase("5.1 fragmented ping", [frame(9, many(1), final: false)], .fault(.protocolError)),
    FramingCase("5.3 two fragments", [frame(1, "a", final: false), frame(0, "b")], text("ab")),
    FramingCase(
        "5.6 a ping between fragments", [frame(1, "a", final: false), frame(9, [7]), frame(0, "b")],
        .event(.ping([7])), text("ab")),
    FramingCase("5.9 a continuation alone", [frame(0, "a")], .fault(.protocolError)),
    FramingCase("5.11 an unfinished continuation alone", [frame(0, "a", final: false)], .fault(.protocolError)),
    FramingCase(
        "5.15 a continuation after the end",
        [frame(1, "a", final: false), frame(0, "b"), frame(0, "c", final: false)], text("ab"), .fault(.protocolError)),
    FramingCase(
        "5.18 a message within a message", [frame(1, "a", final: false), frame(1, "b")], .fault(.protocolError)),
    FramingCase(
        "6.1 empty fragments", [frame(1, "", final: false), frame(0, "", final: false), frame(0, "")], text("")),
    FramingCase("an unmasked frame", [frame(1, many(2), masked: false)], .fault(.protocolError)),
    FramingCase("a length in 2 bytes that fits 7 bits", [[0x81, 0xFE, 0, 125]], .fault(.protocolError)),
    FramingCase(
        "a length in 8 bytes that fits 2", [[0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]], .fault(.protocolError)),
    FramingCase("a length with the highest bit", [[0x82, 0xFF, 0x80] + many(7, 0)], .fault(.protocolError)),
    FramingCase("9 one byte over the limit", [frame(2, many(limit + 1))], .fault(.tooBig)),
    FramingCase("9 over the limit by its head alone", [[0x82, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0]], .fault(.tooBig)),
    FramingCase(
        "9 over the limit by fragments", [frame(2, many(limit), final: false), frame(0, many(1))], .fault(.tooBig)),
]

private let unicode: [FramingCase] = [
    FramingCase("6.2 text", [frame(1, "Hello-µ@ßöäüàá-UTF-8!!")], text("Hello-µ@ßöäüàá-UTF-8!!")),
    FramingCase(
        "6.2.3 a character over fragments", [frame(1, [0xCE], final: false), frame(0, [0xBA])], text("κ")),
    FramingCase("6.3 surrogate", [frame(1, [0xED, 0xA0, 0x80])], .fault(.invalidData)),
    FramingCase("6.4 too large, seen before the end", [frame(1, [0xF4, 0x90], final: false)], .fault(.invalidData)),
    FramingCase("6.6 the first half of a character", [frame(1, [0xCE])], .fault(.invalidData)),
    FramingCase("6.10 overlong", [frame(1, [0xC0, 0xAF])], .fault(.invalidData)),
    FramingCase("6.11 overlong of four", [frame(1, [0xF0, 0x80, 0x80, 0x80])], .fault(.invalidData)),
    FramingCase("6.12 a lone continuation byte", [frame(1, [0x61, 0x80])], .fault(.invalidData)),
    FramingCase("6.22 the last characters", [frame(1, "\u{FFFF}\u{10FFFF}")], text("\u{FFFF}\u{10FFFF}")),
    FramingCase(
        "binary need not be UTF-8", [frame(2, [0xC0, 0xAF])], message([0xC0, 0xAF], text: false)),
]

private let closes: [FramingCase] =
    [
        FramingCase("7.1 nothing after a close", [close(1000), frame(1, "a")], .event(.close(.normal, reason: ""))),
        FramingCase(
            "7.1.5 a close within a message", [frame(1, "a", final: false), close(1000)],
            .event(.close(.normal, reason: ""))),
        FramingCase("7.3.1 no code", [frame(8)], .event(.close(.noStatus, reason: ""))),
        FramingCase("7.3.2 half a code", [frame(8, [3])], .fault(.protocolError)),
        FramingCase("7.3.4 a reason", [close(1000, Array("bye".utf8))], .event(.close(.normal, reason: "bye"))),
        FramingCase(
            "7.3.5 a reason of 123", [close(1000, many(123))],
            .event(.close(.normal, reason: String(repeating: "*", count: 123)))),
        FramingCase("7.3.6 a reason of 124", [close(1000, many(124))], .fault(.protocolError)),
        FramingCase("7.5 a reason that is not UTF-8", [close(1000, [0xCE])], .fault(.invalidData)),
    ]
    + [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map { code in
        FramingCase("7.7 code \(code)", [close(code)], .event(.close(CloseCode(rawValue: code), reason: "")))
    }
    + [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map { code in
        FramingCase("7.9 code \(code)", [close(code)], .fault(.protocolError))
    }

@Suite("Reading frames")
struct FrameReaderTests {
    /// Feeds pieces of the given sizes, in turn.
    static func run(_ bytes: [UInt8], pieces: [Int], compression: Bool = false) -> [FramingCase.Outcome] {
        var reader = FrameReader(messageBytesMax: limit, compression: compression)
        var outcomes: [FramingCase.Outcome] = []
        var index = 0
        var turn = 0
        do throws(WebSocketFault) {
            while index < bytes.count {
                let count = min(pieces[turn % pieces.count], bytes.count - index)
                try feed(&reader, Array(bytes[index..<index + count]), &outcomes)
                index += count
                turn += 1
            }
        } catch {
            outcomes.append(.fault(error.code))
        }
        return outcomes
    }

    private static func feed(
        _ reader: inout FrameReader, _ bytes: [UInt8], _ outcomes: inout [FramingCase.Outcome]
    ) throws(WebSocketFault) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        try reader.feed(UnsafeRawBufferPointer(copy)) { outcomes.append(.event($0)) }
    }

    @Test("every step of the protocol, whole and byte by byte", arguments: 0..<5)
    func cases(group: Int) {
        for each in [lengths, controls, fragments, unicode, closes][group] {
            #expect(Self.run(each.bytes, pieces: [.max]) == each.expected, "\(each.testDescription)")
            #expect(Self.run(each.bytes, pieces: [1]) == each.expected, "\(each.testDescription), byte by byte")
            #expect(Self.run(each.bytes, pieces: [3, 7, 1, 11]) == each.expected, "\(each.testDescription), in pieces")
        }
    }

    @Test("RSV1 marks a compressed message when that was agreed, on its first frame only")
    func compressedMark() {
        let good = frame(1, [1, 2], final: false, rsv: 4) + frame(0, [3])
        #expect(
            Self.run(good, pieces: [1], compression: true)
                == [.event(.message(text: true, compressed: true, [1, 2, 3]))])
        let onContinuation = frame(1, [1], final: false, rsv: 4) + frame(0, [3], rsv: 4)
        #expect(Self.run(onContinuation, pieces: [1], compression: true) == [.fault(.protocolError)])
        #expect(Self.run(frame(9, [], rsv: 4), pieces: [1], compression: true) == [.fault(.protocolError)])
    }
}

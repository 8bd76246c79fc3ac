import Seeded
import Testing

@testable import WebSocket

@Suite("Compression")
struct DeflateTests {
    @Test("what was deflated is inflated again, message by message", arguments: [0, 1, 100, 5_000, 200_000])
    func roundTrip(count: Int) throws {
        let deflater = Deflater()
        let inflater = Inflater()
        var random = SeededGenerator(seed: 7)
        let text = (0..<count).map { _ in UInt8.random(in: 0x61...0x66, using: &random) }
        let small = try #require(deflater.deflate(text[...]))
        let other = try #require(deflater.deflate(Array("other".utf8)[...]))
        #expect(try inflater.inflate(other, bytesMax: 10) == Array("other".utf8))
        #expect(try inflater.inflate(small, bytesMax: max(count, 1)) == text)
        if count > 100 { #expect(small.count < count) }
    }

    @Test("a bomb is stopped at the limit, one byte less is not")
    func bomb() throws {
        let deflater = Deflater()
        let bomb = try #require(deflater.deflate([UInt8](repeating: 0x20, count: 50_000_000)[...]))
        #expect(bomb.count < 300_000)
        let error = #expect(throws: WebSocketFault.self) { try Inflater().inflate(bomb, bytesMax: 100_000) }
        #expect(error?.code == .tooBig)
        let fits = try #require(deflater.deflate([UInt8](repeating: 0x20, count: 100_000)[...]))
        #expect(try Inflater().inflate(fits, bytesMax: 100_000).count == 100_000)
        #expect(throws: WebSocketFault.self) { try Inflater().inflate(fits, bytesMax: 99_999) }
    }

    @Test("what is no deflate stream is refused, and the next message is read all the same")
    func garbage() throws {
        let inflater = Inflater()
        let error = #expect(throws: WebSocketFault.self) {
            try inflater.inflate([UInt8](repeating: 0xFF, count: 40), bytesMax: 1000)
        }
        #expect(error?.code == .invalidData)
        let good = try #require(Deflater().deflate(Array("good".utf8)[...]))
        #expect(try inflater.inflate(good, bytesMax: 1000) == Array("good".utf8))
    }

    @Test(
        "the examples of RFC 7692 §7.2.3 are read",
        arguments: [
            [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0x00, 0x05, 0x00, 0xFA, 0xFF] + Array("Hello".utf8) + [0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            [0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
        ] as [[UInt8]])
    func examples(bytes: [UInt8]) throws {
        #expect(try Inflater().inflate(bytes, bytesMax: 5) == Array("Hello".utf8))
        #expect(try Inflater().inflate([0x00], bytesMax: 5).isEmpty)
    }

    @Test("a stream that ends within a message is followed by the next one")
    func streamsInOneMessage() throws {
        let hello: [UInt8] = [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        #expect(try Inflater().inflate(hello + hello + [0x00], bytesMax: 10) == Array("HelloHello".utf8))
        #expect(throws: WebSocketFault.self) { try Inflater().inflate(hello + [0xFF], bytesMax: 10) }
    }

    @Test("a part of a compressed message is refused wherever it was cut, and so is a reference to the one before")
    func cut() throws {
        let whole = try #require(Deflater().deflate(Array("Hello, Hello, and good-bye".utf8)[...]))
        for count in 1..<whole.count {
            let error = #expect(throws: WebSocketFault.self, "cut at \(count)") {
                try Inflater().inflate(Array(whole.prefix(count)), bytesMax: 1000)
            }
            #expect(error?.code == .invalidData)
        }
        let inflater = Inflater()
        #expect(try inflater.inflate([0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], bytesMax: 5).count == 5)
        #expect(throws: WebSocketFault.self) { try inflater.inflate([0xF2, 0x00, 0x11, 0x00, 0x00], bytesMax: 5) }
    }

    @Test("a shared frame is compressed once for those who want it, and as it was for others")
    func sharedFrame() throws {
        let text = [UInt8](repeating: 0x61, count: 3_000)
        let frame = SharedFrame(text: text)
        let small = frame.deflated(by: Deflater(), from: 1024)
        #expect(small[0] == 0xC1 && small.count < 200)
        #expect(frame.bytes[0] == 0x81 && Array(frame.payload) == text)
        let short = SharedFrame(text: [0x61])
        #expect(short.deflated(by: Deflater(), from: 1024) == short.bytes)
    }
}

@Suite("Compressed messages, by chance") struct DeflateFuzz {
    @Test("are what they were, and whatever is no such message is refused or within the limit")
    func deflate() throws {
        let (deflater, inflater) = (Deflater(), Inflater())
        try Fuzz("deflate", rounds: 3_000).run { fuzz in
            let text = Array(fuzz.text(of: ["a", "{\"type\":", "é", "   ", "0123456789"], max: 200).utf8)
            let small = deflater.deflate(text[...]) ?? []
            let limit = fuzz.number(0...1_500)
            fuzz.input = fuzz.once(in: 4) ? small : fuzz.mutated(small)
            let result = try? inflater.inflate(fuzz.input, bytesMax: limit)
            try fuzz.check((result ?? []).count <= limit, "\(result?.count ?? 0) bytes past the limit of \(limit)")
            if fuzz.input == small {
                try fuzz.checkEqual(result, text.count <= limit ? text : nil, "what was deflated")
            }
        }
    }
}

import Seeded
import Testing

@testable import Clamd

@Suite("What clamd says, and what it means")
struct ExchangeTests {
    private typealias Outcome = Result<ClamdVerdict, ClamdError>

    /// - Parameter asked: whether the whole file was sent before the answer came.
    private func outcome(_ pieces: [[UInt8]], asked: Bool = true) -> Outcome {
        Result { () throws(ClamdError) in
            var exchange = ClamdExchange()
            if asked { exchange.asked() }
            for piece in pieces { try exchange.received(piece) }
            return try exchange.verdict()
        }
    }

    private func outcome(_ text: String, asked: Bool = true) -> Outcome { outcome([Array(text.utf8)], asked: asked) }

    @Test("a clean file, an infected one, and what clamd could not do")
    func answers() {
        #expect(outcome("stream: OK\0") == .success(.clean))
        #expect(outcome("stream: Eicar-Test-Signature FOUND\0") == .success(.infected("Eicar-Test-Signature")))
        #expect(outcome("stream: A b(0f:68) FOUND\0") == .success(.infected("A b(0f:68)")))
        #expect(outcome("INSTREAM size limit exceeded. ERROR\0") == .failure(.streamTooLong))
        let full = "INSTREAM: Can't write to temporary file. ERROR"
        #expect(outcome(full + "\0") == .failure(.failed(full)))
        #expect(outcome("") == .failure(.closed))
        let long = String(repeating: "n", count: ClamdExchange.signatureLengthMax)
        #expect(outcome("stream: \(long) FOUND\0") == .success(.infected(long)))
    }

    @Test("of several lines the worst counts")
    func several() {
        #expect(outcome("stream: OK\0stream: X FOUND\0stream: Y FOUND\0") == .success(.infected("X")))
        #expect(outcome("stream: OK\0stream: OK\0") == .success(.clean))
        #expect(outcome("stream: OK\0Broken ERROR\0") == .failure(.failed("Broken ERROR")))
        #expect(outcome("Broken ERROR\0stream: X FOUND\0") == .success(.infected("X")))
    }

    @Test(
        "everything else is garbage, however near it comes",
        arguments: [
            "stream: OK", "stream: OK\n", "stream: OK\0\0", "\0", "\0stream: OK\0", "stream: OK \0", " stream: OK\0",
            "stream:OK\0", "stream: ok\0", "OK\0", "PONG\0", "stream: OK\r\0", "stream: FOUND\0", "stream:  FOUND\0x",
            "stream: X FOUND", "stream: X FOUND \0", "X FOUND\0", "stream: \u{E9} FOUND\0", "ERROR\0",
            "COMMAND READ TIMED OUT\0", "HTTP/1.1 400 Bad Request\r\n\r\n", "1: stream: OK\0", "stream: OK\0junk",
            "stream: " + String(repeating: "n", count: 301) + " FOUND\0",
        ])
    func garbage(text: String) {
        guard case .failure(.garbage(let excerpt)) = outcome(text) else {
            Issue.record("\(outcome(text))")
            return
        }
        #expect(
            excerpt.count <= ClamdExchange.excerptLengthMax + 2 && excerpt.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    }

    @Test("a verdict that comes before the whole file has gone is none, and an error is one")
    func early() {
        for text in ["stream: OK\0", "stream: X FOUND\0"] {
            guard case .failure(.garbage) = outcome(text, asked: false) else {
                Issue.record("\(outcome(text, asked: false))")
                continue
            }
        }
        #expect(outcome("INSTREAM size limit exceeded. ERROR\0", asked: false) == .failure(.streamTooLong))
        #expect(outcome("", asked: false) == .failure(.closed))
        // It was on its way while the last piece was.
        let late = Outcome { () throws(ClamdError) in
            var exchange = ClamdExchange()
            try exchange.received(Array("stream: OK\0".utf8))
            exchange.asked()
            return try exchange.verdict()
        }
        #expect(late == .failure(.garbage("\"stream: OK\"")))
    }

    @Test("an answer is taken up to its limit, and not a byte further")
    func overlong() {
        let line = Array("stream: X FOUND\0".utf8)
        let lines = Array(repeating: line, count: ClamdExchange.answerBytesMax / line.count)
        #expect(outcome(lines) == .success(.infected("X")))
        guard case .failure(.garbage) = outcome(lines + [[0]]) else {
            Issue.record("taken")
            return
        }
    }

    @Test("other commands have one line")
    func text() throws {
        var exchange = ClamdExchange()
        exchange.asked()
        try exchange.received(Array("ClamAV 1.4.6\0".utf8))
        #expect(try exchange.text() == "ClamAV 1.4.6")
        try exchange.received(Array("more\0".utf8))
        #expect(throws: ClamdError.self) { try exchange.text() }
        #expect(throws: ClamdError.closed) { try ClamdExchange().text() }
    }

    @Test("a length is four bytes, the highest first")
    func lengths() {
        #expect(ClamdExchange.lengthPrefix(0x0102_0304) == [1, 2, 3, 4] && ClamdExchange.end == [0, 0, 0, 0])
        #expect(ClamdExchange.lengthPrefix(ClamdExchange.chunkBytesMax) == [0, 1, 0, 0])
    }

    @Test("however an answer is split it means the same", arguments: 0..<50)
    func split(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let answers = [
            "stream: OK\0", "stream: X FOUND\0", "INSTREAM size limit exceeded. ERROR\0", "stream: OK\0z", "",
        ]
        for answer in answers {
            var pieces: [[UInt8]] = [[]]
            for byte in answer.utf8 {
                if Int.random(in: 0..<3, using: &random) == 0 { pieces.append([]) }
                pieces[pieces.count - 1].append(byte)
            }
            #expect(outcome(pieces) == outcome(answer))
        }
    }

    @Test("nothing but clamd's own words makes a file clean", arguments: 0..<20)
    func fuzz(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let words = ["stream: ", "OK", "\0", " FOUND", " ERROR", "X", "\n", " ", "\u{1}", "é"].map { Array($0.utf8) }
        for _ in 0..<2000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<8, using: &random) {
                if Int.random(in: 0..<8, using: &random) == 0 {
                    bytes.append(UInt8.random(in: 0...255, using: &random))
                } else {
                    bytes += words.randomElement(using: &random) ?? []
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            switch outcome([bytes]) {
            case .success(.clean):
                #expect(text.split(separator: "\0").allSatisfy { $0 == "stream: OK" } && text.hasSuffix("\0"))
            case .success(.infected(let name)): #expect(text.contains("stream: \(name) FOUND\0"))
            case .failure: continue
            }
        }
    }
}

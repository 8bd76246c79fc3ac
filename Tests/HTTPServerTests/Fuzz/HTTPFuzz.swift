import Seeded
import Testing

@testable import HTTPServer

@Suite("Requests, by chance") struct HTTPFuzz {
    private static let words = [
        "\r\n", "\r\n\r\n", "HTTP/1.1", "HTTP/1.0", "Host: x\r\n", "Content-Length: 5\r\n", "Content-Length: 5, 5\r\n",
        "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "0\r\n\r\n", "5\r\nabcde\r\n", ";a=\"b\"",
        "%2e",
        "Connection: close\r\n", "Expect: 100-continue\r\n", "\0", " ", "\t", "GET / ", "fffffffff\r\n",
    ]

    /// A request that is as it should be, and its body.
    private static func request(_ fuzz: inout FuzzCase) -> (bytes: [UInt8], body: [UInt8]) {
        let path = "/" + fuzz.text(of: ["a", "b/", "%C3%A9", "?", "=", "&", "-", "~"], max: 6)
        var head = "\(fuzz.pick(["POST", "PUT", "PATCH"])) \(path) HTTP/1.1\r\nHost: x\r\n"
        if fuzz.once(in: 3) { head += "X-A: " + fuzz.text(of: ["v", ",", " w", "\"", "é"], max: 5) + "x\r\n" }
        let body = fuzz.bytes(fuzz.number(0...120))
        guard fuzz.once(in: 2) else {
            return (Array((head + "Content-Length: \(body.count)\r\n\r\n").utf8) + body, body)
        }
        var chunks: [UInt8] = []
        for piece in fuzz.split(body, sizeMax: 60) {
            let size = String(piece.count, radix: 16, uppercase: fuzz.once(in: 2))
            chunks += Array((size + (fuzz.once(in: 4) ? ";a=b" : "") + "\r\n").utf8) + piece + [13, 10]
        }
        let end = "0\r\n" + (fuzz.once(in: 4) ? "T: v\r\n" : "") + "\r\n"
        return (Array((head + "Transfer-Encoding: chunked\r\n\r\n").utf8) + chunks + Array(end.utf8), body)
    }

    @Test("are the same however they are cut, have the bodies that were sent, and nothing is seen behind an error")
    func http() throws {
        try Fuzz("http", rounds: 4_000).run { fuzz in
            let requests = (0..<fuzz.number(1...3)).map { _ in Self.request(&fuzz) }
            var stream = requests.flatMap(\.bytes)
            if fuzz.once(in: 3) { stream = Array(fuzz.pick(HTTPParserPropertyTests.streams).utf8) + stream }
            let isHarmed = fuzz.number(0...3) > 0
            fuzz.input = isHarmed ? fuzz.mutated(stream, words: Self.words) : requests.flatMap(\.bytes)
            let isNoise = isHarmed && fuzz.once(in: 8)
            if isNoise { fuzz.input = fuzz.bytes(fuzz.number(1...300)) }
            let whole = parse(fuzz.input)
            let pieces = fuzz.split(fuzz.input)
            try fuzz.checkEqual(parse(pieces), whole, "in pieces of \(pieces.map(\.count).prefix(20))")
            try fuzz.check(
                !whole.dropLast().contains { if case .error = $0 { true } else { false } }, "something behind an error")
            try fuzz.check(!isNoise || !whole.contains(.end), "a request in noise")
            guard !isHarmed else { return }
            let heads = whole.filter { if case .head = $0 { true } else { false } }
            try fuzz.checkEqual(heads.count, requests.count, "requests")
            let bodies = whole.compactMap { seen -> String? in if case .body(let text) = seen { text } else { nil } }
            try fuzz.checkEqual(bodies, requests.map(\.body).filter { !$0.isEmpty }.map(latin), "bodies")
        }
    }
}

private func parse(_ pieces: [[UInt8]]) -> [Seen] { parse(pieces.flatMap { $0 }, pieces: pieces.map(\.count)) }

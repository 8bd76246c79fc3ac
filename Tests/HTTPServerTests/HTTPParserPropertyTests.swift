import Seeded
import Testing

@testable import HTTPServer

@Suite("The parser of requests, fed by chance")
struct HTTPParserPropertyTests {
    /// Requests good and bad, one behind the other.
    static let streams = [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST /a?b HTTP/1.1\r\nHost: y\r\nContent-Length: 11\r\n\r\nhello world"
            + "\r\nDELETE /c HTTP/1.1\r\nHost: z\r\nX: \r\n\r\n",
        "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n"
            + "0\r\nT: v\r\n\r\nGET http://h/p HTTP/1.0\r\n\r\nPUT / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "PATCH /%c3%a9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nabBAD\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX",
    ]

    @Test("sees the same whether bytes come at once, one by one, or in any pieces", arguments: streams)
    func pieces(stream: String) {
        let whole = parse(stream)
        #expect(!whole.isEmpty)
        #expect(parse(stream, pieces: [1]) == whole)
        let length = stream.utf8.count
        for split in 1..<length { #expect(parse(stream, pieces: [split, .max]) == whole, "split at \(split)") }
        var random = SeededGenerator(seed: 7)
        for _ in 0..<200 {
            let pieces = (0..<length).map { _ in Int.random(in: 1...9, using: &random) }
            #expect(parse(stream, pieces: pieces) == whole, "\(pieces)")
        }
    }
}

import Testing

@testable import HTTPServer

@Suite("The parser of requests")
struct HTTPParserTests {
    @Test(
        "takes what RFC 9112 lets a client send",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / 1.1 none Host=x"),
            ("GET / HTTP/1.0\r\n\r\n", "GET / 1.0 none "),
            ("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / 1.1 none Host=x"),
            ("GET http://x:80/p?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET /p 1.1 none Host=x"),
            ("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", "GET / 1.1 none Host=x"),
            ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * 1.1 none Host=x"),
            ("GET /p?a[b][0]=c&d%5Be%5D={} HTTP/1.1\r\nHost: x\r\n\r\n", "GET /p 1.1 none Host=x"),
            ("GET /%c3%a9/%2e HTTP/1.1\r\nHost: x\r\n\r\n", "GET /é/. 1.1 none Host=x"),
            ("GET /..a/a../... HTTP/1.1\r\nHost: x\r\n\r\n", "GET /..a/a../... 1.1 none Host=x"),
            ("GET / HTTP/1.1\r\nHost:x\r\n\r\n", "GET / 1.1 none Host=x"),
            ("GET / HTTP/1.1\r\nHost: \t x\t \r\nA: \t x y\t \r\n\r\n", "GET / 1.1 none Host=x|A=x y"),
            ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / 1.1 none Host=[::1]:80"),
            ("GET / HTTP/1.1\r\nHost:\r\nA: \r\nB: c\r\n\r\n", "GET / 1.1 none Host=|A=|B=c"),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: \u{e9}\r\n\r\n", "GET / 1.1 none Host=x|A=\u{e9}"),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "GET / 1.1 none Host=x|Content-Length=0"),
        ])
    func accepted(text: String, expected: String) {
        #expect(parse(text) == [.head(expected)])
    }

    @Test("takes bodies of a stated length and in chunks, and the request behind them")
    func bodies() {
        let next = "GET /next HTTP/1.1\r\nHost: x\r\n\r\n"
        let nextSeen = Seen.head("GET /next 1.1 none Host=x")
        #expect(
            parse("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + next) == [
                .head("POST / 1.1 length(5) Host=x|Content-Length=5"), .body("hello"), .end, nextSeen,
            ])
        let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
        for body in [
            "5\r\nhello\r\n0\r\n\r\n", "2\r\nhe\r\n003\r\nllo\r\n000\r\n\r\n",
            "5;a=b;c=\"d e\"\r\nhello\r\n0;x\r\n\r\n", "5\r\nhello\r\n0\r\nDigest: a b\r\nX:\r\n\r\n",
        ] {
            #expect(
                parse(chunked + body + next) == [
                    .head("POST / 1.1 chunked Host=x|Transfer-Encoding=Chunked"), .body("hello"), .end, nextSeen,
                ], "\(body)")
        }
    }

    @Test(
        "refuses the nearest malformed thing",
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: u@x\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x y\r\n\r\n", 400),
            ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (" GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /  HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 505),
            ("GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /\r\nHost: x\r\n\r\n", 505),
            ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
            ("GET / HTTP/0.9\r\nHost: x\r\n\r\n", 505),
            ("GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505),
            ("GET / HTTP/11\r\nHost: x\r\n\r\n", 505),
            ("GET / http/1.1\r\nHost: x\r\n\r\n", 400),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501),
            ("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 501),
            ("TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
            ("get / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
            ("G@T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /#a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /a/%2e%2E HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /a%2f..%2fb HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /a%2Fb HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            ("GET /\u{7f} HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ])
    func refusedLine(text: String, status: Int) {
        #expect(parse(text) == [.error(status)])
    }

    @Test(
        "refuses headers that two servers could read in two ways",
        arguments: [
            "Host : x", "Host: x\nA: b", "Host: x\rA: b", "Host: x\r\n A: folded", "Host: x\r\n\tA: folded",
            "Host: x\r\nA\u{0}: b", "Host: x\r\nA: b\u{0}c", "Host: x\r\nA: b\u{1}c", "Host: x\r\nA: b\u{7f}",
            "Host: x\r\nA", "Host: x\r\n: b", "Host: x\r\nA b: c", "Host: x\r\nA(: c", "Host: x\r\nA\u{e9}: c",
            "Host: x\r\nContent-Length: 5\r\nContent-Length: 5", "Host: x\r\nContent-Length: 5, 5",
            "Host: x\r\nContent-Length: +5", "Host: x\r\nContent-Length: -5", "Host: x\r\nContent-Length: 0x5",
            "Host: x\r\nContent-Length: 5 5", "Host: x\r\nContent-Length: ", "Host: x\r\nContent-Length: 5.0",
            "Host: x\r\nContent-Length: 99999999999999999999",
            "Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
            "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
            "Host: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked",
            "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Host: x\r\nTransfer-Encoding: chunked, identity", "Host: x\r\nTransfer-Encoding: identity",
            "Host: x\r\nTransfer-Encoding: xchunke", "Host: x\r\nTransfer-Encoding:",
            "Host: x\r\nTransfer-Encoding: \u{b}chunked", "Host: x\r\nTransfer-Encoding : chunked",
            "Host: x\r\nTransfer-Encoding\r\n: chunked", "Host: x\r\nContent-Length : 5",
        ])
    func refusedHeaders(headers: String) {
        let seen = parse("POST / HTTP/1.1\r\n\(headers)\r\n\r\n")
        #expect(seen == [.error(400)] || seen == [.error(413)], "\(headers.debugDescription)")
    }

    @Test("does not take codings or expectations it does not know")
    func unknown() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\n"
        #expect(parse(head + "Transfer-Encoding: gzip, chunked\r\n\r\n") == [.error(501)])
        #expect(parse(head + "Transfer-Encoding: xchunked\r\n\r\n") == [.error(501)])
        #expect(parse(head + "Transfer-Encoding: chunked, chunked\r\n\r\n") == [.error(400)])
        #expect(parse(head + "Expect: 200-maybe\r\n\r\n") == [.error(417)])
        #expect(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == [.error(400)])
    }

    @Test(
        "refuses chunks that are not exactly chunks",
        arguments: [
            "\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n",
            "5\rhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            ";a\r\nhello\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n", "5;\u{0}\r\nhello\r\n0\r\n\r\n",
            "5\r\nhellox\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\r\n0\r\n\r\n",
            "5\r\nhello\r\n0\r\n A: b\r\n\r\n", "5\r\nhello\r\n0\r\nA\r\n\r\n", "5\r\nhello\r\n0\r\nA: b\n\r\n",
            "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\nA: \u{0}\r\n\r\n", "5\r\nhello\r\n0\r\n: a\r\n\r\n",
            "5\r\nhello\r\n0\r\n\rGET / HTTP/1.1\r\nHost: x\r\n\r\n", "FFFFFFFFFFFFFFFF\r\nhello",
        ])
    func refusedChunks(body: String) {
        let seen = parse("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        guard case .error(let status)? = seen.last else {
            Issue.record("\(body.debugDescription) was taken: \(seen)")
            return
        }
        #expect(status == 400 || status == 413)
        #expect(!seen.contains(.end))
    }

    @Test("holds its limits, and takes what is just within them")
    func limits() {
        var limits = HTTPLimits()
        limits.headBytesMax = 200
        limits.targetBytesMax = 50
        limits.headersMax = 3
        limits.chunkLineBytesMax = 10
        limits.trailerBytesMax = 20
        func status(_ text: String, pieces: [Int] = [.max]) -> Int {
            guard case .error(let status)? = parse(text, pieces: pieces, limits: limits).last else { return 200 }
            return status
        }
        func get(_ target: String, _ headers: String) -> String {
            "GET \(target) HTTP/1.1\r\nHost: x\r\n\(headers)\r\n"
        }
        func long(_ count: Int) -> String { String(repeating: "a", count: count) }
        let plain = get("/", "").utf8.count
        for pieces in [[Int.max], [1], [7]] {
            #expect(status(get("/" + long(49), ""), pieces: pieces) == 200)
            #expect(status(get("/" + long(50), ""), pieces: pieces) == 414)
            #expect(status("GET /" + long(500), pieces: pieces) == 414)
            #expect(status(get("/", "A: \(long(200 - plain - 5))\r\n"), pieces: pieces) == 200)
            #expect(status(get("/", "A: \(long(200 - plain - 4))\r\n"), pieces: pieces) == 431)
            #expect(status("GET / HTTP/1.1\r\nHost: \(long(500))", pieces: pieces) == 431)
            #expect(status(get("/", "A: b\r\nC: d\r\n"), pieces: pieces) == 200)
            #expect(status(get("/", "A: b\r\nC: d\r\nE: f\r\n"), pieces: pieces) == 431)
        }
        let chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(status(chunked + "1;\(long(7))\r\na\r\n0\r\n\r\n") == 200)
        #expect(status(chunked + "1;\(long(8))\r\na\r\n0\r\n\r\n") == 400)
        #expect(status(chunked + "0\r\nA: \(long(10))\r\n\r\n") == 200)
        #expect(status(chunked + "0\r\nA: \(long(20))\r\n\r\n") == 400)
    }
}

import EventLoop
import Testing

@testable import HTTPServer

@Suite("Headers and requests")
struct HeadersTests {
    private func received(_ lines: String) throws -> HTTPHeaders {
        let text = Array("GET / HTTP/1.1\r\nHost: x\r\n\(lines)\r\n".utf8)
        let parsed = try text.withUnsafeBytes { try HeadParser().parse($0, limits: HTTPLimits()) }
        return HTTPHeaders(received: parsed.head)
    }

    @Test("are found without case and kept in order, whether they came or were made")
    func access() throws {
        let made: HTTPHeaders = ["Host": "x", "Accept": "a", "X-A": "1", "accept": "b"]
        for headers in [try received("Accept: a\r\nX-A: 1\r\naccept: b\r\n"), made] {
            var headers = headers
            #expect(headers.count == 4 && !headers.isEmpty)
            #expect(headers["ACCEPT"] == "a" && headers["x-a"] == "1" && headers["X-B"] == nil)
            #expect(headers.all("Accept") == ["a", "b"] && headers.all("none") == [])
            #expect(headers.contains("host") && !headers.contains("hos"))
            #expect(headers.map(\.name) == ["Host", "Accept", "X-A", "accept"])
            headers.set("ACCEPT", "c")
            #expect(headers.all("accept") == ["c"] && headers.count == 3)
            headers.add("Accept", "d")
            #expect(headers.all("accept") == ["c", "d"])
            headers.remove("accept")
            #expect(headers == ["host": "x", "x-a": "1"])
            #expect(headers != ["host": "x", "x-a": "2"])
        }
    }

    @Test("have elements between commas")
    func elements() throws {
        let headers = try received("Connection: keep-alive ,\tUpgrade\r\nConnection: X\r\n")
        #expect(headers.hasElement("connection", "upgrade") && headers.hasElement("connection", "x"))
        #expect(!headers.hasElement("connection", "up") && !headers.hasElement("upgrade", "x"))
    }

    @Test("a request made by hand is checked like one that came")
    func byHand() async throws {
        let loop = EventLoop(name: "hand")
        let request = try HTTPRequest(
            .post, "/a%20b?c=d&e", headers: ["Upgrade": "websocket", "Connection": "Upgrade"], body: [1, 2, 3],
            on: loop)
        #expect(request.path == "/a b" && request.query == "c=d&e" && request.target == "/a%20b?c=d&e")
        #expect(request.isUpgrade(to: "WebSocket") && !request.isUpgrade(to: "h2c"))
        #expect(request.body.contentLength == 3 && !request.body.isEmpty)
        await #expect(throws: HTTPError.bodyTooLarge) { try await request.body.collect(max: 2) }
        #expect(try await request.body.collect(max: 3) == [1, 2, 3])
        #expect(throws: HTTPError.self) { try HTTPRequest(.get, "/../x", on: loop) }
        #expect(try HTTPRequest(.get, "/", on: loop).body.isEmpty)
        await loop.stop()
    }

    @Test("numbers are written as they are read")
    func numbers() {
        for number in [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, 4095, 65_536, 1_048_577, Int.max] {
            var decimal: [UInt8] = []
            ResponseHead.appendNumber(number, to: &decimal)
            #expect(String(decoding: decimal, as: UTF8.self) == "\(number)")
            var hexadecimal: [UInt8] = []
            ResponseHead.appendHexadecimal(number, to: &hexadecimal)
            #expect(String(decoding: hexadecimal, as: UTF8.self) == String(number, radix: 16))
        }
    }
}

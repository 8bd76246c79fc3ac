import EventLoop
import HTTPServer
import Testing

@testable import WebSocket

@Suite("The opening handshake")
struct HandshakeTests {
    static let good: HTTPHeaders = [
        "Host": "x", "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    ]
    let loop = EventLoop(name: "handshake")

    func shake(
        _ change: (inout HTTPHeaders) -> Void = { _ in }, method: HTTPMethod = .get, body: [UInt8] = []
    ) throws -> WebSocketHandshake {
        var headers = Self.good
        change(&headers)
        let request = try HTTPRequest(method, "/chat", headers: headers, body: body, on: loop)
        return try WebSocketHandshake(request, protocols: ["martlet.v1"], compression: true)
    }

    func status(
        _ change: (inout HTTPHeaders) -> Void, method: HTTPMethod = .get, body: [UInt8] = []
    ) -> Int? {
        do {
            _ = try shake(change, method: method, body: body)
            return nil
        } catch {
            return (error as? HTTPError)?.status
        }
    }

    @Test("the key of RFC 6455 §1.3 is answered as there")
    func key() throws {
        let shake = try shake()
        #expect(shake.acceptKey == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(shake.subprotocol == nil && shake.compression == nil)
        #expect(shake.headers["Upgrade"] == "websocket")
    }

    @Test("the first offered subprotocol that is spoken is taken; only unknown ones are refused")
    func subprotocol() throws {
        #expect(try shake { $0.add("Sec-WebSocket-Protocol", "other, martlet.v1") }.subprotocol == "martlet.v1")
        #expect(status { $0.add("Sec-WebSocket-Protocol", "other") } == 400)
    }

    @Test("what is no upgrade of version 13 is answered 426, what is malformed 400")
    func refused() {
        #expect(status { $0.set("Sec-WebSocket-Version", "8") } == 426)
        #expect(status { $0.remove("Sec-WebSocket-Version") } == 426)
        #expect(status { $0.set("Upgrade", "h2c") } == 426)
        #expect(status { $0.set("Connection", "keep-alive") } == 426)
        #expect(status({ _ in }, method: .post) == 426)
        #expect(status { $0.remove("Sec-WebSocket-Key") } == 400)
        #expect(status { $0.set("Sec-WebSocket-Key", "dGhlIHNhbXBsZQ==") } == 400)
        #expect(status { $0.set("Sec-WebSocket-Key", "!!!!IHNhbXBsZSBub25jZQ==") } == 400)
        #expect(status { $0.add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==") } == 400)
        #expect(status({ _ in }, body: [1]) == 400)
    }

    private static let agreed = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

    @Test(
        "permessage-deflate is agreed to when its parameters are those of RFC 7692, the first such offer",
        arguments: [
            ("permessage-deflate", ""), ("permessage-deflate; client_max_window_bits", ""),
            ("x-webkit, permessage-deflate; server_no_context_takeover", ""),
            (", ,Permessage-Deflate;Client_Max_Window_Bits = 9 ;client_no_context_takeover,", ""),
            (#"permessage-deflate; client_max_window_bits="10""#, ""),
            ("permessage-deflate; server_max_window_bits=8", "; server_max_window_bits=8"),
            (#"permessage-deflate; server_max_window_bits="1\0""#, "; server_max_window_bits=10"),
            (
                "permessage-deflate; server_max_window_bits=15; client_max_window_bits=8",
                "; server_max_window_bits=15"
            ),
            ("permessage-deflate; server_max_window_bits=16, permessage-deflate", ""),
            (
                "permessage-deflate; server_max_window_bits=9, permessage-deflate",
                "; server_max_window_bits=9"
            ),
        ])
    func extensions(offer: String, more: String) throws {
        let shake = try shake { $0.add("Sec-WebSocket-Extensions", offer) }
        #expect(shake.headers["Sec-WebSocket-Extensions"] == Self.agreed + more)
    }

    @Test(
        "an offer that RFC 7692 does not allow is passed over",
        arguments: [
            "deflate", "permessage-deflate; other", "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=7", "permessage-deflate; server_max_window_bits=09",
            "permessage-deflate; server_max_window_bits=+9", "permessage-deflate; client_max_window_bits=16",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_max_window_bits; client_max_window_bits",
            "permessage-deflate; server_max_window_bits=10; Server_Max_Window_Bits=10",
            #"x; a="permessage-deflate""#,
        ])
    func passedOver(offer: String) throws {
        let shake = try shake { $0.add("Sec-WebSocket-Extensions", offer) }
        #expect(shake.compression == nil && shake.headers["Sec-WebSocket-Extensions"] == nil)
    }

    @Test(
        "extensions that are not of the grammar of RFC 6455 §9.1 are refused",
        arguments: [
            "permessage-deflate;", "permessage-deflate; =1", "permessage-deflate client_max_window_bits",
            "permessage-deflate; a=", #"permessage-deflate; a=""#, #"permessage-deflate; a="""#,
            #"permessage-deflate; a="b c""#, #"x; a="b, permessage-deflate"#, "(x)", "\u{e4}",
        ])
    func malformed(offer: String) {
        #expect(status { $0.add("Sec-WebSocket-Extensions", offer) } == 400)
    }

    @Test("offers may stand in several headers, and where compression is off none is agreed to")
    func severalHeaders() throws {
        let both = try shake {
            $0.add("Sec-WebSocket-Extensions", "x-one; a")
            $0.add("Sec-WebSocket-Extensions", "permessage-deflate")
        }
        #expect(both.compression == Compression())
        let request = try HTTPRequest(
            .get, "/chat", headers: Self.good.adding("Sec-WebSocket-Extensions", "permessage-deflate"), body: [],
            on: loop)
        #expect(try WebSocketHandshake(request, protocols: [], compression: false).compression == nil)
    }
}

extension HTTPHeaders {
    fileprivate func adding(_ name: String, _ value: String) -> HTTPHeaders {
        var headers = self
        headers.add(name, value)
        return headers
    }
}

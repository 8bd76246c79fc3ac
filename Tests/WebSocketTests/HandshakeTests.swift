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
        #expect(shake.subprotocol == nil && !shake.compression)
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

    @Test(
        "permessage-deflate is agreed to when its parameters can be met",
        arguments: [
            ("permessage-deflate", true), ("permessage-deflate; client_max_window_bits", true),
            ("x-webkit, permessage-deflate; server_no_context_takeover", true),
            ("permessage-deflate; server_max_window_bits=10, permessage-deflate", true),
            ("permessage-deflate; server_max_window_bits=10", false), ("permessage-deflate; other", false),
            ("permessage-deflate; client_max_window_bits=16", false), ("deflate", false),
            ("permessage-deflate; client_max_window_bits; client_max_window_bits", false),
        ])
    func extensions(offer: String, agreed: Bool) throws {
        let shake = try shake { $0.add("Sec-WebSocket-Extensions", offer) }
        #expect(shake.compression == agreed)
        #expect((shake.headers["Sec-WebSocket-Extensions"] != nil) == agreed)
    }
}

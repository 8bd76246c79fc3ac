import Copenssl
import Foundation
import HTTPServer

/// The opening handshake (RFC 6455 §4.2), without the connection.
public struct WebSocketHandshake: Equatable, Sendable {
    /// §1.3
    private static let magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    public let acceptKey: String
    public let subprotocol: String?
    public let compression: Compression?

    /// Checks what a client asks for. The Origin is for the caller to judge: who signs in by cookie must look at it.
    ///
    /// - Parameters:
    ///   - protocols: what is spoken here. A client that offers none is taken; one that offers only others is not.
    ///   - compression: agree to permessage-deflate when it is offered.
    /// - Throws: `HTTPError` 426 when it is no upgrade or of another version, 400 when it is malformed.
    public init(_ request: HTTPRequest, protocols: [String], compression: Bool) throws(HTTPError) {
        let upgrade: HTTPHeaders = ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"]
        guard request.method == .get, request.isUpgrade(to: "websocket") else {
            throw HTTPError(426, "This path speaks WebSocket only.", headers: upgrade)
        }
        guard request.headers.all("Sec-WebSocket-Version") == ["13"] else {
            throw HTTPError(426, "Only version 13 of WebSocket is spoken here.", headers: upgrade)
        }
        let keys = request.headers.all("Sec-WebSocket-Key")
        guard keys.count == 1, keys[0].utf8.count == 24, Data(base64Encoded: keys[0])?.count == 16 else {
            throw HTTPError(400, "Sec-WebSocket-Key must be 16 bytes in Base64.")
        }
        guard request.body.isEmpty else { throw HTTPError(400, "An upgrade has no body.") }
        let offered = request.headers.all("Sec-WebSocket-Protocol").flatMap { Self.split($0, by: ",") }
        subprotocol = offered.first { protocols.contains($0) }
        guard subprotocol != nil || offered.isEmpty else {
            throw HTTPError(400, "No offered subprotocol is spoken here: " + protocols.joined(separator: ", "))
        }
        acceptKey = Self.accept(keys[0])
        var extensions: [ExtensionOffer] = []
        for header in request.headers.all("Sec-WebSocket-Extensions") {
            // RFC 6455 §9.1: what is not of the grammar fails the connection.
            guard let offers = ExtensionOffer.parse(header) else {
                throw HTTPError(400, "Sec-WebSocket-Extensions cannot be read.")
            }
            extensions += offers
        }
        // The client names first what it likes best.
        self.compression = compression ? extensions.lazy.compactMap { Compression($0) }.first : nil
    }

    /// What the 101 says.
    public var headers: HTTPHeaders {
        var headers: HTTPHeaders = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": acceptKey,
        ]
        if let subprotocol { headers.add("Sec-WebSocket-Protocol", subprotocol) }
        if let compression { headers.add("Sec-WebSocket-Extensions", compression.header) }
        return headers
    }

    static func accept(_ key: String) -> String {
        let text = Array((key + magic).utf8)
        // SHA-1 because the RFC says so; nothing here rests on its strength.
        var digest = [UInt8](repeating: 0, count: 20)
        EVP_Digest(text, text.count, &digest, nil, EVP_sha1(), nil)
        return Data(digest).base64EncodedString()
    }

    private static func split(_ text: String, by separator: Character) -> [String] {
        text.split(separator: separator).map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}

import EventLoop
import HTTPServer

/// A request as it goes to the owner: what its answer depends on, and the seal.
struct HopRequest: Sendable {
    enum Kind: Sendable {
        /// A GET, which may wait for long.
        case poll
        case post
        /// To a WebSocket; its connection is not used again.
        case upgrade
    }

    /// Of what clients and proxies send, all that an Engine.IO server looks at.
    private static let carried = [
        "Origin", "Content-Type", "Accept-Encoding", "User-Agent", "Access-Control-Request-Method",
        "Access-Control-Request-Headers",
    ]
    private static let carriedByUpgrades = [
        "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions",
    ]

    let kind: Kind
    let isHead: Bool
    let bytes: [UInt8]

    init(_ request: HTTPRequest, body: [UInt8], seal: String) {
        let isUpgrade = request.isUpgrade(to: "websocket") && body.isEmpty
        kind = isUpgrade ? .upgrade : request.method == .get ? .poll : .post
        isHead = request.method == .head
        var head: [UInt8] = []
        head.reserveCapacity(1024 + body.count)
        head += "\(request.method) \(request.target) HTTP/1.1\r\n".utf8
        // HTTP/1.0 has no Host, and the owner's server wants one.
        Self.add("Host", request.headers["Host"] ?? "chat", to: &head)
        Self.add(PassOnSeal.header, seal, to: &head)
        let forwarded = request.headers.all("X-Forwarded-For") + [request.peer.host]
        Self.add("X-Forwarded-For", forwarded.joined(separator: ", "), to: &head)
        for name in Self.carried + (isUpgrade ? Self.carriedByUpgrades : []) {
            for value in request.headers.all(name) { Self.add(name, value, to: &head) }
        }
        if isUpgrade {
            Self.add("Connection", "Upgrade", to: &head)
            Self.add("Upgrade", "websocket", to: &head)
        }
        // Whatever the method: a body that is not announced would be read as the head of the next one's request.
        if kind == .post || !body.isEmpty { Self.add("Content-Length", String(body.count), to: &head) }
        head += "\r\n".utf8
        bytes = head + body
    }

    /// Values came through the parser, which lets no line end through; what is made by hand must not either.
    private static func add(_ name: String, _ value: String, to head: inout [UInt8]) {
        head += name.utf8
        head += ": ".utf8
        head += value.utf8.map { $0 == 0x0D || $0 == 0x0A || $0 == 0 ? 0x20 : $0 }
        head += "\r\n".utf8
    }
}

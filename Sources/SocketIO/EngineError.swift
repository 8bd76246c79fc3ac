/// Why a request is refused: code and text as the reference server says them, in a body of JSON.
public enum EngineError: Int, Error, Sendable, CaseIterable {
    case unknownTransport = 0
    case unknownSession
    case badHandshakeMethod
    case badRequest
    case forbidden
    case unsupportedVersion

    public var message: String {
        switch self {
        case .unknownTransport: "Transport unknown"
        case .unknownSession: "Session ID unknown"
        case .badHandshakeMethod: "Bad handshake method"
        case .badRequest: "Bad request"
        case .forbidden: "Forbidden"
        case .unsupportedVersion: "Unsupported protocol version"
        }
    }

    /// `{"code":1,"message":"Session ID unknown"}`
    public var body: [UInt8] { Array(#"{"code":\#(rawValue),"message":"\#(message)"}"#.utf8) }
}

/// What the query of a request says.
public struct EngineQuery: Sendable, Equatable {
    public enum Transport: String, Sendable { case polling, websocket }

    public let transport: Transport
    /// Nil in the request that opens a session.
    public let sid: String?

    /// - Parameters:
    ///   - query: raw, without its `?`.
    ///   - isGet: only GET opens a session.
    /// - Throws: `EngineError`: the first that applies, in the order in which the reference server looks.
    public init(_ query: String, isGet: Bool) throws(EngineError) {
        var version: Substring?
        var name: Substring?
        var sid: Substring?
        for part in query.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count > 1 ? pair[1] : ""
            // Of what is named twice the first counts, as in the reference; none of these values needs an escape.
            switch pair[0] {
            case "EIO" where version == nil: version = value
            case "transport" where name == nil: name = value
            case "sid" where sid == nil: sid = value
            default: break
            }
        }
        guard let transport = name.flatMap({ Transport(rawValue: String($0)) }) else { throw .unknownTransport }
        self.transport = transport
        self.sid = sid.flatMap { $0.isEmpty ? nil : String($0) }
        guard self.sid != nil || isGet else { throw .badHandshakeMethod }
        guard version == "4" else { throw .unsupportedVersion }
    }
}

/// The name of a session: who made it, on which loop, and what nobody can guess.
public struct EngineSessionID: Sendable, Hashable {
    public let instance: String
    public let loop: Int
    public let secret: String

    public init(instance: String, loop: Int, secret: String) {
        self.instance = instance
        self.loop = loop
        self.secret = secret
    }

    /// `<instance>.<loop>.<secret>`. The instance may have dots of its own, so the text is split from the right.
    /// Nil when it has not three parts, or a loop that is no number.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 3, let loop = UInt16(parts[parts.count - 2]), let secret = parts.last, !secret.isEmpty
        else { return nil }
        instance = parts.dropLast(2).joined(separator: ".")
        self.loop = Int(loop)
        self.secret = String(secret)
        guard !instance.isEmpty else { return nil }
    }

    /// An instance of 40, a loop of 5, a secret of 20, and room to spare.
    static let bytesMax = 128

    public var text: String { "\(instance).\(loop).\(secret)" }
}

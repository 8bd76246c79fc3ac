import Foundation

/// Where a clamd listens: the path of its socket, or `tcp://host:port`.
public enum ClamdAddress: Sendable, Equatable, CustomStringConvertible {
    case socket(path: String)
    case tcp(host: String, port: Int)

    public struct Mistake: Error, Equatable, CustomStringConvertible {
        public let description = "it must be a socket's path, such as /run/clamav/clamd.ctl, or like tcp://host:3310"
    }

    public static let portDefault = 3310
    /// `sun_path` of unix(7), without the NUL at its end.
    static let pathBytesMax = 107

    public init(_ text: String) throws(Mistake) {
        if text.hasPrefix("/") {
            guard text.utf8.count <= Self.pathBytesMax, !text.hasSuffix("/"), !text.utf8.contains(0) else {
                throw Mistake()
            }
            self = .socket(path: text)
            return
        }
        guard let parts = URLComponents(string: text), parts.scheme == "tcp", parts.user == nil,
            parts.password == nil, parts.query == nil, parts.fragment == nil, parts.path.isEmpty,
            var host = parts.host
        else { throw Mistake() }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        let port = parts.port ?? Self.portDefault
        guard !host.isEmpty, (1...65535).contains(port) else { throw Mistake() }
        self = .tcp(host: host, port: port)
    }

    public var description: String {
        switch self {
        case .socket(let path): path
        case .tcp(let host, let port): host.contains(":") ? "tcp://[\(host)]:\(port)" : "tcp://\(host):\(port)"
        }
    }
}

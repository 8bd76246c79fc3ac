import Cuv

/// A numeric IP address and port. Names are not resolved: what a service binds is configuration.
public struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    public let host: String
    public let port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `127.0.0.1:8080`, `[::1]:8080`, `:8080` (every IPv4 address). Nil for anything else.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65535).contains(port)
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.isEmpty { host = "0.0.0.0" }
        if host == "localhost" { host = "127.0.0.1" }
        self.init(host: host, port: port)
        guard withSockaddr({ _ in true }) != nil else { return nil }
    }

    init(_ storage: sockaddr_storage) {
        var storage = storage
        var name = [CChar](repeating: 0, count: 64)
        var port: UInt16 = 0
        let family = storage.ss_family
        withUnsafePointer(to: &storage) { pointer in
            if family == sa_family_t(AF_INET6) {
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    uv_ip6_name($0, &name, name.count)
                    port = UInt16(bigEndian: $0.pointee.sin6_port)
                }
            } else if family == sa_family_t(AF_INET) {
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    uv_ip4_name($0, &name, name.count)
                    port = UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
        let length = name.firstIndex(of: 0) ?? name.count
        self.init(host: String(decoding: name[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self), port: Int(port))
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Nil when the host is not a numeric address.
    func withSockaddr<T>(_ body: (UnsafePointer<sockaddr>) -> T) -> T? {
        var four = sockaddr_in()
        if uv_ip4_addr(host, Int32(port), &four) == 0 {
            return withUnsafePointer(to: &four) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
            }
        }
        var six = sockaddr_in6()
        if uv_ip6_addr(host, Int32(port), &six) == 0 {
            return withUnsafePointer(to: &six) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
            }
        }
        return nil
    }
}

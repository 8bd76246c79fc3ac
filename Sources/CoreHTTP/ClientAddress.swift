import Core
import Foundation
import HTTPServer
import ServiceKit

/// Networks in CIDR form, IPv4 and IPv6.
public struct TrustedNetworks: Sendable {
    private let networks: [(bytes: [UInt8], bits: Int)]

    public static let loopback = TrustedNetworks("127.0.0.0/8,::1/128") ?? TrustedNetworks()

    init() { networks = [] }

    /// Comma-separated; nil when one of them is not a network.
    public init?(_ text: String) {
        var networks: [(bytes: [UInt8], bits: Int)] = []
        for part in text.split(separator: ",") {
            let pieces = part.split(separator: "/").map { $0.filter { !$0.isWhitespace } }
            guard let bytes = Self.bytes(of: pieces.first ?? ""), pieces.count <= 2 else { return nil }
            let bits = pieces.count == 2 ? Int(pieces[1]) : bytes.count * 8
            guard let bits, (0...bytes.count * 8).contains(bits) else { return nil }
            networks.append((bytes, bits))
        }
        self.networks = networks
    }

    /// `MARTLET_TRUSTED_PROXIES`; what is no list of networks is a mistake.
    public static func read(_ environment: inout Environment) -> TrustedNetworks {
        let text = environment.string("MARTLET_TRUSTED_PROXIES", default: "127.0.0.0/8,::1/128")
        if let networks = TrustedNetworks(text) { return networks }
        environment.mistake("MARTLET_TRUSTED_PROXIES is \"\(text)\"; it must be like 10.0.0.0/8,::1")
        return .loopback
    }

    public func contains(_ address: String) -> Bool {
        guard let bytes = Self.bytes(of: address) else { return false }
        return networks.contains { network in
            guard network.bytes.count == bytes.count else { return false }
            let whole = network.bits / 8
            guard network.bytes[..<whole] == bytes[..<whole] else { return false }
            let rest = network.bits % 8
            return rest == 0 || (network.bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0
        }
    }

    static func bytes(of address: String) -> [UInt8]? {
        if address.contains(":") { return bytes6(of: address) }
        let parts = address.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard (1...3).contains(part.utf8.count), let byte = UInt8(part) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func bytes6(of address: String) -> [UInt8]? {
        let halves = address.components(separatedBy: "::")
        guard halves.count <= 2 else { return nil }
        func groups(_ text: String) -> [UInt16]? {
            guard !text.isEmpty else { return [] }
            var groups: [UInt16] = []
            for part in text.split(separator: ":", omittingEmptySubsequences: false) {
                guard (1...4).contains(part.utf8.count), let group = UInt16(part, radix: 16) else { return nil }
                groups.append(group)
            }
            return groups
        }
        guard let head = groups(halves[0]) else { return nil }
        guard let tail = halves.count == 2 ? groups(halves[1]) : [] else { return nil }
        let missing = 8 - head.count - tail.count
        guard halves.count == 2 ? missing >= 1 : missing == 0 else { return nil }
        let all = head + [UInt16](repeating: 0, count: missing) + tail
        return all.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }
}

extension HTTPRequest {
    /// Who asked: the peer, unless it is a trusted proxy; then the first address from the right of `X-Forwarded-For`
    /// that is not one. What a client writes there itself stands further left and is never reached.
    public func clientAddress(trusting networks: TrustedNetworks) -> String {
        guard networks.contains(peer.host) else { return peer.host }
        let hops = headers.all("X-Forwarded-For").joined(separator: ",").split(separator: ",")
            .map { $0.filter { !$0.isWhitespace } }
        for hop in hops.reversed() {
            guard TrustedNetworks.bytes(of: hop) != nil else { break }
            if !networks.contains(hop) { return hop }
        }
        return peer.host
    }

    /// `clientNetwork`, where it is known: nil when no proxy said whose request it is. An address of ours would stand
    /// for everybody.
    public func countedNetwork(trusting networks: TrustedNetworks) -> String? {
        networks.contains(clientAddress(trusting: networks)) ? nil : clientNetwork(trusting: networks)
    }

    /// Who asked, for counting: of IPv6 the first 64 bits, since whoever has one address there has all of its network
    /// (RFC 6177) and could take another for each request.
    public func clientNetwork(trusting networks: TrustedNetworks) -> String {
        let address = clientAddress(trusting: networks)
        guard let bytes = TrustedNetworks.bytes(of: address), bytes.count == 16 else { return address }
        return bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ".") + "/64"
    }
}

import EventLoop
import Foundation
import ServiceKit

/// The port for the other chats, and where they reach it.
public struct InternalPort: Sendable, Equatable {
    /// What is listened on.
    public let address: SocketAddress
    /// What stands in `chat_instances`. Its port is that of `address` unless it was given.
    public let advertised: SocketAddress

    /// From `MARTLET_INTERNAL_ADDRESS` and `MARTLET_INTERNAL_ADVERTISED`; nil when the first is not set. One that
    /// cannot be told to others is a mistake.
    ///
    /// - Parameter resolve: addresses of a host's name. It may block, so this is for the start of a process.
    static func read(
        _ environment: inout Environment,
        resolve: (String) -> [String] = { Host(name: $0).addresses }, ownName: String = ProcessInfo.processInfo.hostName
    ) -> InternalPort? {
        guard environment.value("MARTLET_INTERNAL_ADDRESS") != nil else { return nil }
        let address = environment.address("MARTLET_INTERNAL_ADDRESS", default: "")
        if let text = environment.value("MARTLET_INTERNAL_ADVERTISED") {
            if let advertised = located(text, resolve) {
                return InternalPort(address: address, advertised: advertised)
            }
            environment.mistake(
                "MARTLET_INTERNAL_ADVERTISED is \"\(text)\"; it must be the host and port where the other chats reach"
                    + " this one, such as 10.0.0.2:9182")
            return nil
        }
        guard isWildcard(address.host) else { return InternalPort(address: address, advertised: address) }
        // A container's own name leads to its address on the network it shares with the others.
        guard let own = pick(resolve(ownName).filter { !isLoopback($0) }) else {
            environment.mistake(
                "MARTLET_INTERNAL_ADDRESS is every address of this machine;"
                    + " MARTLET_INTERNAL_ADVERTISED must say at which the other chats reach it")
            return nil
        }
        return InternalPort(address: address, advertised: SocketAddress(host: own, port: address.port))
    }

    private static func located(_ text: String, _ resolve: (String) -> [String]) -> SocketAddress? {
        let found: SocketAddress?
        if let numeric = SocketAddress(text) {
            found = numeric
        } else {
            guard let colon = text.lastIndex(of: ":"), colon > text.startIndex,
                let host = pick(resolve(String(text[..<colon])))
            else { return nil }
            found = SocketAddress(host.contains(":") ? "[\(host)]\(text[colon...])" : "\(host)\(text[colon...])")
        }
        guard let found, found.port > 0, !isWildcard(found.host) else { return nil }
        return found
    }

    /// IPv4 first, as that is what services listen on unless they are told otherwise.
    private static func pick(_ hosts: [String]) -> String? {
        hosts.first { !$0.contains(":") } ?? hosts.first
    }

    private static func isWildcard(_ host: String) -> Bool { host == "0.0.0.0" || host == "::" }
    private static func isLoopback(_ host: String) -> Bool { host.hasPrefix("127.") || host == "::1" }
}

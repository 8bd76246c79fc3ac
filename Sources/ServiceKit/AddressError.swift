import EventLoop
import Foundation
import HTTPServer

/// An address that a service cannot listen on, and what its operator can do.
public struct AddressError: Error, CustomStringConvertible, Equatable {
    public let description: String

    /// - Parameter code: a negative errno, as of `LoopError`.
    /// - Returns: nil for what no other address would mend.
    init?(code: Int32, address: SocketAddress, setting: String) {
        switch code {
        case -EADDRINUSE:
            description =
                "\(address) is taken: something listens there already. End that, or set \(setting) to another port."
        case -EADDRNOTAVAIL:
            description = "\(address) is not an address of this machine. Set \(setting) to one that is."
        case -EACCES:
            description = "this user may not listen on \(address). Set \(setting) to a port above 1023."
        default: return nil
        }
    }
}

extension HTTPServer {
    /// Starts to accept connections, alone on its address. Call once.
    /// - Parameter setting: the variable that the address is of, or would be.
    /// - Returns: the address in use.
    /// - Throws: `AddressError` when the address is taken, not one of this machine, or not for this user.
    public func start(setting: String) async throws -> SocketAddress {
        do {
            return try await start()
        } catch let error as LoopError {
            if let known = AddressError(code: error.code, address: address, setting: setting) { throw known }
            throw error
        }
    }

    /// As `start(setting:)`, and says in the log where it listens.
    public func start(setting: String, _ log: Log) async throws {
        log.info("listening", ["address": .string(try await start(setting: setting).description)])
    }
}

import CoreHTTP
import Crypto
import EventLoop
import Foundation
import ServiceKit
import SocketIO

/// The chat's settings, read once.
public struct ChatConfiguration: Sendable {
    /// Shown to clients, in `chat_instances` and in wake-ups.
    static let instanceLengthMax = 40

    public let address: SocketAddress
    /// Nil: the other chats pass nothing on to this one.
    public let internalPort: InternalPort?
    public let database: DatabaseSettings
    public let keys: SigningKeys
    public let instance: String
    public let limits: ChatLimits
    /// Proxies whose word about a client's address counts.
    public let trusted: TrustedNetworks

    public init(_ environment: inout Environment) throws {
        address = environment.address("MARTLET_HTTP_ADDRESS", default: "127.0.0.1:8082")
        internalPort = InternalPort.read(&environment)
        database = DatabaseSettings(&environment)
        let name = environment.string("MARTLET_INSTANCE", default: Self.ownName)
        if !name.unicodeScalars.allSatisfy(Self.isPlain) || name.utf8.count > Self.instanceLengthMax {
            environment.mistake(
                "MARTLET_INSTANCE is \"\(name)\"; it has 1 to \(Self.instanceLengthMax) letters, digits, `.`, `_`, `-`")
        }
        instance = name
        var limits = ChatLimits()
        limits.sendsPerSecond = environment.int(
            "MARTLET_CHAT_SENDS_PER_SECOND", default: limits.sendsPerSecond, in: 1...100_000)
        limits.sendsBurstMax = 3 * limits.sendsPerSecond
        limits.socketsPerUserMax = environment.int(
            "MARTLET_CHAT_SOCKETS_PER_USER", default: limits.socketsPerUserMax, in: 1...10_000)
        limits.socketsPerAddressMax = environment.int(
            "MARTLET_CHAT_SOCKETS_PER_ADDRESS", default: limits.socketsPerAddressMax, in: 1...1_000_000)
        limits.socketIO = Self.socketIO(&environment)
        self.limits = limits
        trusted = TrustedNetworks.read(&environment)
        let secrets = environment.sessionSecrets(bytesMin: SigningKeys.keyBytesMin)
        try environment.check()
        keys = try SigningKeys(secrets: secrets)
    }
    /// Unlike the others' on this machine and, in containers, where every process has the same number.
    private static var ownName: String {
        let number = "-\(ProcessInfo.processInfo.processIdentifier)"
        let host = ProcessInfo.processInfo.hostName.unicodeScalars.filter(isPlain)
        return String(String.UnicodeScalarView(host.prefix(instanceLengthMax - number.utf8.count))) + number
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic && scalar.isASCII || ("0"..."9").contains(scalar)
            || "._-".unicodeScalars.contains(scalar)
    }

    /// The times that clients of Socket.IO are told; shorter ones than the defaults are for tests.
    private static func socketIO(_ environment: inout Environment) -> SocketIOLimits {
        var limits = SocketIOLimits()
        func milliseconds(_ name: String, _ fallback: UInt64) -> UInt64 {
            UInt64(environment.int(name, default: Int(fallback), in: 100...600_000))
        }
        limits.pingIntervalMilliseconds = milliseconds(
            "MARTLET_SOCKETIO_PING_INTERVAL_MS", limits.pingIntervalMilliseconds)
        limits.pingTimeoutMilliseconds = milliseconds(
            "MARTLET_SOCKETIO_PING_TIMEOUT_MS", limits.pingTimeoutMilliseconds)
        limits.connectMillisecondsMax = milliseconds(
            "MARTLET_SOCKETIO_CONNECT_TIMEOUT_MS", limits.connectMillisecondsMax)
        limits.payloadBytesMax = environment.int(
            "MARTLET_SOCKETIO_PAYLOAD_BYTES", default: limits.payloadBytesMax, in: 1_000...100_000_000)
        return limits
    }
}

import EventLoop
import Foundation

/// What every service reads beside its own settings and those of traces.
public struct ServiceSettings: Sendable {
    static let loopsMax = 64

    /// Nil: there is no admin server.
    let admin: SocketAddress?
    let unreadySeconds: Int
    let logLevel: Log.Level
    let logFormat: Log.Format
    let loops: Int

    public init(_ environment: inout Environment) {
        admin =
            environment.value("MARTLET_ADMIN_ADDRESS") == nil
            ? nil : environment.address("MARTLET_ADMIN_ADDRESS", default: "")
        unreadySeconds = environment.int(
            "MARTLET_UNREADY_SECONDS", default: 0, in: 0...ServiceRunner.unreadySecondsMax)
        logLevel = environment.choice("MARTLET_LOG_LEVEL", default: .info)
        logFormat = environment.choice("MARTLET_LOG_FORMAT", default: .json)
        loops = environment.int(
            "MARTLET_LOOPS", default: min(4, ProcessInfo.processInfo.activeProcessorCount), in: 1...Self.loopsMax)
    }
}

import Foundation
import Postgres
import Synchronization

/// The driver's events as lines of a log.
///
/// While a server is away each lane of each loop tries again several times a second, and every attempt is an event. The
/// log has the first of each kind in a lane, then one line in `quietSeconds` with how many were left out, and one when
/// the lane works again. The metrics count all of them.
public final class DatabaseLog: Sendable {
    /// Between two lines about the same kind of failure in the same lane.
    public static let quietSeconds = 10.0

    private struct Lane {
        var toldAt: [PostgresEvent.Kind: Date] = [:]
        /// Since its last line.
        var leftOut = 0
        /// The last line was about a failure.
        var isTroubled = false
        var hasConnected = false

        /// A line is due.
        /// - Returns: how many there were without one.
        mutating func tell() -> Int {
            defer { leftOut = 0 }
            return leftOut
        }

        /// - Returns: nil when the line is to be left out.
        mutating func failed(_ kind: PostgresEvent.Kind, now: Date) -> Int? {
            // A clock that was set back must not keep the log silent.
            if let told = toldAt[kind], (0..<quietSeconds).contains(now.timeIntervalSince(told)) {
                leftOut += 1
                return nil
            }
            toldAt[kind] = now
            isTroubled = true
            return tell()
        }

        mutating func connected() -> News {
            defer { (isTroubled, hasConnected) = (false, true) }
            if isTroubled { return .again(leftOut: tell()) }
            return hasConnected ? .usual : .first
        }
    }

    private enum News {
        case first, usual
        case again(leftOut: Int)
    }

    private let log: Log
    private let clock: any ServiceClock
    private let lanes = Mutex<[String: Lane]>([:])

    public init(_ log: Log, clock: any ServiceClock) {
        self.log = log
        self.clock = clock
    }

    /// For `Database`: never blocks, and may be called on any loop.
    public func note(_ event: PostgresEvent) {
        switch event.kind {
        case .connected, .listening: connected(event)
        case .connectFailed, .connectionLost, .poolerMet: failed(event)
        }
    }

    private func failed(_ event: PostgresEvent) {
        let now = clock.now()
        let due = lanes.withLock { $0[event.lane, default: Lane()].failed(event.kind, now: now) }
        guard let leftOut = due else { return }
        let (lane, reason) = (Log.Value.string(event.lane), Log.Value.string(event.reason))
        if event.kind == .poolerMet {
            counting(leftOut).error(DatabaseSettings.poolerMet, ["lane": lane, "reason": reason])
        } else {
            counting(leftOut).warning(
                "database", ["what": .string(event.kind.rawValue), "lane": lane, "reason": reason])
        }
    }

    /// A lane's first connection is news, and so is one after a failure that was told; the others only to whoever looks
    /// for mistakes.
    private func connected(_ event: PostgresEvent) {
        let (what, lane) = (Log.Value.string(event.kind.rawValue), Log.Value.string(event.lane))
        switch lanes.withLock({ $0[event.lane, default: Lane()].connected() }) {
        case .again(let leftOut): counting(leftOut).info("the database answers again", ["lane": lane])
        case .first: log.info("database", ["what": what, "lane": lane])
        case .usual: log.debug("database", ["what": what, "lane": lane])
        }
    }

    /// The log, with how many events of the lane had no line since its last one.
    private func counting(_ leftOut: Int) -> Log {
        leftOut > 0 ? log.with(["left_out": .int(Int64(leftOut))]) : log
    }
}

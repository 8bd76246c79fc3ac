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

        /// - Returns: nil when no failure was told before.
        mutating func connected() -> Int? {
            defer { isTroubled = false }
            return isTroubled ? tell() : nil
        }
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
        let (lane, reason) = (Log.Value.string(event.lane), Log.Value.string(Self.short(event.reason)))
        if event.kind == .poolerMet {
            counting(leftOut).error(DatabaseSettings.poolerMet, ["lane": lane, "reason": reason])
        } else {
            counting(leftOut).warning(
                "database", ["what": .string(event.kind.rawValue), "lane": lane, "reason": reason])
        }
    }

    /// A connection is news after a failure that was told; otherwise it is nobody's concern who is not debugging.
    private func connected(_ event: PostgresEvent) {
        let lane = Log.Value.string(event.lane)
        if let leftOut = lanes.withLock({ $0[event.lane, default: Lane()].connected() }) {
            counting(leftOut).info("the database answers again", ["lane": lane])
        } else {
            log.debug("database", ["what": .string(event.kind.rawValue), "lane": lane])
        }
    }

    /// libpq's text, a line for each server that was tried, without its guesses of what may have happened; those are
    /// indented.
    static func short(_ reason: String) -> String {
        reason.split(separator: "\n").filter { !$0.hasPrefix("\t") }.joined(separator: "; ")
    }

    /// The log, with how many events of the lane had no line since its last one.
    private func counting(_ leftOut: Int) -> Log {
        leftOut > 0 ? log.with(["left_out": .int(Int64(leftOut))]) : log
    }
}

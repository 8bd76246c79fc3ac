import Core
import Foundation

/// Does the work of one kind of item. Items come at least once, so a handler finds out what is done already.
public protocol WorkHandler: Sendable {
    var kind: WorkItem.Kind { get }
    /// Runs on the worker's loop: what blocks goes to a pool.
    /// - Throws: `WorkFailure.permanent` when trying again changes nothing, `.waiting` when the work could not even be
    ///   tried; anything else is tried again later.
    func run(_ item: WorkItem) async throws
}

public enum WorkFailure: Error, Equatable, CustomStringConvertible {
    /// To the dead letters at once.
    case permanent(String)
    /// Again later, as any other error.
    case later(String)
    /// Again later, as often as it takes: what the work needs is away, and the attempt does not count.
    case waiting(String)

    public var description: String {
        switch self {
        case .permanent(let text), .later(let text), .waiting(let text): text
        }
    }
}

extension WorkItem {
    /// The payload as the handler's own type.
    /// - Throws: `WorkFailure.permanent`: a payload that does not fit never will.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        do { return try JSONDecoder().decode(type, from: Data(payload.utf8)) } catch {
            throw WorkFailure.permanent("the payload is not one of \(kind)")
        }
    }
}

/// When a failed item is tried again: twice as long each time, spread so that what failed together does not come back
/// together.
public struct BackOff: Sendable {
    public let firstSeconds: Double
    public let secondsMax: Double

    /// Of what waits for something that is away: when that is back, the work goes on within two minutes.
    public static let ofWaiting = BackOff(firstSeconds: 2, secondsMax: 120)

    /// The default gives twelve attempts over five to six hours: a mail server may be away for a night's maintenance.
    public init(firstSeconds: Double = 5, secondsMax: Double = 3 * 3600) {
        self.firstSeconds = firstSeconds
        self.secondsMax = secondsMax
    }

    /// - Parameters:
    ///   - attempt: the one that failed, from 1.
    ///   - random: in `0..<1`.
    public func seconds(after attempt: Int, random: Double) -> Double {
        let whole = min(secondsMax, firstSeconds * pow(2, Double(max(0, attempt - 1))))
        return whole * (0.5 + random / 2)
    }
}

/// Kinds that are claimed and bounded together, so that a flood of one kind of work does not stand before another.
public struct WorkLane: Sendable {
    public let name: String
    public let kinds: [WorkItem.Kind]
    /// Items at work or waiting for their completion to be written.
    public let runningMax: Int
    /// Items of one claim.
    public let batchMax: Int

    public init(name: String, kinds: [WorkItem.Kind], runningMax: Int, batchMax: Int) {
        self.name = name
        self.kinds = kinds
        self.runningMax = max(1, runningMax)
        self.batchMax = max(1, min(batchMax, runningMax))
    }
}

/// Work that comes back: an item is put in when a multiple of the period is reached, once over all workers.
public struct WorkSchedule: Sendable {
    public let name: String
    public let kind: WorkItem.Kind
    public let payload: String
    public let everySeconds: Int
    /// Asked before the item is put in, so that an idle installation writes nothing.
    public let isWanted: @Sendable (Date) async throws -> Bool

    public init(
        name: String, kind: WorkItem.Kind, payload: String = "{}", everySeconds: Int,
        isWanted: @escaping @Sendable (Date) async throws -> Bool = { _ in true }
    ) {
        self.name = name
        self.kind = kind
        self.payload = payload
        self.everySeconds = max(1, everySeconds)
        self.isWanted = isWanted
    }

    /// The latest time to fire that is not after `now`. Counted in UTC, so no local clock change skips or repeats one.
    public func due(at now: Date) -> Date {
        let period = Double(everySeconds)
        return Date(timeIntervalSince1970: (now.timeIntervalSince1970 / period).rounded(.down) * period)
    }
}

import EventLoop
import Synchronization

/// What one lane of a database is doing, and has done since the process began: all loops together.
public struct LaneMeasurements: Sendable {
    /// `short`, `long`, `write` or `leased`.
    public let lane: String
    public internal(set) var connectionsMax = 0
    public internal(set) var connectionsOpen = 0
    /// With a statement under way, or leased.
    public internal(set) var connectionsBusy = 0
    /// Callers whose statement, or lease, waits for a connection.
    public internal(set) var waiting = 0
    /// How long those waited that got one; in milliseconds, as the loop's clock has it.
    public internal(set) var waits = DurationCounts()
    /// From sending to the answer; what one caller asks in one go counts once.
    public internal(set) var statements = DurationCounts()
    /// Of these, answered with an error, constraints that held included, or with their connection's end.
    public internal(set) var failed = 0
    /// Turned away: the queue was full, or no connection came free in time.
    public internal(set) var refused = 0

    init(_ lane: LaneKind) { self.lane = lane.rawValue }

    mutating func add(_ other: LaneMeasurements) {
        connectionsMax += other.connectionsMax
        connectionsOpen += other.connectionsOpen
        connectionsBusy += other.connectionsBusy
        waiting += other.waiting
        waits.add(other.waits)
        statements.add(other.statements)
        failed += other.failed
        refused += other.refused
    }
}

/// What a lane counts. Lives on its loop; not Sendable.
final class LaneMeter {
    private(set) var counts: LaneMeasurements
    private let loop: EventLoop
    private let acquireMilliseconds: UInt64

    init(_ lane: LaneKind, _ context: LaneContext) {
        counts = LaneMeasurements(lane)
        loop = context.loop
        acquireMilliseconds = UInt64(context.configuration.acquireMilliseconds)
    }

    /// - Parameter deadline: until when it would have waited.
    func waited(until deadline: UInt64) {
        let milliseconds = loop.nowMilliseconds &+ acquireMilliseconds &- deadline
        // It never had to wait, or has one beyond our reckoning.
        guard milliseconds <= acquireMilliseconds else { return }
        counts.waits.record(nanoseconds: milliseconds * 1_000_000)
    }

    func answered(since sentAt: UInt64, now: UInt64, failed: Bool) {
        counts.statements.record(nanoseconds: now &- sentAt)
        if failed { counts.failed += 1 }
    }

    func refused() { counts.refused += 1 }
}

/// What became of connections, by lane. Rare, and from any loop.
final class EventCounts: Sendable {
    private let counts = Mutex<[String: [PostgresEvent.Kind: Int]]>([:])

    func note(_ event: PostgresEvent) {
        counts.withLock { $0[event.lane, default: [:]][event.kind, default: 0] += 1 }
    }

    func count(_ lane: String, _ kinds: Set<PostgresEvent.Kind>) -> Int {
        counts.withLock { counts in
            (counts[lane] ?? [:]).filter { kinds.contains($0.key) }.values.reduce(0, +)
        }
    }
}

/// A database as it stands.
public struct DatabaseMeasurements: Sendable {
    public let lanes: [LaneMeasurements]
    /// By lane, that of LISTEN included: connections that ended by themselves, and attempts that failed.
    public let connections: [(lane: String, lost: Int, connectFailed: Int)]
}

extension Database {
    /// Asked of every loop; costs nothing between two calls.
    public var measurements: DatabaseMeasurements {
        get async {
            var lanes: [LaneMeasurements] = []
            for home in placement.homes {
                let share = await home.measurements
                if lanes.isEmpty {
                    lanes = share
                } else {
                    for (index, lane) in share.enumerated() { lanes[index].add(lane) }
                }
            }
            let kinds: [LaneKind] = [.short, .long, .write, .leased, .listen]
            return DatabaseMeasurements(
                lanes: lanes,
                connections: kinds.map { kind in
                    (
                        kind.rawValue, events.count(kind.rawValue, [.connectionLost]),
                        events.count(kind.rawValue, [.connectFailed, .poolerMet])
                    )
                })
        }
    }
}

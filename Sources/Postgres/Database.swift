import EventLoop
import Synchronization
import Tracing

/// A PostgreSQL database, by way of libpq on the process's event loops. Connections are opened when they are needed,
/// and again after a loss. Close it before the loops are stopped.
///
/// Four lanes, so that slow work never stands before quick work:
/// - `short`: reads by key. Reads of one loop turn share a Sync.
/// - `long`: searches, lists, facets.
/// - `write`: single statements and batches, each committed by itself.
/// - `transaction`, `session`: a connection of one's own.
public final class Database: Sendable {
    /// Read-only, `shortMilliseconds` at most. A failure is told to its own caller only.
    public let short: LaneExecutor
    /// Read-only, `longMilliseconds` at most, few at a time.
    public let long: LaneExecutor
    /// Each call is one implicit transaction. A lost connection is `PostgresUnavailable.outcomeUnknown`.
    public let write: LaneExecutor

    public let configuration: PostgresConfiguration
    let loops: LoopGroup
    let placement: Placement
    let resolver: Resolver
    /// The way to sessions of one's own; nil when there is only a pooler.
    let direct: (configuration: PostgresConfiguration, resolver: Resolver)?
    let random: @Sendable () -> Double
    let log: @Sendable (PostgresEvent) -> Void
    private let executed = Counter()
    let events = EventCounts()
    let listeners = Mutex<[ListenerLoop]>([])

    /// - Parameters:
    ///   - tracer: nil: statements are not traced.
    ///   - log: called on a loop; it must not block.
    ///   - random: in `0..<1`, for the pauses between attempts to connect.
    public init(
        _ configuration: PostgresConfiguration, loops: LoopGroup, tracer: Tracer? = nil,
        log: @escaping @Sendable (PostgresEvent) -> Void = { _ in },
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.configuration = configuration
        self.loops = loops
        self.random = random
        let events = events
        let log: @Sendable (PostgresEvent) -> Void = { event in
            events.note(event)
            log(event)
        }
        self.log = log
        let resolver = Resolver(ConnectionPlan(configuration))
        self.resolver = resolver
        direct = configuration.direct.map { ($0, Resolver(ConnectionPlan($0))) }
        let executed = executed
        let count = loops.loops.count
        let homes = loops.loops.map { loop in
            // The first loops get one more where the number does not divide.
            func share(_ whole: Int) -> Int { whole / count + (loop.index < whole % count ? 1 : 0) }
            let shares = PostgresLoop.Shares(
                short: max(1, configuration.shortPerLoop), long: share(max(1, configuration.longMax)),
                write: share(max(1, configuration.writeMax)), leased: share(max(1, configuration.leasedMax)))
            return PostgresLoop(
                loop: loop, shares: shares, configuration: configuration, resolver: resolver, executed: executed,
                random: random, log: log)
        }
        placement = Placement(loops: loops, homes: homes, tracing: tracer.map { StatementTracing($0) })
        short = LaneExecutor(kind: .short, placement: placement)
        long = LaneExecutor(kind: .long, placement: placement)
        write = LaneExecutor(kind: .write, placement: placement)
    }

    /// Statements sent so far, repeated ones counted again. For tests and metrics.
    public var statementsExecuted: Int { executed.current }

    /// Asks the database for an answer on every loop, which also opens the short lanes.
    /// - Throws: `PostgresUnavailable`, `PostgresError`.
    public func ping() async throws {
        for home in placement.homes {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let unit = Unit<QueryResult>("SELECT 1", whenLost: .again) { outcome in
                    continuation.resume(with: outcome.read { _, _ in })
                }
                home.enter { $0.submit(unit, to: .short) }
            }
        }
    }

    /// Refuses new work, waits for what was sent, and ends all connections.
    public func close() async {
        for listener in listeners.withLock({ $0 }) { await listener.stop() }
        for home in placement.homes { await home.close() }
    }

    /// As `write.batch`.
    @discardableResult
    public func batch<each T: Sendable>(_ statement: repeat Statement<each T>) async throws -> (repeat [each T]) {
        try await write.batch(repeat each statement)
    }
}

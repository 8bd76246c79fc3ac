import EventLoop

/// One lane of a `Database`, usable from any thread. On a loop of the group the statement stays on that loop.
public struct LaneExecutor: SQLExecutor {
    let kind: LaneKind
    let placement: Placement

    public func run<T: Sendable>(
        _ first: SQL, _ rest: [SQL], read: @escaping @Sendable (QueryResult, [QueryResult]) throws -> T
    ) async throws -> T {
        if let problem = first.problem ?? rest.lazy.compactMap(\.problem).first { throw problem }
        try Task.checkCancellation()
        let kind = kind
        let home = placement.home(for: kind)
        let load = placement.load(home, kind)
        load?.add(1)
        let whenLost: Unit<QueryResult>.WhenLost = kind == .write ? .outcomeUnknown : .again
        let span = placement.tracing?.begin(first, count: 1 + rest.count)
        // What is sent at the end of this turn cannot be cancelled any more, so nobody need watch for it.
        if home.sendsSoon(kind) {
            return try await withUnsafeThrowingContinuation { continuation in
                let unit = Unit<QueryResult>(first, rest: rest, whenLost: whenLost) { outcome in
                    load?.add(-1)
                    span?.end(outcome)
                    continuation.resume(with: outcome.read(read))
                }
                home.enter { $0.submit(unit, to: kind) }
            }
        }
        let ticket = Ticket()
        return try await withCancellation(ticket, home, kind) { continuation in
            let unit = Unit<QueryResult>(ticket: ticket, first, rest: rest, whenLost: whenLost) { outcome in
                load?.add(-1)
                span?.end(outcome)
                continuation.resume(with: outcome.read(read))
            }
            home.enter { $0.submit(unit, to: kind) }
        }
    }
}

/// Waits for a continuation; when the task is cancelled, marks the ticket and has the lane look at its queue.
///
/// The isolation is said everywhere: a closure given to `withTaskCancellationHandler` in a `nonisolated(nonsending)`
/// function would leave the caller's loop for the global executor (Swift 6.3), which costs ten times the statement.
func withCancellation<T: Sendable>(
    _ ticket: Ticket, _ home: PostgresLoop, _ kind: LaneKind, isolation: isolated (any Actor)? = #isolation,
    _ body: (UnsafeContinuation<T, any Error>) -> Void
) async throws -> T {
    try await withTaskCancellationHandler(
        operation: {
            _ = isolation
            return try await withUnsafeThrowingContinuation(isolation: isolation, body)
        },
        onCancel: {
            ticket.cancel()
            home.enter { $0.sweepCancelled(kind) }
        }, isolation: isolation)
}

extension Outcome<QueryResult> {
    func read<T>(_ body: (QueryResult, [QueryResult]) throws -> T) -> Result<T, any Error> {
        switch self {
        case .done(let first, let rest): Result { try body(first, rest) }
        case .failed(let error): .failure(error)
        }
    }
}

/// Which loop a statement goes to.
struct Placement: Sendable {
    let loops: LoopGroup
    let homes: [PostgresLoop]
    /// Nil: statements are not traced.
    var tracing: StatementTracing?

    /// The caller's own loop for short reads. The other lanes have few connections, not on every loop: the own one when
    /// it has one to spare, otherwise where least is waiting for each connection.
    func home(for kind: LaneKind) -> PostgresLoop {
        let here = homes[loops.here().index]
        guard kind != .short, let load = load(here, kind) else { return here }
        let connections = share(here, kind)
        if connections > 0, load.current < connections { return here }
        return homes.filter { share($0, kind) > 0 }.min { pressure($0, kind) < pressure($1, kind) } ?? here
    }

    private func pressure(_ home: PostgresLoop, _ kind: LaneKind) -> Double {
        Double(load(home, kind)?.current ?? 0) / Double(max(1, share(home, kind)))
    }

    private func share(_ home: PostgresLoop, _ kind: LaneKind) -> Int {
        switch kind {
        case .short: home.shares.short
        case .long: home.shares.long
        case .write: home.shares.write
        case .leased: home.shares.leased
        case .listen: 0
        }
    }

    /// Nil for the lane that every loop has.
    func load(_ home: PostgresLoop, _ kind: LaneKind) -> Counter? {
        switch kind {
        case .short, .listen: nil
        case .long: home.longLoad
        case .write: home.writeLoad
        case .leased: home.leasedLoad
        }
    }
}

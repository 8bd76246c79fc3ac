/// The bookkeeping of one pipelined connection: what has been sent, what must come back, and to whom. No I/O.
///
/// Statements go out in groups, each ended by a Sync. A group is one implicit transaction: when a statement fails the
/// server skips the rest of its group. Units of several callers may share a group (`add`, `add`, `sync`) if they are
/// reads; those skipped because of another's mistake are given back to be sent once more, alone.
struct Pipeline<Output> {
    enum Send {
        case prepare(name: String, SQL)
        /// Without a name it is parsed anew.
        case execute(SQL, name: String?)
        case deallocate(name: String)
        case sync
    }

    enum Event {
        case success(Output)
        case failure(PostgresError)
        /// Skipped, because something before it in the group failed.
        case skipped
    }

    enum Action {
        case finish(Unit<Output>, Outcome<Output>)
        case retry(Unit<Output>)
    }

    /// An answer came that nothing was asked for: the connection cannot be used any more.
    struct Broken: Error {}

    private enum Expected {
        case prepare(unit: Int, key: SQL.Key, name: String)
        case execute(unit: Int, index: Int)
        case deallocate
        /// - Parameter end: the number after the group's last unit.
        case sync(end: Int)
    }

    private struct Flight {
        let unit: Unit<Output>
        var outputs = 0
        var first: Output?
        var rest: [Output] = []
        var failure: (any Error)?
        var isSkipped = false
        var isStale = false
        var isFinished = false
    }

    private var expected = Queue<Expected>()
    private var flights = Queue<Flight>()
    private var statements: StatementCache
    private var group = 0
    /// Reads are answered as soon as their rows are there. A write is done only when the Sync, which commits, has
    /// come back.
    private let answersEarly: Bool
    /// False within a transaction: what was rolled back then is not only the unit itself.
    private let mayRetry: Bool

    init(answersEarly: Bool, mayRetry: Bool, statements: StatementCache = StatementCache()) {
        self.answersEarly = answersEarly
        self.mayRetry = mayRetry
        self.statements = statements
    }

    var isIdle: Bool { expected.isEmpty }
    var unitsInFlight: Int { flights.count }
    var preparedCount: Int { statements.count }

    // MARK: Sending

    /// Adds a unit to the open group. The group must be ended by `sync` before anything is waited for.
    mutating func add(_ unit: Unit<Output>, emit: (Send) -> Void) {
        let number = flights.append(Flight(unit: unit))
        for index in 0..<unit.count {
            let sql = unit.statement(index)
            // A retry is not prepared: what it trusted may be what failed.
            switch unit.isRetry || !sql.isKept ? .unnamed : statements.use(sql.key, group: group) {
            case .unnamed: emit(.execute(sql, name: nil))
            case .named(let name): emit(.execute(sql, name: name))
            case .prepare(let name):
                expected.append(.prepare(unit: number, key: sql.key, name: name))
                emit(.prepare(name: name, sql))
                emit(.execute(sql, name: name))
            }
            expected.append(.execute(unit: number, index: index))
        }
    }

    /// Ends the group. Evicted statements are dropped in a group of their own, so that a failure there harms nobody.
    mutating func sync(mayDeallocate: Bool = true, emit: (Send) -> Void) {
        endGroup(emit)
        guard mayDeallocate, statements.hasCondemned else { return }
        for name in statements.takeCondemned() {
            expected.append(.deallocate)
            emit(.deallocate(name: name))
            endGroup(emit)
        }
    }

    private mutating func endGroup(_ emit: (Send) -> Void) {
        expected.append(.sync(end: flights.base + flights.count))
        emit(.sync)
        group += 1
    }

    /// The server has dropped all prepared statements.
    mutating func forgetStatements() { statements.reset() }

    // MARK: Receiving

    /// Takes the answer to one message.
    mutating func receive(_ event: Event) throws(Broken) -> Action? {
        guard let head = expected.first else { throw Broken() }
        switch head {
        case .sync:
            // What fails here is the commit: a deferred constraint, a serialization failure. The Sync itself still
            // comes.
            guard case .failure(let error) = event else { throw Broken() }
            failGroup(error)
            return nil
        case .deallocate:
            _ = expected.popFirst()
            return nil
        case .prepare(let unit, let key, let name):
            _ = expected.popFirst()
            prepared(event, unit: unit, key: key, name: name)
            return nil
        case .execute(let unit, let index):
            _ = expected.popFirst()
            return try executed(event, unit: unit, index: index)
        }
    }

    private mutating func prepared(_ event: Event, unit: Int, key: SQL.Key, name: String) {
        switch event {
        case .success: statements.confirm(key, name: name)
        case .failure(let error):
            statements.forget(key, name: name)
            _ = flights.update(unit) { $0.failure = error }
        case .skipped:
            statements.forget(key, name: name)
            _ = flights.update(unit) { $0.isSkipped = true }
        }
    }

    private mutating func executed(_ event: Event, unit: Int, index: Int) throws(Broken) -> Action? {
        let early = answersEarly
        var stale: SQL.Key?
        let found: Action?? = flights.update(unit) { flight in
            switch event {
            case .success(let output):
                flight.outputs += 1
                if index == 0 { flight.first = output } else { flight.rest.append(output) }
                guard early, flight.outputs == flight.unit.count, let first = flight.first else { return nil }
                flight.isFinished = true
                return .finish(flight.unit, .done(first: first, rest: flight.rest))
            case .failure(let error):
                if error.isStale { stale = flight.unit.statement(index).key }
                flight.isStale = error.isStale
                flight.failure = error
            case .skipped:
                flight.isSkipped = true
            }
            return nil
        }
        if let stale { statements.condemn(stale) }
        guard let action = found else { throw Broken() }
        return action
    }

    private mutating func failGroup(_ error: PostgresError) {
        guard case .sync(let end) = expected.first else { return }
        for number in flights.base..<max(flights.base, end) {
            _ = flights.update(number) { if $0.failure == nil { $0.failure = error } }
        }
    }

    /// Takes the answer to a Sync: the group is over, and what it was is settled.
    mutating func synced() throws(Broken) -> [Action] {
        guard case .sync(let end) = expected.popFirst() else { throw Broken() }
        var actions: [Action] = []
        while flights.base < end, let flight = flights.popFirst() {
            if !flight.isFinished { actions.append(settle(flight)) }
        }
        return actions
    }

    private func settle(_ flight: Flight) -> Action {
        var unit = flight.unit
        if flight.isStale || (flight.isSkipped && flight.failure == nil) {
            if mayRetry, !unit.isRetry {
                unit.isRetry = true
                return .retry(unit)
            }
            return .finish(unit, .failed(flight.failure ?? PostgresUnavailable.connectionLost))
        }
        if let failure = flight.failure { return .finish(unit, .failed(failure)) }
        guard let first = flight.first, flight.outputs == unit.count else {
            return .finish(unit, .failed(PostgresUnavailable.outcomeUnknown))
        }
        return .finish(unit, .done(first: first, rest: flight.rest))
    }

    /// The connection is gone. Says of each unit in flight what becomes of it, in the order they were sent.
    mutating func lost() -> [Action] {
        var actions: [Action] = []
        while let flight = flights.popFirst() {
            guard !flight.isFinished else { continue }
            var unit = flight.unit
            if let failure = flight.failure, !flight.isStale {
                actions.append(.finish(unit, .failed(failure)))
                continue
            }
            switch unit.whenLost {
            case .again where !unit.isRetry:
                unit.isRetry = true
                actions.append(.retry(unit))
            case .again, .connectionLost:
                actions.append(.finish(unit, .failed(PostgresUnavailable.connectionLost)))
            case .outcomeUnknown:
                actions.append(.finish(unit, .failed(PostgresUnavailable.outcomeUnknown)))
            }
        }
        expected = Queue()
        statements.reset()
        return actions
    }
}

import Synchronization

/// An open transaction on a connection of its own. Valid within the closure that was given it.
///
/// A statement that fails makes the transaction fail: PostgreSQL refuses all that follows, and it is rolled back even
/// if the closure swallows the error.
public final class Transaction: SQLExecutor {
    let lease: Lease
    private let state: Mutex<State>

    private struct State {
        /// What goes before the first statement, in the same round trip.
        var opening: [SQL]
        var isBegun = false
        var isEnded = false
    }

    init(lease: Lease, opening: [SQL]) {
        self.lease = lease
        state = Mutex(State(opening: opening))
    }

    public func run<T: Sendable>(
        _ first: SQL, _ rest: [SQL], read: @escaping @Sendable (QueryResult, [QueryResult]) throws -> T
    ) async throws -> T {
        if let problem = first.problem ?? rest.lazy.compactMap(\.problem).first { throw problem }
        try Task.checkCancellation()
        let opening = try takeOpening()
        guard let begin = opening.first else { return try await lease.run(first, rest, read: read) }
        let skipped = opening.count - 1
        let all = opening.dropFirst() + [first] + rest
        return try await lease.run(begin, Array(all), opening: opening.count) { _, results in
            try read(results[skipped], Array(results.dropFirst(skipped + 1)))
        }
    }

    private func takeOpening() throws -> [SQL] {
        try state.withLock { state in
            guard !state.isEnded else { throw PostgresMisuse.leaseEnded }
            guard !state.isBegun else { return [] }
            state.isBegun = true
            return state.opening
        }
    }

    /// Opens the transaction without a statement of its own, for what does not go through the pipeline.
    func begin() async throws {
        let opening = try takeOpening()
        guard let first = opening.first else { return }
        try await lease.run(first, Array(opening.dropFirst())) { _, _ in }
    }

    /// Copies rows into a table: `COPY t (a, b) FROM STDIN`, text format. Whoever writes waits for the server.
    /// - Returns: the number of rows.
    /// - Throws: what `body` throws, or the server's error, which may come only at the end. Either way the transaction
    ///   has failed.
    @discardableResult
    public func copyIn(_ sql: SQL, _ body: (CopyWriter) async throws -> Void) async throws -> Int {
        guard sql.binds.isEmpty else { throw PostgresMisuse.bindsNotAllowed }
        try Task.checkCancellation()
        try await begin()
        return try await lease.copyIn(sql.text, body)
    }

    fileprivate func end() -> Bool {
        state.withLock { state in
            defer { state.isEnded = true }
            return state.isBegun
        }
    }
}

/// How much a transaction is kept from seeing of others (PostgreSQL manual, 13.2).
public enum Isolation: Sendable {
    case readCommitted, repeatableRead, serializable
    /// A fixed view of the database that cannot be written to.
    case readOnlySnapshot
    /// As the snapshot, and waits until no serializable transaction can disturb it: for exports.
    case deferrable

    var begin: SQL {
        switch self {
        case .readCommitted: "BEGIN"
        case .repeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ"
        case .serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE"
        case .readOnlySnapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        case .deferrable: "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"
        }
    }
}

extension Database {
    /// Runs `body` in a transaction on a connection of its own: COMMIT when it returns, ROLLBACK when it throws. BEGIN
    /// travels with the first statement; a transaction without one costs nothing.
    /// - Parameters:
    ///   - lockMilliseconds: `lock_timeout` within it, when not the configuration's.
    ///   - statementMilliseconds: `statement_timeout` within it, likewise; 0 is none. A COPY is one statement.
    /// - Throws: what `body` throws; `PostgresError` of the COMMIT; `PostgresUnavailable.outcomeUnknown` when the
    ///   connection was lost during COMMIT; `PostgresUnavailable.busy` when no connection came free in time.
    @discardableResult
    public func transaction<T: Sendable>(
        isolation: Isolation = .readCommitted, lockMilliseconds: Int? = nil, statementMilliseconds: Int? = nil,
        _ body: (Transaction) async throws -> T
    ) async throws -> T {
        var opening = [isolation.begin]
        // Behind a pooler the sessions have no limits of ours, so the transaction brings them.
        let isPooled = configuration.isPooled
        let lockMilliseconds = lockMilliseconds ?? (isPooled ? configuration.lockMilliseconds : nil)
        let statementMilliseconds = statementMilliseconds ?? (isPooled ? configuration.leasedMilliseconds : nil)
        if let lockMilliseconds {
            opening.append("SELECT set_config('lock_timeout', \(String(lockMilliseconds)), true)")
        }
        if let statementMilliseconds {
            opening.append("SELECT set_config('statement_timeout', \(String(statementMilliseconds)), true)")
        }
        let lease = try await Lease.acquire(placement)
        let transaction = Transaction(lease: lease, opening: opening)
        let value: T
        do {
            value = try await body(transaction)
        } catch {
            if transaction.end() { await lease.rollBack() } else { lease.release() }
            throw error
        }
        do {
            if transaction.end() { try await lease.commit() }
        } catch {
            // A COMMIT that fails has ended the transaction; a connection that cannot say so is given up.
            if error is PostgresError { lease.release() } else { lease.discard() }
            throw error
        }
        lease.release()
        return value
    }
}

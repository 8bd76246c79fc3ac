import Synchronization

/// A connection of one's own without a transaction: each statement commits by itself. For migrations, advisory locks
/// and what PostgreSQL refuses within a transaction. Valid within the closure that was given it.
public final class Session: SQLExecutor {
    private let lease: Lease
    private let isEnded = Atomic<Bool>(false)

    init(lease: Lease) { self.lease = lease }

    public func run<T: Sendable>(
        _ first: SQL, _ rest: [SQL], read: @escaping @Sendable (QueryResult, [QueryResult]) throws -> T
    ) async throws -> T {
        if let problem = first.problem ?? rest.lazy.compactMap(\.problem).first { throw problem }
        try check()
        return try await lease.run(first, rest, whenLost: .outcomeUnknown, read: read)
    }

    /// Runs the text of a script, such as a migration's: several statements, no binds, no rows. Without BEGIN in it,
    /// it is one implicit transaction when it has several statements. Never give it what a client sent.
    /// - Throws: the first statement's error; those after it were not run.
    public func script(_ text: String) async throws {
        guard !text.utf8.contains(0) else { throw PostgresEncodingError.nul }
        try check()
        _ = try await lease.script(text)
    }

    private func check() throws {
        guard !isEnded.load(ordering: .acquiring) else { throw PostgresMisuse.leaseEnded }
        try Task.checkCancellation()
    }

    fileprivate func end() { isEnded.store(true, ordering: .releasing) }
}

extension Database {
    /// Runs `body` with a connection of its own. What it leaves behind (settings, locks, temporary tables, an open
    /// transaction) goes with it.
    /// - Throws: what `body` throws; `PostgresMisuse.noSession` behind a pooler; `PostgresUnavailable` when no
    ///   connection came free in time.
    @discardableResult
    public func session<T: Sendable>(_ body: (Session) async throws -> T) async throws -> T {
        guard !configuration.isPooled else { throw PostgresMisuse.noSession }
        let lease = try await Lease.acquire(placement)
        let session = Session(lease: lease)
        defer {
            session.end()
            // The cheapest way to leave nothing behind: sessions are rare, and another connection is opened when
            // needed.
            lease.discard()
        }
        return try await body(session)
    }
}

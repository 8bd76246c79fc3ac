/// A connection that one caller has to itself, by number: the connection stays with its loop.
struct Lease: Sendable {
    let home: PostgresLoop
    let id: Int
    private let load: Counter?
    private let tracing: StatementTracing?

    /// - Throws: `PostgresUnavailable` when none comes free in time, `CancellationError`.
    static func acquire(_ placement: Placement) async throws -> Lease {
        try Task.checkCancellation()
        let home = placement.home(for: .leased)
        let load = placement.load(home, .leased)
        let ticket = Ticket()
        load?.add(1)
        do {
            let id: Int = try await withCancellation(ticket, home, .leased) { continuation in
                home.enter { $0.acquire(ticket) { continuation.resume(with: $0) } }
            }
            return Lease(home: home, id: id, load: load, tracing: placement.tracing)
        } catch {
            load?.add(-1)
            throw error
        }
    }

    /// Gives the connection back; the next owner's statements go after whatever was sent.
    func release() {
        load?.add(-1)
        let id = id
        home.enter { $0.release(id) }
    }

    /// Instead of `release`: the connection ends.
    func discard() {
        load?.add(-1)
        let id = id
        home.enter { $0.discard(id) }
    }

    /// - Parameter opening: how many of the statements go before the one that this is about.
    func run<T: Sendable>(
        _ first: SQL, _ rest: [SQL], opening: Int = 0, whenLost: Unit<QueryResult>.WhenLost = .connectionLost,
        read: @escaping @Sendable (QueryResult, [QueryResult]) throws -> T
    ) async throws -> T {
        let id = id
        let span = tracing?.begin(opening == 0 ? first : rest[opening - 1], count: 1 + rest.count - opening)
        return try await withCheckedThrowingContinuation { continuation in
            let unit = Unit<QueryResult>(first, rest: rest, whenLost: whenLost) { outcome in
                span?.end(outcome)
                continuation.resume(with: outcome.read(read))
            }
            home.enter { $0.submit(unit, lease: id) }
        }
    }

    /// - Throws: `PostgresError` 25P02 when the transaction had failed: then COMMIT rolls back, and says so only in
    ///   its tag.
    func commit() async throws {
        let tag = try await run("COMMIT", [], whenLost: .outcomeUnknown) { result, _ in result.tag }
        guard tag == "COMMIT" else { throw PostgresError(sqlState: "25P02", message: "a statement of it had failed") }
    }

    /// Rolls back and gives the connection back. What a rollback cannot do, the end of the connection does.
    func rollBack() async {
        do {
            try await run("ROLLBACK", []) { _, _ in }
            release()
        } catch {
            discard()
        }
    }

    // MARK: Outside of the pipeline

    /// Several statements, by the simple protocol. Gives the affected rows of the last.
    func script(_ text: String) async throws -> Int {
        try await onChannel { channel, finish in channel.script(text, finish) }
    }

    func copyIn(_ text: String, _ body: (CopyWriter) async throws -> Void) async throws -> Int {
        _ = try await onChannel { channel, finish in channel.copyBegin(text, finish) }
        let writer = CopyWriter(lease: self)
        do {
            try await body(writer)
            try await writer.flush()
        } catch {
            // Its error is the caller's own; what the server says to the end that follows is only an echo.
            _ = try? await onChannel { channel, finish in channel.copyEnd(abort: true, finish) }
            throw error
        }
        return try await onChannel { channel, finish in channel.copyEnd(abort: false, finish) }
    }

    func copyWrite(_ bytes: [UInt8]) async throws {
        _ = try await onChannel { channel, finish in channel.copyWrite(bytes, finish) }
    }

    private func onChannel(
        _ body: @escaping @Sendable (Channel, @escaping (Result<Int, any Error>) -> Void) -> Void
    ) async throws -> Int {
        let id = id
        return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Int, any Error>) in
            home.enter { home in
                guard let channel = home.channel(lease: id) else {
                    return continuation.resume(throwing: PostgresUnavailable.connectionLost)
                }
                body(channel) { continuation.resume(with: $0) }
            }
        }
    }
}

import Synchronization
import Testing

@testable import Postgres

/// What a unit's caller was told.
enum Told: Equatable {
    case done([String])
    case failed(String)

    init(_ outcome: Outcome<String>) {
        switch outcome {
        case .done(let first, let rest): self = .done([first] + rest)
        case .failed(let error as PostgresError): self = .failed(error.sqlState)
        case .failed(let error): self = .failed("\(error)")
        }
    }
}

@Suite("The books of a pipeline")
struct PipelineTests {
    private let told = Answers()

    /// Collects what callers are told, by their names.
    final class Answers: Sendable {
        private let answers = Mutex<[String: [Told]]>([:])
        subscript(name: String) -> [Told] { answers.withLock { $0[name] ?? [] } }
        func tell(_ name: String, _ outcome: Outcome<String>) {
            let answer = Told(outcome)
            answers.withLock { $0[name, default: []].append(answer) }
        }
    }

    private func unit(
        _ name: String, _ first: SQL = "SELECT 1", _ rest: [SQL] = [],
        whenLost: Postgres.Unit<String>.WhenLost = .again
    ) -> Postgres.Unit<String> {
        let told = told
        return Postgres.Unit(first, rest: rest, whenLost: whenLost) { told.tell(name, $0) }
    }

    private func label(_ send: Pipeline<String>.Send) -> String {
        switch send {
        case .prepare(let name, _): "prepare \(name)"
        case .execute(_, let name): "execute \(name ?? "-")"
        case .deallocate(let name): "deallocate \(name)"
        case .sync: "sync"
        }
    }

    private func send(
        _ pipeline: inout Pipeline<String>, _ units: [Postgres.Unit<String>], mayDeallocate: Bool = true
    ) -> [String] {
        var sent: [String] = []
        for unit in units { pipeline.add(unit) { sent.append(label($0)) } }
        pipeline.sync(mayDeallocate: mayDeallocate) { sent.append(label($0)) }
        return sent
    }

    /// Performs an action; a unit to be sent again is returned.
    private func act(_ action: Pipeline<String>.Action?) -> Postgres.Unit<String>? {
        switch action {
        case .finish(let unit, let outcome): unit.finish(outcome)
        case .retry(let unit): return unit
        case nil: break
        }
        return nil
    }

    private let failure = PostgresError(sqlState: "22012")

    @Test("a statement is prepared once, before its first use, and executed by name from then on")
    func prepares() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        let sql: SQL = "SELECT 1"
        #expect(
            send(&pipeline, [unit("a", sql), unit("b", sql)]) == ["prepare m1", "execute m1", "execute m1", "sync"])
        _ = act(try pipeline.receive(.success("")))
        _ = act(try pipeline.receive(.success("one")))
        _ = act(try pipeline.receive(.success("two")))
        #expect(try pipeline.synced().isEmpty)
        #expect(told["a"] == [.done(["one"])])
        #expect(told["b"] == [.done(["two"])])
        #expect(send(&pipeline, [unit("c", sql)]) == ["execute m1", "sync"])
    }

    @Test("a group does not trust a name that an earlier group is still preparing")
    func pendingName() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        let sql: SQL = "SELECT 1"
        _ = send(&pipeline, [unit("a", sql)])
        #expect(send(&pipeline, [unit("b", sql)]) == ["execute -", "sync"])
        _ = act(try pipeline.receive(.failure(failure)))
        _ = act(try pipeline.receive(.skipped))
        for action in try pipeline.synced() { _ = act(action) }
        _ = act(try pipeline.receive(.success("fine")))
        _ = try pipeline.synced()
        #expect(told["a"] == [.failed("22012")])
        #expect(told["b"] == [.done(["fine"])])
        #expect(send(&pipeline, [unit("c", sql)]) == ["prepare m2", "execute m2", "sync"])
    }

    @Test("a failure is told to its own caller; those skipped behind it go once more, alone and unprepared")
    func skipped() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        let sql: SQL = "SELECT 1"
        _ = send(&pipeline, [unit("a", sql), unit("b", sql), unit("c", sql)])
        _ = act(try pipeline.receive(.success("")))
        _ = act(try pipeline.receive(.success("one")))
        _ = act(try pipeline.receive(.failure(failure)))
        _ = act(try pipeline.receive(.skipped))
        let again = try pipeline.synced().compactMap { act($0) }
        #expect(told["a"] == [.done(["one"])])
        #expect(told["b"] == [.failed("22012")])
        #expect(told["c"] == [])
        #expect(again.count == 1 && again[0].isRetry)
        #expect(send(&pipeline, again) == ["execute -", "sync"])
        _ = act(try pipeline.receive(.success("three")))
        _ = try pipeline.synced()
        #expect(told["c"] == [.done(["three"])])
        #expect(pipeline.isIdle && pipeline.unitsInFlight == 0)
    }

    @Test("a write is done when its Sync comes back, and failed when the commit fails")
    func commit() throws {
        var pipeline = Pipeline<String>(answersEarly: false, mayRetry: true)
        _ = send(&pipeline, [unit("a", "INSERT")])
        _ = send(&pipeline, [unit("b", "UPDATE")])
        _ = act(try pipeline.receive(.success("")))
        _ = act(try pipeline.receive(.success("1 row")))
        #expect(told["a"] == [])
        for action in try pipeline.synced() { _ = act(action) }
        #expect(told["a"] == [.done(["1 row"])])
        _ = act(try pipeline.receive(.success("")))
        _ = act(try pipeline.receive(.success("1 row")))
        _ = act(try pipeline.receive(.failure(PostgresError(sqlState: "23503"))))
        for action in try pipeline.synced() { _ = act(action) }
        #expect(told["b"] == [.failed("23503")])
    }

    @Test("statements of one unit stand or fall together")
    func batch() throws {
        var pipeline = Pipeline<String>(answersEarly: false, mayRetry: true)
        _ = send(&pipeline, [unit("a", "A", ["B", "C"])])
        for output in ["", "a", "", "b", "", "c"] { _ = act(try pipeline.receive(.success(output))) }
        for action in try pipeline.synced() { _ = act(action) }
        #expect(told["a"] == [.done(["a", "b", "c"])])
        _ = send(&pipeline, [unit("b", "D", ["E", "F"])])
        for event: Pipeline<String>.Event in [
            .success(""), .success("d"), .success(""), .failure(failure), .skipped, .skipped,
        ] { _ = act(try pipeline.receive(event)) }
        for action in try pipeline.synced() { _ = act(action) }
        #expect(told["b"] == [.failed("22012")])
    }

    @Test("a statement whose prepared form is gone is sent again once, and prepared anew later")
    func stale() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        let sql: SQL = "SELECT 1"
        _ = send(&pipeline, [unit("a", sql)])
        _ = act(try pipeline.receive(.success("")))
        _ = act(try pipeline.receive(.success("one")))
        _ = try pipeline.synced()
        _ = send(&pipeline, [unit("b", sql)])
        _ = act(try pipeline.receive(.failure(PostgresError(sqlState: "26000"))))
        let again = try pipeline.synced().compactMap { act($0) }
        #expect(again.count == 1 && told["b"] == [])
        #expect(send(&pipeline, again) == ["execute -", "sync", "deallocate m1", "sync"])
        _ = act(try pipeline.receive(.failure(PostgresError(sqlState: "26000"))))
        for action in try pipeline.synced() { _ = act(action) }
        #expect(told["b"] == [.failed("26000")])
    }

    @Test("when the connection is lost, reads go again once and writes are of unknown outcome")
    func lost() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        _ = send(&pipeline, [unit("read"), unit("write", "INSERT", whenLost: .outcomeUnknown)])
        _ = send(&pipeline, [unit("part", "UPDATE", whenLost: .connectionLost)])
        let again = pipeline.lost().compactMap { act($0) }
        #expect(again.count == 1 && told["read"] == [])
        #expect(told["write"] == [.failed("outcomeUnknown")])
        #expect(told["part"] == [.failed("connectionLost")])
        _ = send(&pipeline, again)
        #expect(pipeline.lost().compactMap { act($0) }.isEmpty)
        #expect(told["read"] == [.failed("connectionLost")])
        #expect(pipeline.isIdle)
    }

    @Test("an answer to nothing is refused")
    func broken() throws {
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true)
        #expect(throws: Pipeline<String>.Broken.self) { try pipeline.receive(.success("")) }
        #expect(throws: Pipeline<String>.Broken.self) { try pipeline.synced() }
        _ = send(&pipeline, [unit("a")])
        #expect(throws: Pipeline<String>.Broken.self) { try pipeline.synced() }
    }

    @Test("the statement used longest ago is dropped, in a group of its own, and not within a transaction")
    func evicts() {
        let cache = StatementCache(capacity: 2)
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true, statements: cache)
        let (a, b, c): (SQL, SQL, SQL) = ("SELECT 'a'", "SELECT 'b'", "SELECT 'c'")
        #expect(send(&pipeline, [unit("1", a), unit("2", b), unit("3", a)]).count == 6)
        #expect(
            send(&pipeline, [unit("4", c)], mayDeallocate: false) == ["prepare m3", "execute m3", "sync"])
        #expect(pipeline.preparedCount == 2)
        #expect(send(&pipeline, [unit("5", c)]) == ["execute -", "sync", "deallocate m2", "sync"])
    }

    @Test("what is not to be prepared is planned each time, and drives nothing out")
    func unprepared() {
        let cache = StatementCache(capacity: 1)
        var pipeline = Pipeline<String>(answersEarly: true, mayRetry: true, statements: cache)
        let (kept, once): (SQL, SQL) = ("SELECT 'kept'", "SELECT 'once'")
        #expect(
            send(&pipeline, [unit("1", kept), unit("2", once.unprepared), unit("3", kept)])
                == ["prepare m1", "execute m1", "execute -", "execute m1", "sync"])
        #expect(pipeline.preparedCount == 1)
        #expect(send(&pipeline, [unit("4", once)]).first == "prepare m2")
    }

    @Test("pauses between attempts double up to their limit, with a random half")
    func backoff() {
        var backoff = Backoff(firstMilliseconds: 100, maxMilliseconds: 450)
        #expect([0, 0, 0, 0, 0].map { backoff.next(random: $0) } == [50, 100, 200, 225, 225])
        backoff.reset()
        #expect(backoff.next(random: 0.999) == 99)
        for _ in 0..<100 { #expect(backoff.next(random: 0.5) <= 450) }
    }

    @Test("a queue numbers its elements, and keeps their order when some are taken out")
    func queue() {
        var queue = Queue<Int>()
        for value in 0..<5000 { #expect(queue.append(value) == value) }
        for value in 0..<4000 { #expect(queue.popFirst() == value) }
        #expect(queue.update(4500) { $0 += 1 } != nil)
        #expect(queue.update(3999) { $0 += 1 } == nil)
        #expect(queue.update(5000) { $0 += 1 } == nil)
        queue.prepend(-1)
        #expect(queue.first == -1 && queue.count == 1001)
        #expect(queue.remove { $0 % 2 == 0 }.count == 499)
        #expect(queue.popFirst() == -1)
        #expect(queue.popFirst() == 4001)
    }
}

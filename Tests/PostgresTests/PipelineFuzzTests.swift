import Seeded
import Synchronization
import Testing

@testable import Postgres

/// A server that answers a pipeline as PostgreSQL does: after a failure it skips to the Sync.
private struct ModelServer {
    private var inbox: [Pipeline<String>.Send] = []
    private var prepared: Set<String> = []
    private var hasFailed = false

    /// Statements fail by their own nature, so that it is known who must be told.
    static let bad: SQL = "SELECT 1/0"
    static let unpreparable: SQL = "SELEKT"

    mutating func take(_ send: Pipeline<String>.Send) { inbox.append(send) }
    var isEmpty: Bool { inbox.isEmpty }
    mutating func restart() { self = ModelServer() }
    /// As DISCARD ALL by somebody behind our back, or a pooler that gives another server.
    mutating func forget() { prepared = [] }

    /// The answer to the next message. Nil stands for that to a Sync.
    mutating func answer() -> Pipeline<String>.Event? {
        let next = inbox.removeFirst()
        if case .sync = next {
            hasFailed = false
            return nil
        }
        if hasFailed { return .skipped }
        let failure: String?
        switch next {
        case .prepare(let name, let sql):
            if sql.text == Self.unpreparable.text {
                failure = "42601"
            } else {
                failure = prepared.insert(name).inserted ? nil : "42P05"
            }
        case .execute(let sql, let name):
            if let name, !prepared.contains(name) {
                failure = "26000"
            } else {
                failure =
                    sql.text == Self.bad.text ? "22012" : sql.text == Self.unpreparable.text ? "42601" : nil
            }
            if failure == nil { return .success("\(sql.text) \(sql.binds)") }
        case .deallocate(let name): failure = prepared.remove(name) == nil ? "26000" : nil
        case .sync: failure = nil
        }
        guard let failure else { return .success("") }
        hasFailed = true
        return .failure(PostgresError(sqlState: failure))
    }
}

@Suite("A pipeline under chance")
struct PipelineFuzzTests {
    private final class Ledger: Sendable {
        private let told = Mutex<[Int: [Told]]>([:])
        func tell(_ number: Int, _ outcome: Outcome<String>) {
            let answer = Told(outcome)
            told.withLock { $0[number, default: []].append(answer) }
        }
        var all: [Int: [Told]] { told.withLock { $0 } }
    }

    private struct Expectation {
        let first: SQL
        let rest: [SQL]
    }

    /// One run: units of good, bad and unpreparable statements, sent in groups while answers trickle in, statements
    /// evicted and forgotten, connections lost. Every caller must be told once, and told what its own statements
    /// deserve.
    @Test("every caller is told exactly once, and only of its own mistakes", arguments: 0..<200)
    func run(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let shares = Bool.random(using: &random)
        let loses = Int.random(in: 0..<4, using: &random) == 0
        let forgets = Int.random(in: 0..<4, using: &random) == 0
        let cache = StatementCache(capacity: Int.random(in: 0...4, using: &random))
        var pipeline = Pipeline<String>(answersEarly: shares, mayRetry: true, statements: cache)
        var server = ModelServer()
        var waiting: [Postgres.Unit<String>] = []
        let ledger = Ledger()
        var expected: [Int: Expectation] = [:]
        let good: [SQL] = ["SELECT 'a'", "SELECT 'b'", "SELECT 'c'", "SELECT 'd'", "SELECT 'e'", "SELECT 'f'"]

        func act(_ action: Pipeline<String>.Action) {
            switch action {
            case .finish(let unit, let outcome): unit.finish(outcome)
            case .retry(let unit): waiting.insert(unit, at: 0)
            }
        }
        func pick() -> SQL {
            switch Int.random(in: 0..<12, using: &random) {
            case 0: ModelServer.bad
            case 1: ModelServer.unpreparable
            default: good.randomElement(using: &random)!
            }
        }
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3 where step < 300:
                let rest = shares ? [] : (0..<Int.random(in: 0..<3, using: &random)).map { _ in pick() }
                let first = pick()
                let number = expected.count
                expected[number] = Expectation(first: first, rest: rest)
                waiting.append(
                    Postgres.Unit(first, rest: rest, whenLost: shares ? .again : .outcomeUnknown) {
                        ledger.tell(number, $0)
                    })
            case 3..<6 where !waiting.isEmpty:
                let count = shares && !waiting[0].isRetry ? Int.random(in: 1...4, using: &random) : 1
                let group = waiting.prefix(count).prefix { !$0.isRetry || count == 1 }
                waiting.removeFirst(group.count)
                for unit in group { pipeline.add(unit) { server.take($0) } }
                pipeline.sync { server.take($0) }
            case 6 where loses && Int.random(in: 0..<8, using: &random) == 0:
                for action in pipeline.lost().reversed() { act(action) }
                server.restart()
            case 7 where forgets && Int.random(in: 0..<8, using: &random) == 0:
                server.forget()
            default:
                if !server.isEmpty { try answer(&server, &pipeline, act) }
            }
        }
        // No more chance: what is left is sent and answered.
        while !waiting.isEmpty || !server.isEmpty {
            while !server.isEmpty { try answer(&server, &pipeline, act) }
            if !waiting.isEmpty {
                pipeline.add(waiting.removeFirst()) { server.take($0) }
                pipeline.sync { server.take($0) }
            }
        }
        #expect(pipeline.isIdle && pipeline.unitsInFlight == 0)
        let told = ledger.all
        for (number, unit) in expected {
            check(told[number] ?? [], unit, mayBeLost: loses, "seed \(seed), unit \(number)")
        }
    }

    private func answer(
        _ server: inout ModelServer, _ pipeline: inout Pipeline<String>, _ act: (Pipeline<String>.Action) -> Void
    ) throws {
        guard let event = server.answer() else {
            for action in try pipeline.synced() { act(action) }
            return
        }
        if let action = try pipeline.receive(event) { act(action) }
    }

    private func check(_ told: [Told], _ unit: Expectation, mayBeLost: Bool, _ comment: Comment) {
        #expect(told.count == 1, comment)
        let all = [unit.first] + unit.rest
        let mistake = all.lazy.compactMap { sql -> String? in
            sql.text == ModelServer.bad.text ? "22012" : sql.text == ModelServer.unpreparable.text ? "42601" : nil
        }.first
        let deserved: Told = mistake.map { .failed($0) } ?? .done(all.map { "\($0.text) \($0.binds)" })
        let lost: [Told] = mayBeLost ? [.failed("outcomeUnknown"), .failed("connectionLost")] : []
        #expect(told.first == deserved || lost.contains(told.first ?? .done([])), comment)
    }
}

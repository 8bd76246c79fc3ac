import Core
import CorePostgres
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import OperatorApp

/// A queue that shrinks by one at every look.
private final class ShrinkingQueue: WorkQueueOperations {
    private let left: Mutex<Int64>
    private let held: [WorkPause]
    private let asked = Mutex<[String]>([])

    init(left: Int64, held: [WorkPause] = []) {
        self.left = Mutex(left)
        self.held = held
    }

    func depth() async throws -> [WorkDepth] {
        let now = left.withLock { left in
            defer { left -= 1 }
            return left
        }
        return [
            WorkDepth(
                kind: "prune", ready: max(0, now - 1), leased: min(now, 1), waiting: 0, dead: 4, oldestSeconds: 9),
            WorkDepth(kind: "send_mail", ready: 5, leased: 5, waiting: 5, dead: 0, oldestSeconds: 0),
        ].filter { $0.kind != "prune" || now > 0 }
    }
    func dead(kind: WorkItem.Kind?, limit: Int, before: Date?) async throws -> [DeadWorkItem] { [] }
    func retry(_ ids: [WorkItem.ID]) async throws -> Int { 0 }
    func retryAll(kind: WorkItem.Kind) async throws -> Int { 0 }
    func cancel(_ id: WorkItem.ID) async throws -> Bool { false }
    func items(_ filter: WorkFilter, after: WorkItem.ID?, limit: Int) async throws -> [QueuedItem] { [] }
    func items(_ ids: [WorkItem.ID]) async throws -> [QueuedItem] { [] }
    func pause(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double?) async throws {}
    func resume(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder) async throws -> [String] { [] }
    func pauses() async throws -> [WorkPause] { held }
    func hold(_ kinds: [WorkItem.Kind], holder: WorkPause.Holder, seconds: Double) async throws -> WorkHold? { nil }
    func renew(_ hold: WorkHold, seconds: Double) async throws -> Bool { false }
    func release(_ hold: WorkHold) async throws -> Bool { false }
}

@Suite("martlet queue")
struct QueueCommandTests {
    private func drain(
        _ queue: ShrinkingQueue, onlyRunning: Bool = false, seconds: Double = 100
    ) async throws -> (status: Int32, said: Transcript) {
        let transcript = Transcript()
        let clock = Mutex(Date(timeIntervalSince1970: 0))
        var context = Operator(
            environment: [:], terminal: transcript.terminal(isWatched: true), now: { clock.withLock { $0 } },
            connect: { _ in throw AppError.unavailable })
        context.sleep = { seconds in clock.withLock { $0 += seconds } }
        let view = QueueView(queue: queue, context: context, asJSON: false)
        return (try await view.drain([.prune], onlyRunning: onlyRunning, seconds: seconds), transcript)
    }

    @Test("drain waits until the kind is empty, whatever is left of others, and shows how far it is")
    func drains() async throws {
        let done = try await drain(ShrinkingQueue(left: 4))
        #expect(done.status == 0 && done.said.output == "Nothing of it is left.\n")
        #expect(done.said.complaints.contains("4 items left, 1 of them running"))
    }

    @Test("drain gives up in time with 75, and does not wait for what is paused")
    func drainsInVain() async throws {
        let late = try await drain(ShrinkingQueue(left: 100), seconds: 3)
        #expect(late.status == 75 && late.said.complaints.contains("items are left after 3 s"))
        let pause = WorkPause(kind: "prune", holder: "operator", since: .now, until: nil)
        await #expect(throws: AppError.self) { try await drain(ShrinkingQueue(left: 4, held: [pause])) }
        // After a pause one waits for what still runs.
        #expect(try await drain(ShrinkingQueue(left: 4, held: [pause]), onlyRunning: true).status == 0)
    }

    @Test("items are listed by state and kind in pages, and shown whatever their state")
    func lists() async throws {
        try await withTestDatabase { db in
            for _ in 0..<3 { try await db.write.enqueue(.prune, payload: #"{"a": 1}"#) }
            try await db.write.enqueue(.sendMail, payload: "{}", runAt: Date().addingTimeInterval(900))
            let queue = PostgresWorkQueue(db: db)
            _ = try await queue.claim(worker: "w", kinds: [.prune], limit: 1, after: WorkPosition())
            func ids(_ words: String...) async -> [Int?] {
                let transcript = Transcript()
                let command = Operator(
                    environment: ["MARTLET_DATABASE_URL": "x"], terminal: transcript.terminal(),
                    connect: { _ in TestBackend(database: db) })
                #expect(await command.run(["queue"] + words + ["--json"]) == 0)
                return transcript.json?.items.map { $0["id"]?.number } ?? []
            }
            #expect(await ids("ls", "--state", "running") == [1])
            #expect(await ids("ls", "--state", "ready") == [2, 3])
            #expect(await ids("ls", "--state", "ready", "--limit", "1") == [2])
            #expect(await ids("ls", "--state", "ready", "--after", "2") == [3])
            #expect(await ids("ls", "--state", "waiting", "--kind", "send_mail") == [4])
            #expect(await ids("ls", "--state", "waiting", "--kind", "prune") == [])
            #expect(await ids("show", "1", "4") == [1, 4])
            let page = await martlet("queue", "ls", "--state", "ready", "--limit", "1", on: db)
            #expect(page.said.output.hasPrefix("ID  KIND   ATTEMPTS  TIME"))
            #expect(page.said.complaints.contains("--after 2"))
            let one = await martlet("queue", "show", "1", on: db)
            #expect(one.said.output.contains("prune, running since") && one.said.output.contains("the last by w"))
        }
    }

    @Test("pause and resume say what they did; what makes no sense is refused with a reason")
    func pauses() async throws {
        try await withTestDatabase { db in
            try await db.write.enqueue(.prune, payload: "{}")
            let paused = await martlet("queue", "pause", "--kind", "prune", on: db)
            #expect(paused.status == 0 && paused.said.output.hasPrefix("prune is paused"))
            let shown = await martlet("queue", on: db).said.output
            #expect(shown.contains("paused\n") && shown.contains("prune is paused by the operator since"))
            #expect(await martlet("queue", "--json", on: db).said.json?.items.first?["paused"] == .bool(true))
            #expect(await martlet("queue", "drain", "--kind", "prune", on: db).status == 1)
            #expect(await martlet("queue", "resume", "--kind", "prune", on: db).said.output == "prune goes on.\n")
            #expect(
                await martlet("queue", "resume", "--kind", "prune", on: db).said.complaints.contains("was not paused"))
        }
        for words in [
            ["pause"], ["pause", "1", "--kind", "prune"], ["drain"], ["dead", "--state", "ready"],
            ["ls", "--limit", "5"],
            ["ls", "--state", "asleep"], ["pause", "--kind", "prune", "--wait", "5"], ["ls", "--after", "x"], ["dance"],
        ] {
            let answer = await martlet(["queue"] + words, environment: ["MARTLET_DATABASE_URL": "x"])
            #expect(answer.status == 64, "\(words)")
        }
    }

    @Test("a table is aligned, and what came from outside stays in its cell")
    func table() {
        var table = Table([("name", .left), ("n", .right)])
        #expect(table.lines.isEmpty)
        table.add("a\nb\u{1B}[31m\tc", "1")
        table.add(String(repeating: "x", count: 100), "10000")
        let width = Table.cellLengthMax
        #expect(table.lines[1] == "a b[31m c" + String(repeating: " ", count: width - 9) + "      1")
        #expect(table.lines[2] == String(repeating: "x", count: width - 1) + "…  10000")
        #expect(table.lines[0].hasPrefix("NAME  ") && table.lines[0].hasSuffix("N"))
    }
}

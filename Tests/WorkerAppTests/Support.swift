import Core
import CorePostgres
import EventLoop
import Foundation
import Postgres
import ServiceKit
import Synchronization
import TestSupport
import Testing
import Tracing

@testable import WorkerApp

/// A handler made of a closure.
struct Handler: WorkHandler {
    let kind: WorkItem.Kind
    let body: @Sendable (WorkItem) async throws -> Void

    init(_ kind: WorkItem.Kind, _ body: @escaping @Sendable (WorkItem) async throws -> Void) {
        self.kind = kind
        self.body = body
    }

    func run(_ item: WorkItem) async throws { try await body(item) }
}

/// Holds whoever comes until it is opened, and can be waited for.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var inside: [Int: CheckedContinuation<Void, Never>] = [:]
        var next = 0
        var cancelled = 0
    }

    private let state = Mutex(State())

    var waiting: Int { state.withLock { $0.inside.count } }
    var cancelled: Int { state.withLock { $0.cancelled } }

    /// - Throws: `CancellationError` when its task is cancelled.
    func pass() async throws {
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state in
                    if state.isOpen || Task.isCancelled { return true }
                    state.inside[id] = continuation
                    return false
                }
                if now { continuation.resume() }
            }
        } onCancel: {
            let held = state.withLock { state in
                state.cancelled += 1
                return state.inside.removeValue(forKey: id)
            }
            held?.resume()
        }
        try Task.checkCancellation()
    }

    func open() {
        let held = state.withLock { state in
            defer {
                state.isOpen = true
                state.inside = [:]
            }
            return state.inside.values
        }
        for continuation in held { continuation.resume() }
    }
}

/// A loop for the workers of all tests.
let loops = LoopGroup(count: 1, name: "worker-test")

func lane(_ kinds: [WorkItem.Kind] = WorkItem.Kind.allCases, running: Int = 100, batch: Int = 100) -> WorkLane {
    WorkLane(name: "test", kinds: kinds, runningMax: running, batchMax: batch)
}

func worker(
    _ db: Database, _ handlers: [any WorkHandler], lanes: [WorkLane] = [lane()], schedules: [WorkSchedule] = [],
    clock: any ServiceClock = SystemClock(), backOff: BackOff = BackOff(firstSeconds: 0, secondsMax: 0),
    metrics: Metrics = Metrics(), tracer: Tracer? = nil
) -> Worker {
    var settings = Worker.Settings(name: "w", lanes: lanes, schedules: schedules)
    settings.backOff = backOff
    settings.random = { 0.5 }
    return Worker(
        queue: PostgresWorkQueue(db: db, notify: false), handlers: handlers, settings: settings, loop: loops.here(),
        clock: clock, log: .silent, metrics: metrics, tracer: tracer)
}

func items(_ db: Database) async throws -> Int {
    try await db.write.first("SELECT count(*) FROM work_items") { try $0.get(0, as: Int.self) } ?? 0
}

func number(_ db: Database, _ sql: SQL) async throws -> Int {
    try await db.write.first(sql) { try $0.get(0, as: Int.self) } ?? -1
}

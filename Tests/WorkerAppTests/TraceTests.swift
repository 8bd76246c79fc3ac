import Core
import CorePostgres
import Synchronization
import TestSupport
import Testing
import Tracing

@testable import WorkerApp

@Suite("Traced work")
struct WorkTraceTests {
    private struct Trouble: Error {}

    @Test("an item is a span of the trace that caused it, at each attempt, and what it causes belongs there too")
    func items() async throws {
        try await withTestDatabase { db in
            let tracer = Tracer(sampler: Sampler(.parentOrAlways, share: 1), queueMax: 100, batchMax: 100)
            let queue = PostgresWorkQueue(db: db, notify: false)
            let seen = Mutex<[String?]>([])
            let worker = worker(
                db,
                [
                    Handler(.prune) { item in
                        seen.withLock { $0.append(TraceContext.current?.trace.description) }
                        if item.attempt == 1 { throw Trouble() }
                        try await queue.enqueue(.sendMail, payload: "{}", uniqueKey: nil, runAt: nil)
                    },
                    Handler(.sendMail) { _ in throw WorkFailure.permanent("ada@example.org has no mailbox") },
                ], tracer: tracer)
            let cause = tracer.begin("cause", .server, parent: nil)
            try await TraceContext.$current.withValue(cause.context) {
                try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            await worker.start()
            try await eventually { try await WorkerAppTests.items(db) == 0 }
            await worker.stop(graceSeconds: 5)

            let spans = tracer.takeBatch()
            #expect(spans.map(\.name) == ["process prune", "process prune", "process send_mail"])
            #expect(spans.allSatisfy { $0.context.trace == cause.context.trace && $0.kind == .consumer })
            #expect(spans.map(\.parent) == [cause.context.span, cause.context.span, spans[1].context.span])
            #expect(spans.map(\.isError) == [true, false, true])
            #expect(spans[0].attributes.last == SpanAttribute("error.type", "Trouble"))
            #expect(spans[2].attributes.last == SpanAttribute("error.type", "permanent"))
            #expect(spans[1].attributes.contains(SpanAttribute("martlet.work.attempt", 2)))
            #expect(seen.withLock { $0 } == [String?](repeating: cause.context.trace.description, count: 2))
            #expect(!"\(spans)".contains("@"))
        }
    }

    @Test("an item that nobody traced begins a trace; one whose cause is not recorded is not")
    func roots() async throws {
        try await withTestDatabase { db in
            let tracer = Tracer(sampler: Sampler(.parentOrAlways, share: 1), queueMax: 100, batchMax: 100)
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(db, [Handler(.prune) { _ in }, Handler(.sendMail) { _ in }], tracer: tracer)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            let off = TraceContext(trace: TraceID(high: 1, low: 2), span: 3, isSampled: false)
            try await TraceContext.$current.withValue(off) {
                try await queue.enqueue(.sendMail, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            await worker.start()
            try await eventually { try await WorkerAppTests.items(db) == 0 }
            await worker.stop(graceSeconds: 5)
            let spans = tracer.takeBatch()
            #expect(spans.map(\.name) == ["process prune"] && spans.first?.parent == nil)
        }
    }
}

import Core
import CorePostgres
import Foundation
import MediaTools
import Postgres
import ServiceKit
import TestSupport
import Testing
import Transfer

@testable import WorkerApp

@Suite("What a worker counts")
struct WorkerMetricsTests {
    private struct Trouble: Error {}

    private static func lines(_ metrics: Metrics) -> Set<String> {
        Set(metrics.text().split(separator: "\n").map(String.init))
    }

    @Test("attempts, how they ended and how long they took, by kind")
    func items() async throws {
        try await withTestDatabase { db in
            let metrics = Metrics()
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = worker(
                db,
                [
                    Handler(.prune) { if $0.attempt == 1 { throw Trouble() } },
                    Handler(.sendMail) { _ in throw WorkFailure.permanent("never") },
                ], metrics: metrics)
            for kind in [WorkItem.Kind.prune, .sendMail] {
                try await queue.enqueue(kind, payload: "{}", uniqueKey: nil, runAt: nil)
            }
            await worker.start()
            try await eventually { try await WorkerAppTests.items(db) == 0 }
            await worker.stop(graceSeconds: 5)
            let lines = Self.lines(metrics)
            #expect(lines.contains(#"martlet_work_attempts_total{kind="prune"} 2"#))
            for outcome in ["done", "retried"] {
                #expect(lines.contains(#"martlet_work_items_total{kind="prune",outcome="\#(outcome)"} 1"#))
            }
            #expect(lines.contains(#"martlet_work_items_total{kind="prune",outcome="dead"} 0"#))
            #expect(lines.contains(#"martlet_work_items_total{kind="send_mail",outcome="dead"} 1"#))
            #expect(lines.contains(#"martlet_work_item_seconds_count{kind="prune"} 2"#))
        }
    }

    @Test("the backlog is asked for once in a while; where the database is silent the rest is told without it")
    func backlog() async throws {
        try await withTestDatabase { db in
            let queue = PostgresWorkQueue(db: db, notify: false)
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            let (clock, metrics) = (ManualClock(), Metrics())
            let backlog = BacklogMetrics(queue: queue, clock: clock, log: .silent)
            metrics.collect { await backlog.families() }
            let ready = #"martlet_work_items{kind="prune",state="ready"} "#
            #expect(await metrics.page().contains(ready + "1\n"))
            #expect(await metrics.page().contains(#"martlet_work_items{kind="send_mail",state="dead"} 0"# + "\n"))
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            #expect(await metrics.page().contains(ready + "1\n"))
            clock.advance(seconds: BacklogMetrics.keptSeconds)
            #expect(await metrics.page().contains(ready + "2\n"))

            clock.advance(seconds: BacklogMetrics.keptSeconds)
            await db.close()
            #expect(await metrics.page() == "")
        }
    }

    @Test("a database that is silent keeps nobody waiting for the rest; one question is on its way at a time")
    func silent() async throws {
        try await withTestDatabase { db, test in
            let queue = PostgresWorkQueue(db: db, notify: false)
            let (clock, metrics) = (ManualClock(), Metrics())
            let backlog = BacklogMetrics(queue: queue, clock: clock, log: .silent)
            metrics.collect { await backlog.families() }
            try await db.transaction { transaction in
                try await transaction.execute("LOCK TABLE work_items IN ACCESS EXCLUSIVE MODE")
                let page = Task { await metrics.page() }
                try await eventually { clock.sleepers == 1 }
                let waiting = """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'
                    """
                try await eventually { try await test.run(waiting)[0][0] == "1" }
                clock.advance(seconds: BacklogMetrics.waitSecondsMax)
                // The lock is still there, so the question has no answer yet.
                #expect(await page.value == "")
                #expect(await metrics.page() == "")
                #expect(try await test.run(waiting)[0][0] == "1")
            }
            try await eventually { await metrics.page().contains("martlet_work_items") }
        }
    }

    @Test("what a child made of a file, and what a mail server said, is counted and passed on as it was")
    func wrapped() async throws {
        let metrics = Metrics()
        let request = MediaRequest(kind: .cv, path: "/x", outputDirectory: "/y")
        let answers: [Result<MediaAnswer, MediaPoolError>] = [
            .success(.rejected(.crashed)), .success(.failed("disk")), .failure(.tooManyWaiting),
        ]
        for answer in answers {
            let process = Measured.media(metrics, clock: SystemClock()) { _ in try answer.get() }
            switch answer {
            case .success(let answer): #expect(try await process(request) == answer)
            case .failure(let error): await #expect(throws: error) { try await process(request) }
            }
        }
        let sends: [SMTPError?] = [
            nil, .refused(code: 554, "no"), .temporary(code: 421, "later"), .recipientDeferred(code: 452, "full"),
        ]
        for error in sends {
            let send = Measured.mail(metrics, kind: "alert", clock: SystemClock()) { _, _, _ in
                if let error { throw error }
            }
            if let error {
                await #expect(throws: error) { try await send("a", "b", []) }
            } else {
                try await send("a", "b", [])
            }
        }
        let lines = Self.lines(metrics)
        for outcome in ["crashed", "failed", "error"] {
            #expect(lines.contains(#"martlet_media_runs_total{kind="cv",outcome="\#(outcome)"} 1"#))
        }
        #expect(lines.contains(#"martlet_media_run_seconds_count{kind="cv"} 3"#))
        for (outcome, count) in [("sent", 1), ("refused", 1), ("later", 2)] {
            #expect(lines.contains(#"martlet_mails_total{kind="alert",outcome="\#(outcome)"} \#(count)"#))
        }
    }
}

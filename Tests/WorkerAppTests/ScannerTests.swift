import Clamd
import Core
import CorePostgres
import EventLoop
import Foundation
import Postgres
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import MediaTools
@testable import WorkerApp

/// A clamd that answers as it is told, and its scanner.
private final class Script: Sendable {
    let verdict = Mutex<Result<ClamdVerdict, ClamdError>>(.success(.clean))
    let probe = Mutex<ClamdError?>(nil)
    let scans = Notes()
    let probes = Notes()
    let health = Health()
    let metrics = Metrics()
    let clock = ManualClock()

    func scanner() -> UploadScanner {
        UploadScanner(
            scan: { [self] path in
                scans.add(path)
                return try verdict.withLock { $0 }.get()
            },
            probe: { [self] in
                probes.add("")
                if let error = probe.withLock({ $0 }) { throw error }
            },
            health: health, metrics: metrics, clock: clock, log: .silent)
    }

    var remarks: [String] { health.remarks().map { "\($0.name): \($0.problem)" } }
}

@Suite struct ScannerTests {
    private let uploads = UploadTests()

    private func handler(_ uploaded: UploadTests.Uploaded, _ scanner: UploadScanner, _ opened: Notes) -> ProcessUpload {
        ProcessUpload(
            media: uploaded.media, store: uploaded.store, scratch: uploaded.place.root + "/tmp", offload: uploads.pool,
            clock: SystemClock(), log: .silent, scanner: scanner
        ) { request in
            opened.add(request.path)
            return .document(
                MediaDocument(
                    type: .pdf, pages: 1, textOutcome: .none, text: "", pageOffsets: [], links: [], resume: nil))
        }
    }

    @Test("a clean file is opened, after it was scanned and at the same place")
    func clean() async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            try await handler(uploaded, script.scanner(), opened).run(uploads.item(uploaded.id))
            #expect(try await uploaded.media.find(uploaded.id).state == .ready)
            #expect(script.scans.all == opened.all && opened.all.count == 1)
            #expect(try await number(db, "SELECT count(*) FROM audit_log") == 0)
        }
    }

    @Test("an infected file is never opened: it is rejected, deleted, and audited with the signature's name")
    func infected() async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            script.verdict.withLock { $0 = .success(.infected("Eicar")) }
            let handler = handler(uploaded, script.scanner(), opened)
            try await handler.run(uploads.item(uploaded.id))
            let media = try await uploaded.media.find(uploaded.id)
            #expect(media.state == .rejected && media.rejection == "infected")
            #expect(media.rejectionMessage == Media.infected.message)
            #expect(opened.all.isEmpty)
            let deletions = try await number(
                db,
                "SELECT count(*) FROM work_items WHERE kind = 'delete_files' AND payload -> 'keys' ->> 0 LIKE 'up/%'")
            #expect(deletions == 1)
            let audit = try await db.write.first(
                """
                SELECT concat_ws(' ', actor_id = (SELECT owner_id FROM media), action, subject, subject_id,
                                 detail ->> 'signature', detail ->> 'kind', detail ->> 'bytes', detail ->> 'sha256')
                FROM audit_log
                """
            ) { try $0.get(0, as: String.self) }
            let digest = String(repeating: "01", count: 32)
            #expect(audit == "t media.infected media \(uploaded.id) Eicar cv 3 \(digest)")
            // Run again, nothing is added.
            try await handler.run(uploads.item(uploaded.id, attempt: 2))
            #expect(try await number(db, "SELECT count(*) FROM audit_log") == 1)
        }
    }

    @Test("while clamd is away uploads wait untried; a probe finds it back")
    func away() async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            let gone = ClamdError.unreachable("Connection refused")
            script.verdict.withLock { $0 = .failure(gone) }
            script.probe.withLock { $0 = gone }
            let scanner = script.scanner()
            let handler = handler(uploaded, scanner, opened)
            let waiting = WorkFailure.waiting("\(gone)")
            await #expect(throws: waiting) { try await handler.run(uploads.item(uploaded.id)) }
            #expect(script.remarks == ["scanner: \(gone)"] && script.health.problems().isEmpty)
            #expect(script.metrics.text().contains("martlet_scanner_up 0"))
            await #expect(throws: waiting) { try await handler.run(uploads.item(uploaded.id)) }
            #expect(script.scans.all.count == 1)
            #expect(try await uploaded.media.find(uploaded.id).state == .pending && opened.all.isEmpty)

            scanner.start()
            try await eventually { script.probes.all.count == 2 && script.clock.sleepers == 1 }
            script.verdict.withLock { $0 = .success(.clean) }
            script.probe.withLock { $0 = nil }
            script.clock.advance(seconds: Watch.probeSeconds)
            try await eventually { script.remarks.isEmpty }
            #expect(script.metrics.text().contains("martlet_scanner_up 1"))
            try await handler.run(uploads.item(uploaded.id))
            #expect(try await uploaded.media.find(uploaded.id).state == .ready)
            scanner.stop()
        }
    }

    @Test(
        "a file that clamd has no verdict on, though it works, is tried like other work; others do not wait for it",
        arguments: [ClamdError.timedOut, .closed, .garbage("x"), .failed("Broken ERROR")])
    func oneFile(error: ClamdError) async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            script.verdict.withLock { $0 = .failure(error) }
            let scanner = script.scanner()
            await #expect(throws: WorkFailure.later("\(error)")) {
                try await handler(uploaded, scanner, opened).run(uploads.item(uploaded.id, attempt: 9))
            }
            #expect(try await uploaded.media.find(uploaded.id).state == .pending)
            #expect(try await uploaded.store.size(uploaded.key) == 3)
            #expect(script.probes.all.count == 1 && script.remarks.isEmpty)
            try scanner.checkReady()
            #expect(script.metrics.text().contains("martlet_scans_total{outcome=\"failed\"} 1"))
        }
    }

    @Test("a file longer than clamd takes is told until one as long has been taken")
    func tooLong() async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            script.verdict.withLock { $0 = .failure(.streamTooLong) }
            let scanner = script.scanner()
            let handler = handler(uploaded, scanner, opened)
            await #expect(throws: WorkFailure.self) { try await handler.run(uploads.item(uploaded.id)) }
            #expect(script.remarks.first?.contains("no file of 3 bytes") == true && script.remarks.count == 1)
            // Others go on.
            try scanner.checkReady()
            script.verdict.withLock { $0 = .success(.clean) }
            try await handler.run(uploads.item(uploaded.id))
            #expect(script.remarks.isEmpty)
        }
    }

    @Test("a file of ours that cannot be read is no trouble of clamd's, and an attempt")
    func unreadable() async throws {
        try await withTestDatabase { db in
            let uploaded = try await uploads.upload(db, .cv, [1, 2, 3])
            let (script, opened) = (Script(), Notes())
            script.verdict.withLock { $0 = .failure(.unreadable("gone")) }
            await #expect(throws: ClamdError.unreadable("gone")) {
                try await handler(uploaded, script.scanner(), opened).run(uploads.item(uploaded.id))
            }
            #expect(script.probes.all.isEmpty && script.remarks.isEmpty)
        }
    }

    @Test("work that waits is tried more often than there are attempts, and is done in the end")
    func patience() async throws {
        try await withTestDatabase { db in
            let tries = Mutex(0)
            let handler = Handler(.prune) { _ in
                let count = tries.withLock { count in
                    count += 1
                    return count
                }
                if count <= WorkItem.attemptsMax * 2 { throw WorkFailure.waiting("away") }
            }
            var settings = Worker.Settings(name: "w", lanes: [lane()])
            settings.waitingBackOff = BackOff(firstSeconds: 0, secondsMax: 0)
            let queue = PostgresWorkQueue(db: db, notify: false)
            let worker = Worker(
                queue: queue, handlers: [handler], settings: settings, loop: loops.here(), clock: SystemClock(),
                log: .silent, metrics: Metrics())
            try await queue.enqueue(.prune, payload: "{}", uniqueKey: nil, runAt: nil)
            await worker.start()
            try await eventually { try await items(db) == 0 }
            await worker.stop(graceSeconds: 3)
            #expect(tries.withLock { $0 } == WorkItem.attemptsMax * 2 + 1)
            #expect(try await number(db, "SELECT count(*) FROM work_dead") == 0)
        }
    }

    @Test("the pauses of what waits grow to two minutes and no longer")
    func pauses() {
        let pauses = [1, 2, 3, 7, 1000].map { BackOff.ofWaiting.seconds(after: $0, random: 1) }
        #expect(pauses == [2, 4, 8, 120, 120])
    }
}

import Core
import CorePostgres
import EventLoop
import Foundation
import MediaStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import WorkerApp

/// The real program, killed and stopped.
@Suite struct ProcessTests {
    /// Beside the test bundle.
    static var program: String {
        let tests = ProcessInfo.processInfo.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("martlet-worker").path
    }

    /// A folder for the store, gone afterwards.
    final class Store: Sendable {
        let path = NSTemporaryDirectory() + "martlet-worker-" + String(UInt64.random(in: .min ... .max), radix: 16)
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    func start(
        _ test: TestDatabase, store: Store, sink: SMTPSink, notify: Bool = true,
        onEnd: @escaping @Sendable (Int32) -> Void
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.program)
        process.environment = [
            "MARTLET_DATABASE_URL": test.url, "MARTLET_STORE": store.path,
            "MARTLET_PUBLIC_URL": "http://localhost:8080",
            "MARTLET_SECRET": String(repeating: "s", count: 32), "MARTLET_SMTP_URL": "smtp://127.0.0.1:\(sink.port)",
            "MARTLET_MAIL_FROM": "Martlet <martlet@localhost>", "MARTLET_NOTIFY": notify ? "on" : "off",
            "MARTLET_LOOPS": "1", "MARTLET_LOG_LEVEL": "error",
        ]
        process.terminationHandler = { onEnd($0.terminationStatus) }
        try process.run()
        return process
    }

    @Test("a worker killed while the server takes a mail: the next one sends it again, under the same Message-ID")
    func killed() async throws {
        try await withTestDatabase { db, test in
            let victim = Mutex<pid_t>(0)
            var script = SMTPSink.Script()
            script.data = { index in
                // The server has the mail; the worker never hears so.
                if index == 0 { kill(victim.withLock { $0 }, SIGKILL) }
                return "250 taken"
            }
            let sink = SMTPSink(script)
            let store = Store()
            let ended = Notes()
            let first = try start(test, store: store, sink: sink) { _ in ended.add("killed") }
            victim.withLock { $0 = first.processIdentifier }
            try await MailTests().tell(db)
            #expect(await sink.wait(for: 1))
            try await eventually { ended.all == ["killed"] }
            #expect(try await number(db, "SELECT count(*) FROM mails WHERE state = 'queued'") == 1)

            // As time would.
            try await db.write.execute("UPDATE work_items SET leased_until = now() - interval '1 second'")
            let second = try start(test, store: store, sink: sink) { ended.add("\($0)") }
            #expect(await sink.wait(for: 2))
            try await eventually { try await items(db) == 0 }
            #expect(try await number(db, "SELECT count(*) FROM mails WHERE state = 'sent'") == 1)
            #expect(Set(sink.mails.map { $0.header("Message-ID") }).count == 1 && sink.mails.count == 2)
            second.terminate()
            try await eventually { ended.all == ["killed", "0"] }
        }
    }

    @Test("a worker with NOTIFY off takes an upload through its sandboxed child, and ends when it is told")
    func upload() async throws {
        try await withTestDatabase { db, test in
            let store = Store()
            let ended = Notes()
            let process = try start(test, store: store, sink: SMTPSink(), notify: false) { ended.add("\($0)") }
            let owner = try await PostgresUsers(db: db).create(
                User.Draft(username: "ann", email: "ann@example.org", password: "secret"), passwordHash: "h")
            let pool = OffloadPool(name: "upload", threads: 1, queueMax: 8)
            let folder = try FolderStore(root: store.path, offload: pool)
            let media = PostgresMedia(db: db, notify: false)
            var ids: [Media.ID] = []
            for (number, bytes) in [Self.pdf, Array("\u{7F}ELF no document".utf8)].enumerated() {
                let key = "up/0\(number)/0\(number)"
                let writer = try await folder.create(key)
                try await writer.write(bytes)
                try await writer.commit()
                ids.append(
                    try await media.create(
                        Media.Draft(
                            kind: .cv, name: "cv.pdf", declaredType: "application/pdf", hash: "cv_\(number)",
                            bytes: Int64(bytes.count), sha256: [UInt8](repeating: 1, count: 32), storageKey: key),
                        owner: owner.id
                    ).id)
            }
            try await eventually { try await items(db) == 0 }
            let good = try await media.find(ids[0])
            #expect(good.state == .ready && good.mime == "application/pdf" && good.pageCount == 1)
            let text = try await db.write.first("SELECT text FROM media WHERE id = \(ids[0])") {
                try $0.get(0, as: String?.self)
            }
            #expect(text??.contains("Hello Martlet") == true)
            #expect(try await media.find(ids[1]).state == .rejected)
            #expect(try await folder.size("up/01/01") == nil)
            process.terminate()
            try await eventually { ended.all == ["0"] }
            pool.stop()
        }
    }

    /// One page that says Hello Martlet.
    static let pdf: [UInt8] = {
        let content = "BT /F1 24 Tf 72 700 Td (Hello Martlet) Tj ET"
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
                + "/Resources << /Font << /F1 5 0 R >> >> >>",
            "<< /Length \(content.utf8.count) >>\nstream\n\(content)\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        var file = "%PDF-1.4\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(file.utf8.count)
            file += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = file.utf8.count
        file += "xref\n0 \(objects.count + 1)\n0000000000 65535 f \n"
        for offset in offsets {
            let digits = String(offset)
            file += String(repeating: "0", count: 10 - digits.count) + digits + " 00000 n \n"
        }
        file += "trailer << /Size \(objects.count + 1) /Root 1 0 R >>\nstartxref\n\(start)\n%%EOF\n"
        return Array(file.utf8)
    }()
}

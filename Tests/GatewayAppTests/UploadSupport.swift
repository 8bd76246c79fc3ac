import Core
import CorePostgres
import Foundation
import HTTPServer
import Postgres
import Synchronization
import Testing

@testable import GatewayApp

/// One file of a form.
struct SentFile {
    var name = "cat.png"
    var type = "image/png"
    var bytes = Array("not looked at".utf8)
}

extension MediaResult {
    static let picture = MediaResult.ready(
        mime: "image/png", ext: ".png", width: 600, height: 400, pageCount: nil, text: nil, pageOffsets: [], note: nil,
        variants: [])
    static let document = MediaResult.ready(
        mime: "application/pdf", ext: ".pdf", width: nil, height: nil, pageCount: 1, text: "x", pageOffsets: [0],
        note: nil, variants: [])
    static let broken = MediaResult.rejected(reason: "truncated", message: "The image is damaged or incomplete.")
}

/// A Mutex cannot be captured; a class that holds one can.
private final class Flag: Sendable {
    let isSet = Mutex(false)
}

extension TestGateway {
    var media: PostgresMedia { PostgresMedia(db: db) }

    /// Plays the worker's part and turns the clock while work is done: files become what `outcome` says of their names,
    /// and stay as they are where it says nothing.
    func working<T: Sendable>(
        _ outcome: (String) -> MediaResult?, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let flag = Flag()
        let task = Task {
            defer { flag.isSet.withLock { $0 = true } }
            return try await work()
        }
        while !flag.isSet.withLock({ $0 }) {
            let pending = try await db.write.rows("SELECT id, name FROM media WHERE state = 'pending'") { row in
                (id: try row.get(0, as: Media.ID.self), name: try row.get(1, as: String.self))
            }
            for file in pending {
                if let result = outcome(file.name) { _ = try await media.finish(file.id, result) }
            }
            clock.advance(seconds: UploadSettling.pauseSecondsMax)
        }
        // Tokens are refused when the guardian has not looked for a while.
        try await guardian.refresh()
        return try await task.value
    }

    /// A form as a client of Strapi's sends one.
    func send(
        to target: String = "/api/upload", token: String?, _ files: [SentFile], _ texts: [(String, String)] = []
    ) async throws -> Answer {
        try await call(
            .post, target, token: token, headers: ["Content-Type": "multipart/form-data; boundary=B"],
            body: Self.form(files, texts))
    }

    static func form(_ files: [SentFile], _ texts: [(String, String)]) -> [UInt8] {
        var body: [UInt8] = []
        for (name, value) in texts {
            body += Array("--B\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n".utf8)
        }
        for file in files {
            let head = "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"\(file.name)\"\r\n"
            body += Array("\(head)Content-Type: \(file.type)\r\n\r\n".utf8) + file.bytes + Array("\r\n".utf8)
        }
        return body + Array("--B--\r\n".utf8)
    }

    /// As `send`, with a worker that takes every file for a picture.
    func upload(
        to target: String = "/api/upload", token: String?, _ files: [SentFile] = [SentFile()],
        _ texts: [(String, String)] = [], outcome: (String) -> MediaResult? = { _ in .picture }
    ) async throws -> Answer {
        try await working(outcome) { try await send(to: target, token: token, files, texts) }
    }

    /// Objects that a worker is told to delete.
    func deletions() async throws -> Int {
        try await db.write.first(
            """
            SELECT count(DISTINCT key) FROM work_items, jsonb_array_elements_text(payload -> 'keys') AS key
            WHERE kind = 'delete_files'
            """
        ) { try $0.get(0, as: Int.self) } ?? 0
    }
}

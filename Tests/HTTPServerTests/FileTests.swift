import EventLoop
import Foundation
import Seeded
import Testing

@testable import HTTPServer

@Suite("Files")
struct FileTests {
    private static let conditions = FileConditions(size: 100, etag: "\"t\"", modified: 784_111_777)
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let before = "Sun, 06 Nov 1994 08:49:36 GMT"

    @Test("dates are written and read as RFC 9110 says")
    func dates() {
        #expect(HTTPDate.text(784_111_777) == Self.date)
        #expect(HTTPDate.seconds(Self.date) == 784_111_777)
        #expect(HTTPDate.text(1_709_164_799) == "Wed, 28 Feb 2024 23:59:59 GMT")
        #expect(HTTPDate.seconds("Thu, 29 Feb 2024 00:00:00 GMT") == 1_709_164_800)
        for bad in [
            "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        ] { #expect(HTTPDate.seconds(bad) == nil, "\(bad)") }
    }

    @Test(
        "conditions and ranges are followed where they are understood",
        arguments: [
            ([:], .whole),
            (["If-None-Match": "\"t\""], .notModified), (["If-None-Match": "\"a\", W/\"t\""], .notModified),
            (["If-None-Match": "*"], .notModified), (["If-None-Match": "\"a\""], .whole),
            (["If-None-Match": "\"a\"", "If-Modified-Since": date], .whole),
            (["If-Modified-Since": date], .notModified), (["If-Modified-Since": before], .whole),
            (["If-Modified-Since": "yesterday"], .whole),
            (["If-Match": "\"t\""], .whole), (["If-Match": "*"], .whole), (["If-Match": "\"a\""], .failed),
            (["If-Match": "W/\"t\""], .failed), (["If-Unmodified-Since": date], .whole),
            (["If-Unmodified-Since": before], .failed),
            (["Range": "bytes=0-0"], .part(0..<1)), (["Range": "bytes=10-"], .part(10..<100)),
            (["Range": "bytes=-10"], .part(90..<100)), (["Range": "bytes=-1000"], .part(0..<100)),
            (["Range": "bytes=90-200"], .part(90..<100)), (["Range": "Bytes=99-"], .part(99..<100)),
            (["Range": "bytes=100-"], .unsatisfiable), (["Range": "bytes=-0"], .unsatisfiable),
            (["Range": "bytes=5-4"], .whole), (["Range": "bytes=0-1,3-4"], .whole), (["Range": "bytes=-"], .whole),
            (["Range": "bytes=a-b"], .whole), (["Range": "lines=0-1"], .whole), (["Range": "bytes= 0-1"], .whole),
            (["Range": "bytes=0-99999999999999999999"], .whole),
            (["Range": "bytes=0-1", "If-Range": "\"t\""], .part(0..<2)),
            (["Range": "bytes=0-1", "If-Range": date], .part(0..<2)),
            (["Range": "bytes=0-1", "If-Range": "\"a\""], .whole),
            (["Range": "bytes=0-1", "If-Range": before], .whole),
            (["Range": "bytes=0-1", "If-Range": "W/\"t\""], .whole),
            (["Range": "bytes=0-1", "If-None-Match": "\"t\""], .notModified),
        ] as [(HTTPHeaders, FileConditions.Outcome)])
    private func conditions(headers: HTTPHeaders, expected: FileConditions.Outcome) {
        #expect(Self.conditions.evaluate(.get, headers) == expected)
    }

    @Test("a range of an empty file cannot be, and HEAD has no ranges")
    func emptyAndHead() {
        let empty = FileConditions(size: 0, etag: "\"t\"", modified: 0)
        #expect(empty.evaluate(.get, ["Range": "bytes=0-"]) == .unsatisfiable)
        #expect(empty.evaluate(.get, ["Range": "bytes=-5"]) == .unsatisfiable)
        #expect(Self.conditions.evaluate(.head, ["Range": "bytes=0-1"]) == .whole)
    }

    @Test("are sent whole and in part, and checked for change, over one connection")
    func served() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var random = SeededGenerator(seed: 3)
        let content = (0..<1_000_003).map { _ in UInt8.random(in: 0...255, using: &random) }
        try Data(content).write(to: folder.appending(path: "big"))
        try Data().write(to: folder.appending(path: "empty"))
        let root = folder.path
        try await withServer(handler: { request in
            try await .file(
                root + request.path, for: request, contentType: "application/pdf",
                headers: ["Cache-Control": "no-store"])
        }) { server in
            let client = try await server.connect()
            func ask(_ path: String, _ headers: String = "", method: String = "GET") async throws -> TestResponse {
                try await client.ask(
                    "\(method) \(path) HTTP/1.1\r\nHost: x\r\n\(headers)\r\n", toHead: method == "HEAD")
            }
            let whole = try await ask("/big")
            #expect(whole.status == 200 && whole.body == content)
            #expect(whole.headers["content-length"] == "1000003" && whole.headers["accept-ranges"] == "bytes")
            #expect(whole.headers["content-type"] == "application/pdf" && whole.headers["cache-control"] == "no-store")
            let tag = try #require(whole.headers["etag"])
            let part = try await ask("/big", "Range: bytes=500000-799999\r\nIf-Range: \(tag)\r\n")
            #expect(part.status == 206 && part.body == Array(content[500_000..<800_000]))
            #expect(part.headers["content-range"] == "bytes 500000-799999/1000003")
            let same = try await ask("/big", "If-None-Match: \(tag)\r\n")
            #expect(same.status == 304 && same.body.isEmpty && same.headers["etag"] == tag)
            #expect(same.headers["content-length"] == nil)
            let modified = try #require(whole.headers["last-modified"])
            #expect(try await ask("/big", "If-Modified-Since: \(modified)\r\n").status == 304)
            let beyond = try await ask("/big", "Range: bytes=1000003-\r\n")
            #expect(beyond.status == 416 && beyond.headers["content-range"] == "bytes */1000003")
            let head = try await ask("/big", method: "HEAD")
            #expect(head.status == 200 && head.headers["content-length"] == "1000003")
            #expect(try await ask("/empty").body.isEmpty)
            #expect(try await ask("/none").status == 404)
            #expect(try await ask("/").status == 404)
        }
    }

    @Test("a file that shrinks while it is sent cuts the connection, so that the client notices")
    func shrinks() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)").path
        try Data(repeating: 7, count: 1000).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withServer(handler: { request in
            let file = try await LoopFile.open(path, on: request.loop)
            return HTTPResponse(status: 200, body: .file(FileBody(file: file, count: 2000)))
        }) { server in
            let client = try await server.connect()
            await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            let rest = try await client.rest()
            #expect(rest.count < 1500)
        }
    }
}

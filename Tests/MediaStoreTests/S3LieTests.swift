import Core
import Foundation
import HTTPServer
import Testing

@testable import MediaStore

/// What stands before an S3 may answer 200 to anything: a page to sign in at, a cache, half an answer.
@Suite("An S3 that says 200 and something else")
struct S3LieTests {
    private let server = ScriptedS3()
    private static let contents =
        "<Contents><Key>up/01/a</Key><LastModified>2026-11-30T14:18:24.000Z</LastModified></Contents>"
    private static let ends = "<IsTruncated>false</IsTruncated>"

    private static func list(_ content: String) -> String { "<ListBucketResult>\(content)</ListBucketResult>" }

    private func keys(_ store: S3Store) async throws -> [String] {
        var found: [String] = []
        try await store.oldKeys(shard: 1, before: .distantFuture, pageMax: 10) { keys in
            found += keys
            return true
        }
        return found
    }

    @Test(
        "is asked for a list: that is an error, and not a bucket with nothing in it",
        arguments: [
            "", "hello", "<html><body>Sign in</body></html>", "{}", "<Other>\(ends)</Other>", list(""),
            list("<IsTruncated>maybe</IsTruncated>"), list("<IsTruncated>true</IsTruncated>"),
            list(contents), list("<Contents><Key>up/01/a</Key></Contents>" + ends),
            list(contents.replacing("2026", with: "then") + ends),
            list(contents.replacing("up/01", with: "up/02") + ends),
            String(list(contents + ends).dropLast(1)), String(list(contents + ends).dropLast(40)),
            list(contents + ends) + "<html>", "<html>" + list(contents + ends), "<?xml " + list(contents + ends),
            "<ListBucketResultX>\(ends)</ListBucketResultX>", list(ends) + list(ends),
        ])
    func lists(answer: String) async throws {
        try await server.run({ _, _ in ScriptedS3.text(answer) }) { store, _ in
            await #expect(throws: StoreError.self) { try await keys(store) }
            await #expect(throws: StoreError.self) { try await store.missing(of: ["up/01/a"]) }
            await #expect(throws: StoreError.self) { try await store.sweep(now: .distantFuture) }
        }
    }

    @Test("a list that is one is believed, with or without a declaration")
    func believed() async throws {
        let whole = Self.list(Self.contents + Self.ends)
        let declared = "\u{FEFF}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\n" + whole + "\n"
        let spaced = whole.replacing("<ListBucketResult>", with: "<ListBucketResult xmlns=\"x\">")
        for answer in [whole, declared, spaced] {
            let empty = Self.list(Self.ends)
            try await ScriptedS3().run({ line, _ in ScriptedS3.text(line.contains("up%2F") ? answer : empty) }) {
                store, _ in
                let found = try await keys(store)
                let missing = try await store.missing(of: ["up/01/a", "up/01/b"])
                #expect(found == ["up/01/a"] && missing == ["up/01/b"])
            }
        }
    }

    private func put(_ store: S3Store, bytes count: Int) async throws {
        let writer = try await store.create("up/ab/key")
        do {
            try await writer.write([UInt8](repeating: 7, count: count))
            try await writer.commit()
        } catch {
            await writer.abort()
            throw error
        }
    }

    @Test("is given an object: without a tag it does not have it, and a deletion with a page was none")
    func objects() async throws {
        try await server.run({ _, _ in ScriptedS3.text("<html>") }) { store, _ in
            await #expect(throws: StoreError(.unreachable("what was put has no tag"))) {
                try await put(store, bytes: 9)
            }
            await #expect(throws: StoreError.self) { try await store.delete("up/ab/key") }
            await #expect(throws: StoreError.self) { try await store.probe() }
            await #expect(throws: StoreError.self) { _ = try await store.size("up/ab/key") }
        }
    }

    @Test(
        "is to put parts together: the answer must say that it has",
        arguments: ["", "<html>", "<CompleteMultipartUploadResult>", "<InitiateMultipartUploadResult/>"])
    func completion(answer: String) async throws {
        try await server.run({ line, _ in
            if line.hasSuffix("uploads=") { return ScriptedS3.begun("u") }
            if line.hasPrefix("POST") { return ScriptedS3.text(answer) }
            return line.hasPrefix("DELETE") ? HTTPResponse(status: 204) : ScriptedS3.done
        }) { store, _ in
            await #expect(throws: StoreError(.unreachable("the answer is no CompleteMultipartUploadResult"))) {
                try await put(store, bytes: (5 << 20) + 1)
            }
            #expect(server.requests.last == "DELETE /bucket/up/ab/key?uploadId=u")
        }
    }

    @Test("is to begin an upload in parts: without its name there is none")
    func beginning() async throws {
        for answer in [
            "<html>", "<R><UploadId>u</UploadId></R>",
            "<InitiateMultipartUploadResult></InitiateMultipartUploadResult>",
        ] {
            try await ScriptedS3().run({ _, _ in ScriptedS3.text(answer) }) { store, _ in
                await #expect(throws: StoreError.self) { try await put(store, bytes: (5 << 20) + 1) }
            }
        }
    }

    @Test("a 400 that means a slow connection is asked again, any other is not")
    func slowConnection() async throws {
        try await server.run({ _, before in
            before < 2 ? ScriptedS3.problem(400, "RequestTimeout") : ScriptedS3.done
        }) { store, _ in
            try await put(store, bytes: 10)
            #expect(server.requests.count == 3)
        }
    }
}

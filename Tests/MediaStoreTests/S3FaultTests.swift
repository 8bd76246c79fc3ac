import Core
import EventLoop
import Foundation
import HTTPServer
import ServiceKit
import Synchronization
import Testing
import Transfer

@testable import MediaStore

@Suite struct S3FaultTests {
    private let server = ScriptedS3()

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

    @Test("who says to slow down, or fails, is asked again; the third time is the last")
    func slowDown() async throws {
        try await server.run({ _, before in before < 2 ? ScriptedS3.problem(503, "SlowDown") : ScriptedS3.done }) {
            store, _ in
            try await put(store, bytes: 10)
            #expect(server.requests == Array(repeating: "PUT /bucket/up/ab/key", count: 3))
        }
        let other = ScriptedS3()
        try await other.run({ _, _ in ScriptedS3.problem(500, "InternalError") }) { store, _ in
            await #expect(throws: StoreError(.refused(status: 500, code: "InternalError"))) {
                try await put(store, bytes: 10)
            }
            #expect(other.requests.count == 3)
        }
    }

    @Test("who refuses is not asked again", arguments: [(403, "AccessDenied"), (400, "InvalidArgument"), (301, "")])
    func refused(status: Int, code: String) async throws {
        try await server.run({ _, _ in ScriptedS3.problem(status, code) }) { store, _ in
            await #expect(throws: StoreError(.refused(status: status, code: code))) { try await put(store, bytes: 10) }
            await #expect(throws: StoreError(.refused(status: status, code: code))) { try await store.delete("up/a/b") }
            #expect(server.requests.count == 2)
        }
    }

    @Test("an upload in parts that fails in the middle is ended, so that nothing of it is kept")
    func partFails() async throws {
        try await server.run({ line, _ in
            if line.hasPrefix("POST"), line.hasSuffix("uploads=") {
                return ScriptedS3.begun("u&amp;1")
            }
            if line.contains("partNumber=2") { return ScriptedS3.problem(403, "QuotaExceeded") }
            return line.hasPrefix("DELETE") ? HTTPResponse(status: 204) : ScriptedS3.done
        }) { store, _ in
            await #expect(throws: StoreError(.refused(status: 403, code: "QuotaExceeded"))) {
                try await put(store, bytes: 11 << 20)
            }
            #expect(
                server.requests == [
                    "POST /bucket/up/ab/key?uploads=", "PUT /bucket/up/ab/key?partNumber=1&uploadId=u%261",
                    "PUT /bucket/up/ab/key?partNumber=2&uploadId=u%261", "DELETE /bucket/up/ab/key?uploadId=u%261",
                ])
        }
    }

    @Test("an end that says 200 and then an error is an error, and is not asked for again")
    func completionFails() async throws {
        try await server.run({ line, _ in
            if line.hasSuffix("uploads=") {
                return ScriptedS3.begun("u")
            }
            if line.hasPrefix("POST") { return ScriptedS3.problem(200, "InternalError") }
            return line.hasPrefix("DELETE") ? HTTPResponse(status: 204) : ScriptedS3.done
        }) { store, _ in
            await #expect(throws: StoreError(.refused(status: 200, code: "InternalError"))) {
                try await put(store, bytes: (5 << 20) + 1)
            }
            #expect(
                server.requests.suffix(2) == [
                    "POST /bucket/up/ab/key?uploadId=u", "DELETE /bucket/up/ab/key?uploadId=u",
                ])
        }
    }

    @Test("an S3 that is away is told as such, and so is an answer that is none")
    func away() async throws {
        try await server.run({ _, _ in HTTPResponse(status: 200, body: .bytes(Array("hello".utf8))) }) { store, _ in
            await #expect(throws: StoreError.self) { _ = try await store.size("up/ab/key") }
            await #expect(throws: StoreError(.unreachable("the answer is no ListBucketResult"))) {
                try await store.oldKeys(shard: 1, before: Date(), pageMax: 10) { _ in true }
            }
        }
        let pool = OffloadPool(name: "s3-away", threads: 1, queueMax: 8)
        let location = S3Location(
            endpoint: "http://127.0.0.1:9", region: "r", bucket: "bucket", style: .path, accessKey: "a", secretKey: "s")
        let store = S3Store(
            client: S3Client(location, offload: pool), prefix: "", scratch: "/tmp", files: pool, clock: SystemClock(),
            pauseSeconds: 0)
        let error = await #expect(throws: StoreError.self) { try await store.probe() }
        #expect(error?.isTrouble == true && error?.description.contains("cannot be reached") == true)
    }

    @Test("the sweep leaves uploads in parts that are younger than a day, and those of others")
    func sweepUploads() async throws {
        let begun = Date(timeIntervalSince1970: 1_796_048_304)
        try await server.run({ line, _ in
            guard line.hasPrefix("GET") else { return HTTPResponse(status: 204) }
            let young = "<Upload><Key>up/a</Key><UploadId>u</UploadId><Initiated>2026-11-30T14:18:24.000Z</Initiated>"
            let dateless = "<Upload><Key>up/b</Key><UploadId>u</UploadId><Initiated>now</Initiated>"
            let others = ["backup/a", "a", "upload/a", "tmp/up/a"].map {
                young.replacing("up/a", with: $0) + "</Upload>"
            }.joined()
            let uploads = "\(others)\(young)</Upload>\(dateless)</Upload>"
            return ScriptedS3.text("<ListMultipartUploadsResult>\(uploads)</ListMultipartUploadsResult>")
        }) { store, _ in
            let early = try await store.sweep(now: begun + S3Store.leftoverSecondsMax - 1)
            #expect(early == 0)
            let asked = ["up", "va"].map { "GET /bucket?max-uploads=1000&prefix=\($0)%2F&uploads=" }
            #expect(server.requests == asked)
            let late = try await store.sweep(now: begun + S3Store.leftoverSecondsMax + 1)
            #expect(late == 1)
            #expect(server.requests.filter { $0.hasPrefix("DELETE") } == ["DELETE /bucket/up/a?uploadId=u"])
        }
    }

    @Test(
        "who answers 404 for the bucket is no S3 with nothing in it",
        arguments: ["<html>not here</html>", "<Error><Code>NoSuchKey</Code></Error>"])
    func nothingThere(body: String) async throws {
        let code = body.contains("NoSuchKey") ? "NoSuchKey" : ""
        let refused = StoreError(.refused(status: 404, code: code))
        try await server.run({ _, _ in HTTPResponse(status: 404, body: .bytes(Array(body.utf8))) }) { store, _ in
            await #expect(throws: refused) { _ = try await store.missing(of: ["up/ab/key"]) }
            await #expect(throws: refused) {
                try await store.oldKeys(shard: 1, before: Date(), pageMax: 10) { _ in true }
            }
            await #expect(throws: refused) { _ = try await store.sweep(now: Date()) }
            await #expect(throws: refused) { try await store.probe() }
            // Of an object it is what an S3 says.
            #expect(try await store.size("up/ab/key") == nil)
            try await store.delete("up/ab/key")
        }
    }

    @Test("an S3 that takes connections and says nothing is given its time, once")
    func silent() async throws {
        // Nobody accepts: the kernel does, and no answer comes.
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        try #require(isListening)
        let pool = OffloadPool(name: "s3-silent", threads: 1, queueMax: 8)
        let location = S3Location(
            endpoint: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))", region: "r", bucket: "bucket",
            style: .path, accessKey: "a", secretKey: "s")
        let store = S3Store(
            client: S3Client(location, offload: pool, secondsMax: 1), prefix: "", scratch: NSTemporaryDirectory(),
            files: pool, clock: SystemClock(), pauseSeconds: 0)
        let begin = ContinuousClock.now
        await #expect(throws: StoreError(.unreachable("no answer in time"))) { try await put(store, bytes: 10) }
        #expect(ContinuousClock.now - begin > .milliseconds(900))
        // Once: a second connection would be waiting beside the first.
        var connections = 0
        while case let peer = accept(listener, nil, nil), peer >= 0 {
            connections += 1
            close(peer)
        }
        #expect(connections == 1)
    }

    @Test("what an S3 says in XML is read as it is meant")
    func documents() {
        let document = S3Document(
            Array(
                """
                <L xmlns="x"><KeyCount>2</KeyCount><Key/><Contents a="b"><Key>a&lt;&amp;lt;</Key></Contents>\
                <Contents><Key>b</Key></Contents><IsTruncated>true</IsTruncated><Open>
                """.utf8))
        #expect(document.elements("Contents").flatMap { $0.texts(of: "Key") } == ["a<&lt;", "b"])
        #expect(document.texts(of: "IsTruncated") == ["true"] && document.texts(of: "KeyCount") == ["2"])
        #expect(document.texts(of: "Open").isEmpty && document.texts(of: "Nothing").isEmpty)
        let date = Date(timeIntervalSince1970: 1_796_048_304)
        #expect(S3Document.date("2026-11-30T14:18:24.123Z") == date && S3Document.date("2026-11-30T14:18:24Z") == date)
        #expect(S3Document.headerDate("Mon, 30 Nov 2026 14:18:24 GMT") == date)
        #expect(S3Document.date("yesterday") == nil && S3Document.headerDate("Mon, 30 Foo 2026 14:18:24 GMT") == nil)
    }
}

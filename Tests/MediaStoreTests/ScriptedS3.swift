import Core
import EventLoop
import Foundation
import HTTPServer
import ServiceKit
import Synchronization
import Testing
import Tracing
import Transfer

@testable import MediaStore

/// An S3 that answers as the test says, and remembers what it was asked.
final class ScriptedS3: Sendable {
    private let asked = Mutex<[String]>([])

    var requests: [String] { asked.withLock { $0 } }

    /// - Parameter answer: is given the request as `PUT /b/k?partNumber=1` and how many came before it.
    func run(
        tracer: Tracer? = nil,
        _ answer: @escaping @Sendable (String, Int) -> HTTPResponse, _ body: (S3Store, URL) async throws -> Void
    ) async throws {
        let loops = LoopGroup(count: 1, name: "s3-test")
        var limits = HTTPLimits()
        limits.bodyBytesMax = 16 << 20
        let server = HTTPServer(
            loops: loops, address: SocketAddress(host: "127.0.0.1", port: 0), limits: limits,
            onError: { _, _ in HTTPResponse(status: 500) }
        ) { [self] request in
            _ = try await request.body.collect(max: 64 << 20)
            let line = "\(request.method.rawValue) \(request.path)" + (request.query.isEmpty ? "" : "?\(request.query)")
            let before = asked.withLock { asked in
                asked.append(line)
                return asked.count - 1
            }
            return answer(line, before)
        }
        let address = try await server.start()
        let folder = TemporaryFolder()
        try Files.makeFolder(folder.path)
        let pool = OffloadPool(name: "s3-test", threads: 2, queueMax: 64)
        let location = S3Location(
            endpoint: "http://127.0.0.1:\(address.port)", region: "eu-central-1", bucket: "bucket", style: .path,
            accessKey: "access", secretKey: "secret")
        let store = S3Store(
            client: S3Client(location, offload: pool), prefix: "", scratch: folder.path, files: pool,
            clock: SystemClock(), partBytes: 5 << 20, pauseSeconds: 0, tracer: tracer)
        try await body(store, URL(fileURLWithPath: folder.path))
        #expect(folder.files.isEmpty)
        await server.drain(graceSeconds: 1)
        await loops.stop()
        pool.stop()
    }

    static func problem(_ status: Int, _ code: String) -> HTTPResponse {
        HTTPResponse(status: status, body: .bytes(Array("<Error><Code>\(code)</Code></Error>".utf8)))
    }

    static let done = HTTPResponse(status: 200, headers: ["ETag": "\"a\""])

    static func text(_ text: String) -> HTTPResponse { HTTPResponse(status: 200, body: .bytes(Array(text.utf8))) }

    static func begun(_ upload: String) -> HTTPResponse {
        text(
            "<?xml version='1.0'?>\n<InitiateMultipartUploadResult><UploadId>\(upload)</UploadId>"
                + "</InitiateMultipartUploadResult>\n")
    }
}

import Core
import Foundation
import HTTPServer
import Testing
import Tracing
import Transfer

@testable import MediaStore

@Suite("Traced requests to an S3")
struct S3TraceTests {
    private let tracer = Tracer(sampler: Sampler(.parentOrAlways, share: 1), queueMax: 100, batchMax: 100)

    private func attribute(_ name: String, _ span: FinishedSpan) -> SpanValue? {
        span.attributes.first { $0.name == name }?.value
    }

    @Test("each attempt is a span of whoever asked, with its operation and status, and without the object")
    func attempts() async throws {
        let parent = tracer.begin("GET /uploads/…", .server, parent: nil)
        try await ScriptedS3().run(tracer: tracer) { line, before in
            if line.hasPrefix("HEAD") { return HTTPResponse(status: 404) }
            return before == 0 ? ScriptedS3.problem(503, "SlowDown") : ScriptedS3.done
        } _: { store, _ in
            try await TraceContext.$current.withValue(parent.context) {
                let writer = try await store.create("up/ab/hush")
                try await writer.write([1, 2, 3])
                try await writer.commit()
                #expect(try await store.size("up/ab/hush") == nil)
            }
            // Nobody asks for these in a trace, or in one that is recorded.
            _ = try await store.size("up/ab/hush")
            let off = TraceContext(trace: TraceID(high: 1, low: 2), span: 3, isSampled: false)
            _ = try await TraceContext.$current.withValue(off) { try await store.size("up/ab/hush") }
        }
        let spans = tracer.takeBatch()
        #expect(spans.map(\.name) == ["S3.PutObject", "S3.PutObject", "S3.HeadObject"])
        #expect(spans.allSatisfy { $0.kind == .client && $0.parent == parent.context.span })
        #expect(spans.map { attribute("http.response.status_code", $0) } == [503, 200, 404])
        #expect(spans.map { attribute("http.request.method", $0) } == ["PUT", "PUT", "HEAD"])
        #expect(spans.map { attribute("http.request.resend_count", $0) } == [nil, 1, nil])
        #expect(spans.map { attribute("error.type", $0) } == ["503", nil, "404"])
        #expect(spans.allSatisfy { attribute("server.address", $0) == "127.0.0.1" })
        #expect(!"\(spans)".contains("hush") && !"\(spans)".contains("access"))
    }

    @Test(
        "operations have Amazon's names",
        arguments: [
            (S3Request("GET", "", query: [("list-type", "2")]), "ListObjectsV2"),
            (S3Request("GET", "", query: [("uploads", "")]), "ListMultipartUploads"),
            (S3Request("GET", "a"), "GetObject"),
            (S3Request("PUT", "a", query: [("partNumber", "1"), ("uploadId", "u")]), "UploadPart"),
            (S3Request("POST", "a", query: [("uploads", "")]), "CreateMultipartUpload"),
            (S3Request("POST", "a", query: [("uploadId", "u")]), "CompleteMultipartUpload"),
            (S3Request("DELETE", "a", query: [("uploadId", "u")]), "AbortMultipartUpload"),
            (S3Request("DELETE", "a"), "DeleteObject"),
        ])
    func operations(request: S3Request, name: String) {
        #expect(S3Tracing.operation(request) == name)
    }

    @Test("an S3 that does not answer is an error in a word; its server is what the style makes of it")
    func unreachable() {
        #expect(S3Tracing.word(for: HTTPClientError.failed("cannot reach hush")) == "unreachable")
        #expect(S3Tracing.word(for: HTTPClientError.timedOut) == "timeout")
        let location = S3Location(
            endpoint: "https://s3.example.org", region: "r", bucket: "b", style: .virtual, accessKey: "", secretKey: "")
        #expect(location.server == ("b.s3.example.org", 443))
    }
}

import Tracing
import Transfer

/// Spans of requests to an S3: which operation, never of which object. Each attempt is one.
struct S3Tracing: Sendable {
    private let tracer: Tracer
    private let server: [SpanAttribute]

    init(_ tracer: Tracer, _ location: S3Location) {
        self.tracer = tracer
        let (host, port) = location.server
        server = [SpanAttribute("server.address", .string(host)), SpanAttribute("server.port", .int(port))]
    }

    /// Nil where the present task is about nothing that is recorded.
    /// - Parameter number: of the attempt, from 1.
    func begin(_ request: S3Request, number: Int) -> Span? {
        let operation = Self.operation(request)
        var attributes = [
            SpanAttribute("rpc.system", "aws-api"), SpanAttribute("rpc.service", "S3"),
            SpanAttribute("rpc.method", .string(operation)),
            SpanAttribute("http.request.method", .string(request.method)),
        ]
        if number > 1 { attributes.append(SpanAttribute("http.request.resend_count", .int(number - 1))) }
        return tracer.beginWithin("S3.\(operation)", .client, attributes + server)
    }

    /// By the names of Amazon's API.
    static func operation(_ request: S3Request) -> String {
        let names = Set(request.query.map(\.name))
        switch request.method {
        case "GET" where request.key.isEmpty:
            return names.contains("uploads") ? "ListMultipartUploads" : "ListObjectsV2"
        case "GET": return "GetObject"
        case "HEAD": return "HeadObject"
        case "PUT": return names.contains("partNumber") ? "UploadPart" : "PutObject"
        case "POST": return names.contains("uploads") ? "CreateMultipartUpload" : "CompleteMultipartUpload"
        case "DELETE": return names.contains("uploadId") ? "AbortMultipartUpload" : "DeleteObject"
        default: return request.method
        }
    }

    static func word(for error: any Error) -> String {
        switch error {
        case HTTPClientError.timedOut: "timeout"
        case HTTPClientError.failed: "unreachable"
        case let error as HTTPClientError: "\(error)"
        default: "\(type(of: error))"
        }
    }
}

extension S3Store {
    /// One attempt. An answer with 4xx or 5xx is an error of its span, as OpenTelemetry has it, even where a 404 is all
    /// that was to be found out.
    func attempt(_ request: S3Request, number: Int, bodyMax: Int) async throws -> HTTPClientResponse {
        guard let span = tracing?.begin(request, number: number) else {
            return try await client.run(request, bodyMax: bodyMax)
        }
        do {
            let answer = try await client.run(request, bodyMax: bodyMax)
            let status = SpanAttribute("http.response.status_code", .int(answer.status))
            span.end([status], error: answer.status >= 400 ? "\(answer.status)" : nil)
            return answer
        } catch {
            span.end(error: S3Tracing.word(for: error))
            throw error
        }
    }
}

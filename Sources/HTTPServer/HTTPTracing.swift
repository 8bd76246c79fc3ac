import Tracing

/// How a server traces its requests: a span for each, from its head to the end of its answer.
public struct HTTPTracing: Sendable {
    let tracer: Tracer
    private let routes: [(method: HTTPMethod, pattern: String)]
    private let ignored: String
    private let continues: @Sendable (HTTPRequest) -> Bool

    /// - Parameters:
    ///   - routes: in the order in which the server counts them.
    ///   - ignored: a path of which nobody wants to know how long it took.
    ///   - continues: whether the trace that a request says it belongs to is to be believed. Otherwise a new one
    ///     begins, which names the other.
    public init(
        tracer: Tracer, routes: [(method: HTTPMethod, pattern: String)], ignoring ignored: String,
        continues: @escaping @Sendable (HTTPRequest) -> Bool
    ) {
        self.tracer = tracer
        self.routes = routes
        self.ignored = ignored
        self.continues = continues
    }

    func begin(_ request: HTTPRequest) -> RequestSpan? {
        guard request.path != ignored else { return nil }
        var caller: TraceContext?
        if request.headers.contains("traceparent") {
            caller = TraceContext(
                traceparents: request.headers.all("traceparent"), states: request.headers.all("tracestate"))
        }
        let isBelieved = caller != nil && continues(request)
        let span = tracer.begin(
            request.method.rawValue, .server, parent: isBelieved ? caller : nil, link: isBelieved ? nil : caller)
        return RequestSpan(span: span, method: request.method, path: request.path)
    }

    func end(_ span: RequestSpan, route: Int, status: Int) {
        guard span.span.context.isSampled else { return }
        let method = span.method.rawValue
        var attributes = [
            SpanAttribute("http.request.method", .string(method)), SpanAttribute("url.scheme", "http"),
        ]
        let pattern = routes.indices.contains(route) ? routes[route].pattern : nil
        if let pattern {
            attributes.append(SpanAttribute("http.route", .string(pattern)))
            attributes.append(SpanAttribute("url.path", .string(Self.path(span.path, by: pattern))))
        }
        // 0: the client left before there was an answer, or with a part of it.
        if status > 0 { attributes.append(SpanAttribute("http.response.status_code", .int(status))) }
        span.span.end(
            name: pattern.map { "\(method) \($0)" } ?? method, attributes, error: status >= 500 ? "\(status)" : nil)
    }

    /// The path as a trace may have it: what stands for a `:name` is kept when it is a number, and all else that a
    /// client chose is left out. It may be a token or an address.
    static func path(_ path: String, by pattern: String) -> String {
        var rest = path.split(separator: "/", omittingEmptySubsequences: true)[...]
        var kept = ""
        for piece in pattern.split(separator: "/") {
            if piece.hasPrefix("*") { return kept + "/…" }
            let segment = rest.popFirst() ?? ""
            let isFixed = !piece.hasPrefix(":")
            let isNumber = segment.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            kept += "/" + (isFixed ? piece : isNumber && segment.utf8.count <= numberLengthMax ? segment : "…")
        }
        return kept.isEmpty ? "/" : kept
    }

    /// Of an id. A longer number may be a telephone's, or a code.
    private static let numberLengthMax = 10
}

/// What a connection keeps of the span of the request that it answers.
final class RequestSpan: Sendable {
    let span: Span
    let method: HTTPMethod
    let path: String

    init(span: Span, method: HTTPMethod, path: String) {
        self.span = span
        self.method = method
        self.path = path
    }
}

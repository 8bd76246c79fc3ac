import Synchronization

/// What is known of a span besides its times. Never an address, a name, a token, a query or a body: a collector is a
/// place of its own, and what is there is not erased with a person's account.
public enum SpanValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case string(String)
    case int(Int)

    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
}

/// Names are those of OpenTelemetry's semantic conventions where there is one, and begin with `martlet.` otherwise.
public struct SpanAttribute: Sendable, Equatable {
    public let name: String
    public let value: SpanValue

    public init(_ name: String, _ value: SpanValue) {
        self.name = name
        self.value = value
    }
}

/// Something that takes time, from `Tracer.begin` to `end`. Of a trace that is not sampled it only passes the context
/// on.
public final class Span: Sendable {
    /// By the numbers of OTLP.
    public enum Kind: Int, Sendable {
        case `internal` = 1
        case server, client, producer, consumer
    }

    public let context: TraceContext
    let parent: UInt64?
    let name: String
    let kind: Kind
    let link: TraceContext?
    let attributes: [SpanAttribute]
    let began: SpanClock.Moment
    private let tracer: Tracer
    private let isEnded = Atomic(false)

    init(
        _ tracer: Tracer, context: TraceContext, parent: UInt64?, name: String, kind: Kind, link: TraceContext?,
        attributes: [SpanAttribute], began: SpanClock.Moment
    ) {
        self.tracer = tracer
        self.context = context
        self.parent = parent
        self.name = name
        self.kind = kind
        self.link = link
        self.attributes = attributes
        self.began = began
    }

    /// Once; again does nothing.
    /// - Parameters:
    ///   - name: instead of the one it began with.
    ///   - error: what kind of failure it was, in a word. The words of an error may quote anything, so they stay out.
    public func end(name: String? = nil, _ attributes: [SpanAttribute] = [], error: String? = nil) {
        guard context.isSampled, !isEnded.exchange(true, ordering: .relaxed) else { return }
        var all = self.attributes + attributes
        if let error { all.append(SpanAttribute("error.type", .string(error))) }
        tracer.take(
            FinishedSpan(
                context: context, parent: parent, name: name ?? self.name, kind: kind, link: link, attributes: all,
                began: began.nanoseconds, ended: tracer.clock.end(of: began), isError: error != nil))
    }
}

/// A span that waits to be exported.
public struct FinishedSpan: Sendable, Equatable {
    public let context: TraceContext
    /// Nil where the trace begins.
    public let parent: UInt64?
    public let name: String
    public let kind: Span.Kind
    /// Another trace that has to do with it.
    public let link: TraceContext?
    public let attributes: [SpanAttribute]
    /// Nanoseconds since 1970.
    public let began: UInt64
    public let ended: UInt64
    public let isError: Bool
}

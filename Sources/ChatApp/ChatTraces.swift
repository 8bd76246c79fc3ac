import Core
import Tracing

/// Spans of messages: from the frame of the client that sends one to its answer, and at each instance that delivers it.
/// What ties them together is stored with the message.
struct ChatTraces: Sendable {
    let tracer: Tracer

    private static let common = [
        SpanAttribute("messaging.system", "martlet"), SpanAttribute("messaging.destination.name", "room"),
    ]

    /// Each send begins a trace: a socket lives for days, so the request that opened it is no part of what it says.
    func begin(_ send: inout SendBatcher.Send) {
        let span = tracer.begin(
            "send room", .producer, parent: nil,
            Self.common + [
                SpanAttribute("messaging.operation.type", "send"), SpanAttribute("messaging.operation.name", "send"),
                SpanAttribute("martlet.message.kind", .string(send.draft.kind.rawValue)),
            ])
        guard span.context.isSampled else { return }
        send.span = span
        send.draft.traceparent = span.context.traceparent
    }

    /// Of the messages whose sends are recorded.
    func delivering(_ deliveries: [RoomPositions.Delivery]) -> [Span] {
        deliveries.flatMap(\.messages).compactMap { message in
            guard let parent = message.traceparent.flatMap({ TraceContext(traceparent: $0) }) else { return nil }
            return tracer.begin(
                below: parent, "deliver room", .consumer,
                Self.common + [
                    SpanAttribute("messaging.operation.type", "process"),
                    SpanAttribute("messaging.operation.name", "deliver"),
                ])
        }
    }
}

extension Span {
    func end(_ result: SendBatcher.Result) {
        switch result {
        case .failed(let code, _): end(error: code.rawValue)
        case .done(let outcome):
            let word =
                switch outcome {
                case .sent: "sent"
                case .duplicate: "duplicate"
                case .forbidden: "forbidden"
                case .refused(let refusal): refusal.rawValue
                }
            end([SpanAttribute("martlet.message.outcome", .string(word))])
        }
    }
}

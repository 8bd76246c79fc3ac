import JSON
import Tracing

/// Spans as `ExportTraceServiceRequest` in OTLP's JSON encoding: names in lowerCamelCase, ids as hexadecimal digits,
/// 64-bit numbers as text, enumerations as numbers (OTLP specification, "JSON Protobuf Encoding").
enum SpanWriter {
    static let contentType = "application/json"
    /// Of a span, roughly, so that the buffer seldom grows.
    private static let spanBytes = 600

    static func write(_ spans: [FinishedSpan], resource: [SpanAttribute]) -> [UInt8] {
        var json = JSONWriter(capacity: 512 + spans.count * spanBytes)
        json.object { json in
            json.array("resourceSpans", CollectionOfOne(())) { json, _ in
                json.object { json in
                    json.object("resource") { write(resource, to: &$0) }
                    json.array("scopeSpans", CollectionOfOne(())) { json, _ in
                        json.object { json in
                            json.object("scope") { $0.field("name", "martlet") }
                            json.array("spans", spans) { write($1, to: &$0) }
                        }
                    }
                }
            }
        }
        return json.finish()
    }

    private static func write(_ span: FinishedSpan, to json: inout JSONWriter) {
        json.object { json in
            json.field("traceId", "\(span.context.trace)")
            json.field("spanId", span.context.spanText)
            if let state = span.context.state { json.field("traceState", state) }
            if let parent = span.parent {
                json.field(
                    "parentSpanId", TraceContext(trace: span.context.trace, span: parent, isSampled: true).spanText)
            }
            json.field("flags", span.context.isSampled ? 1 : 0)
            json.field("name", span.name)
            json.field("kind", span.kind.rawValue)
            json.field("startTimeUnixNano", String(span.began))
            json.field("endTimeUnixNano", String(span.ended))
            write(span.attributes, to: &json)
            if let link = span.link {
                json.array("links", CollectionOfOne(link)) { json, link in
                    json.object { json in
                        json.field("traceId", "\(link.trace)")
                        json.field("spanId", link.spanText)
                    }
                }
            }
            if span.isError { json.object("status") { $0.field("code", statusError) } }
        }
    }

    /// `STATUS_CODE_ERROR`.
    private static let statusError = 2

    private static func write(_ attributes: [SpanAttribute], to json: inout JSONWriter) {
        json.array("attributes", attributes) { json, attribute in
            json.object { json in
                json.field("key", attribute.name)
                json.object("value") { json in
                    switch attribute.value {
                    case .string(let text): json.field("stringValue", text)
                    case .int(let number): json.field("intValue", String(number))
                    }
                }
            }
        }
    }
}

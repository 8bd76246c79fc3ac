import Foundation
import JSON
import Synchronization
import TestSupport
import Testing

@testable import ServiceKit
@testable import Tracing
@testable import Transfer

/// An exporter whose collector is a script: each request is answered by the next answer, the last one for ever.
private struct Stage: Sendable {
    typealias Answer = @Sendable () async throws -> HTTPClientResponse

    let clock = ManualClock()
    let tracer: Tracer
    let exporter: SpanExporter
    let requests = Signal<(spans: Int, secondsMax: Int)>()

    init(queueMax: Int = 100, batchMax: Int = 10, _ answers: [Answer]) throws {
        var environment = Environment([
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_BSP_SCHEDULE_DELAY": "5000",
        ])
        let settings = try #require(TraceSettings(&environment, service: "x", instance: "i"))
        tracer = Tracer(sampler: settings.sampler, queueMax: queueMax, batchMax: batchMax)
        let left = Answers(answers)
        exporter = SpanExporter(
            tracer, settings: settings, clock: clock, log: .silent, random: { 0 },
            send: { [requests] body, secondsMax in
                requests.send((try spans(body).count, secondsMax))
                return try await left.next()()
            })
        exporter.start()
    }

    private final class Answers: Sendable {
        private let left: Mutex<[Answer]>
        init(_ answers: [Answer]) { left = Mutex(answers) }
        func next() -> Answer { left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
    }

    func end(_ count: Int) { for _ in 0..<count { tracer.begin("x", .internal, parent: nil).end() } }

    /// Lets so many seconds pass once somebody waits.
    func pass(_ seconds: Double) async throws {
        try await eventually { clock.sleepers == 1 }
        clock.advance(seconds: seconds)
    }

    func count(_ outcome: String) -> Int {
        let text = MetricFamily.text(exporter.families)
        let line = text.split(separator: "\n").first { $0.contains("outcome=\"\(outcome)\"") }
        return line.flatMap { Int($0.split(separator: " ").last ?? "") } ?? -1
    }

    /// Ends it, with the second that it may take gone.
    func stop() async throws {
        let stopping = Task { await exporter.stop() }
        try await eventually {
            clock.advance(seconds: 1)
            return tracer.counts.waiting == 0
        }
        clock.advance(seconds: 10)
        await stopping.value
    }
}

private func spans(_ body: [UInt8]) throws -> [JSONValue] {
    guard case .object(let whole) = try JSONValue(parsing: body), case .array(let resources)? = whole["resourceSpans"],
        case .object(let resource)? = resources.first, case .array(let scopes)? = resource["scopeSpans"],
        case .object(let scope)? = scopes.first, case .array(let spans)? = scope["spans"]
    else { throw CocoaError(.coderReadCorrupt) }
    return spans
}

private func answer(_ status: Int, _ body: String = "{}", _ headers: [String: [String]] = [:]) -> Stage.Answer {
    { HTTPClientResponse(status: status, headers: headers, body: Array(body.utf8)) }
}

@Suite("Exporting spans")
struct SpanExporterTests {
    @Test("spans wait for the interval and go together, in batches")
    func batches() async throws {
        let stage = try Stage([answer(200)])
        stage.end(3)
        try await stage.pass(4)
        #expect(stage.requests.values.isEmpty)
        stage.clock.advance(seconds: 1)
        try await stage.requests.wait(count: 1)
        #expect(stage.requests.values.map(\.spans) == [3] && stage.requests.values[0].secondsMax == 10)
        try await eventually { stage.count("exported") == 3 }
        try await stage.stop()
    }

    @Test("a full batch does not wait")
    func full() async throws {
        let stage = try Stage([answer(200)])
        try await eventually { stage.clock.sleepers == 1 }
        stage.end(25)
        try await stage.requests.wait(count: 3)
        #expect(stage.requests.values.map(\.spans) == [10, 10, 5])
        try await stage.stop()
    }

    @Test("what may be tried again is, with growing pauses or when the collector says, and then given up")
    func retries() async throws {
        let stage = try Stage(
            [answer(503), answer(429, "", ["retry-after": ["7"]])]
                + [502, 504].map { answer($0) } + [{ throw HTTPClientError.timedOut }, answer(200)])
        stage.end(2)
        try await stage.pass(5)
        // Half of a second, the collector's seven, then two seconds and four.
        for (number, seconds) in [0.5, 7, 2, 4].enumerated() {
            try await stage.requests.wait(count: number + 1)
            try await stage.pass(seconds - 0.01)
            #expect(stage.requests.values.count == number + 1)
            stage.clock.advance(seconds: 0.01)
        }
        try await eventually { stage.count("failed") == 2 }
        #expect(stage.requests.values.count == SpanExporter.attemptsMax && stage.count("exported") == 0)
        stage.end(1)
        try await stage.pass(5)
        try await eventually { stage.count("exported") == 1 }
        try await stage.stop()
    }

    @Test("what is refused is not sent again", arguments: [400, 401, 404, 413, 500, 501, 302])
    func refused(_ status: Int) async throws {
        let stage = try Stage([answer(status, "<html>")])
        stage.end(1)
        try await stage.pass(5)
        try await eventually { stage.count("failed") == 1 }
        #expect(stage.requests.values.count == 1)
        try await stage.stop()
    }

    @Test("spans that a collector takes in part are told; an answer that is none counts as taken")
    func partial() async throws {
        let rejected = #"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}}"#
        let stage = try Stage([answer(200, rejected), answer(200, "\u{0}<garbage"), answer(202, "")])
        for count in [3, 1, 1] {
            stage.end(count)
            try await stage.pass(5)
            try await eventually { stage.tracer.counts.waiting == 0 && stage.clock.sleepers == 1 }
        }
        #expect(stage.count("rejected") == 2 && stage.count("exported") == 3 && stage.count("failed") == 0)
        try await stage.stop()
    }

    @Test("while a collector hangs spans wait up to the queue's length, and more are dropped")
    func hanging() async throws {
        let gate = Signal<Void>()
        let stage = try Stage(
            queueMax: 5,
            [
                {
                    try await gate.wait(count: 1)
                    return HTTPClientResponse(status: 200, headers: [:], body: [])
                }
            ])
        stage.end(1)
        try await stage.pass(5)
        try await stage.requests.wait(count: 1)
        stage.end(8)
        #expect(stage.tracer.counts.waiting == 5 && stage.count("dropped") == 3)
        gate.send(())
        try await eventually { stage.count("exported") == 6 }
        try await stage.stop()
    }

    @Test("at the end what waits is sent at once, with a short patience; a collector that hangs holds nobody")
    func flush() async throws {
        let stage = try Stage([answer(200)])
        try await eventually { stage.clock.sleepers == 1 }
        stage.end(12 - 10)
        await stage.exporter.stop()
        #expect(stage.requests.values.map(\.spans) == [2] && stage.requests.values[0].secondsMax == 1)
        #expect(stage.count("exported") == 2)

        let gate = Signal<Void>()
        let hanging = try Stage([
            {
                try await gate.wait(count: 1)
                throw HTTPClientError.timedOut
            }
        ])
        try await eventually { hanging.clock.sleepers == 1 }
        hanging.end(11)
        try await hanging.requests.wait(count: 1)
        let stopping = Task { await hanging.exporter.stop() }
        try await eventually { hanging.clock.sleepers == 1 }
        hanging.clock.advance(seconds: SpanExporter.flushSecondsMax)
        await stopping.value
        #expect(hanging.count("dropped") == 1)
        gate.send(())
    }

    @Test("a collector that is away at the end is tried once")
    func away() async throws {
        let stage = try Stage([{ throw HTTPClientError.failed("refused") }])
        stage.end(3)
        try await eventually { stage.clock.sleepers == 1 }
        await stage.exporter.stop()
        #expect(stage.count("failed") == 3 && stage.requests.values.count == 1)
    }

    @Test("a date of Retry-After is a pause, and no pause is long")
    func retryAfter() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        func seconds(_ text: String) -> Double? {
            let answer = HTTPClientResponse(status: 503, headers: ["retry-after": [text]], body: [])
            guard case .later(_, let seconds) = ExportAnswer(answer, now: now) else { return -1 }
            return seconds
        }
        #expect(seconds("3") == 3 && seconds("99999") == ExportAnswer.retryAfterSecondsMax)
        #expect(seconds("Sun, 06 Nov 1994 08:49:47 GMT") == 10 && seconds("Sun, 06 Nov 1994 08:49:27 GMT") == 0)
        for text in ["", "-1", "soon", "1.5"] { #expect(seconds(text) == nil, "\(text)") }
    }

    @Test("a span is written as OTLP writes it in JSON")
    func writing() throws {
        let trace = TraceID(high: 0xAB, low: 1)
        let span = FinishedSpan(
            context: TraceContext(trace: trace, span: 2, isSampled: true, state: "a=b"), parent: 3, name: "GET \"x\"",
            kind: .server, link: TraceContext(trace: trace, span: 4, isSampled: true),
            attributes: [SpanAttribute("a", "é"), SpanAttribute("n", .int(.max))], began: 5, ended: .max, isError: true)
        let body = SpanWriter.write([span], resource: [SpanAttribute("service.name", "s")])
        let id = "00000000000000ab0000000000000001"
        let text = """
            {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},\
            "scopeSpans":[{"scope":{"name":"martlet"},"spans":[{"traceId":"\(id)","spanId":"0000000000000002",\
            "traceState":"a=b","parentSpanId":"0000000000000003","flags":1,"name":"GET \\"x\\"","kind":2,\
            "startTimeUnixNano":"5","endTimeUnixNano":"18446744073709551615",\
            "attributes":[{"key":"a","value":{"stringValue":"é"}},{"key":"n","value":{"intValue":"\(Int.max)"}}],\
            "links":[{"traceId":"\(id)","spanId":"0000000000000004"}],"status":{"code":2}}]}]}]}
            """
        #expect(String(decoding: body, as: UTF8.self) == text)
    }
}

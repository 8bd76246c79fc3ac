import EventLoop
import Tracing
import Transfer

/// The traces of a process: nil in `ServiceContext` where `OTEL_EXPORTER_OTLP_ENDPOINT` is not set.
public final class Traces: Sendable {
    public let tracer: Tracer
    public let incoming: TraceSettings.Incoming
    private let exporter: SpanExporter

    init?(_ environment: inout Environment, service: String, clock: any ServiceClock, log: Log, metrics: Metrics) {
        var instance = ""
        for _ in 0..<2 { instance += String(UInt64.random(in: .min ... .max), radix: 16) }
        guard let settings = TraceSettings(&environment, service: service, instance: instance) else { return nil }
        tracer = Tracer(sampler: settings.sampler, queueMax: settings.queueMax, batchMax: settings.batchMax)
        incoming = settings.incoming
        // A collector that hangs holds a thread, so it is one of its own.
        let client = HTTPClient(offload: OffloadPool(name: "traces", threads: 1, queueMax: 2), connectionsMax: 1)
        let headers =
            settings.headers.map { ($0.name, $0.value.value) } + [("Content-Type", SpanWriter.contentType)]
        let exporter = SpanExporter(
            tracer, settings: settings, clock: clock, log: log, random: { Double.random(in: 0..<1) },
            send: { body, secondsMax in
                try await client.post(
                    settings.endpoint, headers: headers, body: body, bodyMax: SpanExporter.answerBytesMax,
                    secondsMax: secondsMax)
            })
        self.exporter = exporter
        metrics.collect { exporter.families }
    }

    func start() { exporter.start() }

    func stop() async { await exporter.stop() }
}

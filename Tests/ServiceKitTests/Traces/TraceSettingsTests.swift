import Testing
import Tracing

@testable import ServiceKit

@Suite("Settings of traces")
struct TraceSettingsTests {
    private static let on = ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"]

    private static func read(
        _ values: [String: String], over basis: [String: String] = on
    ) throws -> TraceSettings? {
        var environment = Environment(basis.merging(values) { $1 })
        let settings = TraceSettings(&environment, service: "martlet-x", instance: "i1")
        try environment.check()
        return settings
    }

    private static func mistakes(_ values: [String: String]) -> [String] {
        do {
            _ = try read(values)
            return []
        } catch { return (error as? ConfigurationError)?.mistakes ?? [] }
    }

    @Test("without an endpoint nothing is traced, and what else is set is nobody's mistake")
    func off() throws {
        #expect(try Self.read(["OTEL_TRACES_SAMPLER": "nonsense"], over: [:]) == nil)
        #expect(try Self.read(["OTEL_EXPORTER_OTLP_ENDPOINT": ""]) == nil)
        #expect(try Self.read(["OTEL_SDK_DISABLED": "true"]) == nil)
        #expect(try Self.read(["OTEL_TRACES_EXPORTER": "none"]) == nil)
        #expect(try Self.read(["OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "otlp"]) != nil)
    }

    @Test("our own setting is judged with traces and without")
    func incoming() throws {
        let wrong = ["MARTLET_TRACE_INCOMING": "sometimes"]
        for basis in [Self.on, [:], ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"]] {
            #expect(throws: ConfigurationError.self) { try Self.read(wrong, over: basis) }
        }
        #expect(try Self.read(["MARTLET_TRACE_INCOMING": "never"], over: [:]) == nil)
        #expect(try Self.read(["MARTLET_TRACE_INCOMING": "never"])?.incoming == .never)
    }

    @Test("the path of traces is put behind the endpoint of everything, not behind that of traces")
    func endpoint() throws {
        for (values, endpoint) in [
            ([:], "http://collector:4318/v1/traces"),
            (["OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example/otlp/"], "https://c.example/otlp/v1/traces"),
            (["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:1/x"], "http://t:1/x"),
        ] { #expect(try Self.read(values)?.endpoint == endpoint) }
        for text in ["collector:4318", "ftp://c", "http://", "http://c/?a=b", "http://c/ x", "grpc://c:4317"] {
            #expect(Self.mistakes(["OTEL_EXPORTER_OTLP_ENDPOINT": text]).count == 1, "\(text)")
        }
    }

    @Test("headers and attributes are lists of pairs, their values encoded")
    func pairs() throws {
        let settings = try #require(
            try Self.read([
                "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, authorization = Basic%20eA%3D%3D ,",
                "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=caf%C3%A9", "MARTLET_INSTANCE": "one",
            ]))
        #expect(settings.headers.map(\.name) == ["x-key", "authorization"])
        #expect(settings.headers.map(\.value.value) == ["a b", "Basic eA=="])
        let known = Dictionary(uniqueKeysWithValues: settings.resource.map { ($0.name, $0.value) })
        #expect(known["service.name"] == "other" && known["team"] == "café")
        #expect(known["service.instance.id"] == "one" && known["service.namespace"] == "martlet")
        let named = try Self.read(["OTEL_SERVICE_NAME": "n", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"])
        #expect(named?.resource.contains(SpanAttribute("service.name", "n")) == true)
        let plain = try Self.read([:])
        #expect(plain?.resource.contains(SpanAttribute("service.name", "martlet-x")) == true)
        #expect(plain?.resource.contains(SpanAttribute("service.instance.id", "i1")) == true)
        #expect(plain?.resource.contains(SpanAttribute("service.version", .string(Release.version))) == true)
        for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_RESOURCE_ATTRIBUTES"] {
            for text in ["hush", "=hush", "a=%hush", (0...64).map { "a\($0)=hush" }.joined(separator: ",")] {
                #expect(Self.mistakes([name: text]).count == 1, "\(name) \(text)")
            }
        }
        for text in ["a b=hush", "a=hush%0Ab: c", "a=%C3%A9hush"] {
            let told = Self.mistakes(["OTEL_EXPORTER_OTLP_HEADERS": text])
            #expect(told.count == 1 && !told[0].contains("hush"), "a header may hold a key")
        }
    }

    @Test("samplers are named as the specification names them")
    func samplers() throws {
        #expect(try Self.read([:])?.sampler == Sampler(root: .always, followsParent: true))
        #expect(
            try Self.read(["OTEL_TRACES_SAMPLER": "always_off"])?.sampler == Sampler(root: .never, followsParent: false)
        )
        let share = ["OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"]
        #expect(try Self.read(share)?.sampler == Sampler(root: .share(0.25), followsParent: true))
        #expect(try Self.read(["OTEL_TRACES_SAMPLER": "traceidratio"])?.sampler.root == .share(1))
        #expect(try Self.read(["OTEL_TRACES_SAMPLER_ARG": "x"]) != nil, "it has no argument")
        for share in ["1.1", "-0.1", "half", "nan", "1,0"] {
            #expect(
                Self.mistakes(["OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": share]).count == 1)
        }
    }

    @Test("all mistakes are told at once")
    func mistakes() throws {
        let told = Self.mistakes([
            "OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "0", "OTEL_BSP_SCHEDULE_DELAY": "soon", "OTEL_BSP_MAX_QUEUE_SIZE": "70000",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "9000", "OTEL_RESOURCE_ATTRIBUTES": "x", "MARTLET_TRACE_INCOMING": "all",
            "OTEL_EXPORTER_OTLP_HEADERS": "x",
        ])
        #expect(told.count == 9, "\(told)")
        let settings = try #require(
            try Self.read([
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
                "OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_SCHEDULE_DELAY": "20", "MARTLET_TRACE_INCOMING": "proxy",
            ]))
        #expect(settings.timeoutSeconds == 3 && settings.queueMax == 10 && settings.batchMax == 10)
        #expect(settings.delaySeconds == 0.02 && settings.incoming == .proxy)
    }
}

import Foundation
import Tracing

/// Where traces go and how, by the names of OpenTelemetry's specification (Environment Variable Specification; OTLP
/// Exporter Configuration). What it leaves to us is kept within bounds, and a wrong value is a mistake of the
/// configuration, not a warning.
public struct TraceSettings: Sendable {
    /// Whose word about a trace is taken for a request.
    public enum Incoming: String, CaseIterable, Sendable {
        /// Of who stands within the trusted networks; a client's out in the world is only named as a link.
        case inside
        /// Of whoever the front door passes on: where that makes the context itself.
        case proxy
        case never
    }

    public enum Exporter: String, CaseIterable, Sendable { case otlp, none }

    static let queueMaxDefault = 8_192
    static let queueMaxMax = 65_536
    static let batchMaxDefault = 512
    static let delayMillisecondsDefault = 5_000
    static let delayMillisecondsMax = 60_000
    static let timeoutMillisecondsDefault = 10_000
    static let timeoutMillisecondsMax = 60_000
    /// Headers, and attributes of the resource.
    static let pairsMax = 64

    public let endpoint: String
    /// They may hold the collector's key.
    public let headers: [(name: String, value: Secret)]
    public let resource: [SpanAttribute]
    public let sampler: Sampler
    public let incoming: Incoming
    /// Spans that wait; more are dropped.
    public let queueMax: Int
    public let batchMax: Int
    /// A span waits no longer for others to go with.
    public let delaySeconds: Double
    /// Of one request to the collector.
    public let timeoutSeconds: Int

    /// Nil when no endpoint is set: of the rest only `MARTLET_TRACE_INCOMING` is looked at then, as the other names are
    /// not ours alone.
    /// - Parameters:
    ///   - service: what `service.name` is unless it is set.
    ///   - instance: what `service.instance.id` is unless `MARTLET_INSTANCE` or it is set.
    public init?(_ environment: inout Environment, service: String, instance: String) {
        incoming = environment.choice("MARTLET_TRACE_INCOMING", default: .inside)
        guard let endpoint = Self.endpoint(&environment) else { return nil }
        guard !environment.bool("OTEL_SDK_DISABLED", default: false),
            environment.choice("OTEL_TRACES_EXPORTER", default: Exporter.otlp) == .otlp
        else { return nil }
        self.endpoint = endpoint
        Self.checkProtocol(&environment)
        headers = Self.headers(&environment)
        resource = Self.resource(&environment, service: service, instance: instance)
        sampler = Self.sampler(&environment)
        queueMax = environment.int("OTEL_BSP_MAX_QUEUE_SIZE", default: Self.queueMaxDefault, in: 1...Self.queueMaxMax)
        batchMax = environment.int(
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", default: min(Self.batchMaxDefault, queueMax), in: 1...queueMax)
        let delay = environment.int(
            "OTEL_BSP_SCHEDULE_DELAY", default: Self.delayMillisecondsDefault, in: 1...Self.delayMillisecondsMax)
        delaySeconds = Double(delay) / 1000
        let range = 1...Self.timeoutMillisecondsMax
        let general = environment.int(
            "OTEL_EXPORTER_OTLP_TIMEOUT", default: Self.timeoutMillisecondsDefault, in: range)
        let timeout = environment.int("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", default: general, in: range)
        timeoutSeconds = (timeout + 999) / 1000
    }

    /// The one for traces is used as it is, the one for everything has the path of traces put behind it.
    private static func endpoint(_ environment: inout Environment) -> String? {
        for (name, path) in [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""), ("OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/traces")]
        {
            guard let text = environment.value(name) else { continue }
            guard let url = URLComponents(string: text), ["http", "https"].contains(url.scheme?.lowercased() ?? ""),
                url.host?.isEmpty == false, url.query == nil, url.fragment == nil,
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                environment.mistake("\(name) must be an http or https URL such as http://collector:4318")
                return text
            }
            guard !path.isEmpty else { return text }
            return (text.hasSuffix("/") ? String(text.dropLast()) : text) + path
        }
        return nil
    }

    private static func checkProtocol(_ environment: inout Environment) {
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            guard let text = environment.value(name) else { continue }
            if text != "http/json" {
                environment.mistake("\(name) is \"\(text)\"; traces are sent as http/json, to a collector's port 4318")
            }
            return
        }
    }

    private static func headers(_ environment: inout Environment) -> [(name: String, value: Secret)] {
        for name in ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"] {
            guard let text = environment.value(name) else { continue }
            let pairs = pairs(text) { $0.utf8.allSatisfy(isNameByte) }
            guard let pairs, pairs.allSatisfy({ $0.value.utf8.allSatisfy { (0x20...0x7E).contains($0) } }) else {
                // Not what it is: it may be a key.
                environment.mistake("\(name) must be like name=value,name=value, with other characters as %20")
                return []
            }
            return pairs.map { ($0.name, Secret($0.value)) }
        }
        return []
    }

    private static func resource(
        _ environment: inout Environment, service: String, instance: String
    ) -> [SpanAttribute] {
        var found: [(name: String, value: String)] = [
            ("service.name", service), ("service.namespace", "martlet"), ("service.version", Release.version),
            ("service.instance.id", environment.value("MARTLET_INSTANCE") ?? instance),
        ]
        func put(_ name: String, _ value: String) {
            found.removeAll { $0.name == name }
            found.append((name, value))
        }
        if let text = environment.value("OTEL_RESOURCE_ATTRIBUTES") {
            if let pairs = pairs(text, isName: { !$0.isEmpty }) {
                for pair in pairs { put(pair.name, pair.value) }
            } else {
                environment.mistake(
                    "OTEL_RESOURCE_ATTRIBUTES is \"\(text)\"; it must be like region=eu,team=jobs"
                )
            }
        }
        if let name = environment.value("OTEL_SERVICE_NAME") { put("service.name", name) }
        put("telemetry.sdk.language", "swift")
        put("telemetry.sdk.name", "martlet")
        return found.map { SpanAttribute($0.name, .string($0.value)) }
    }

    private static func sampler(_ environment: inout Environment) -> Sampler {
        let name = environment.choice("OTEL_TRACES_SAMPLER", default: Sampler.Name.parentOrAlways)
        var share = 1.0
        if name == .share || name == .parentOrShare, let text = environment.value("OTEL_TRACES_SAMPLER_ARG") {
            if let value = Double(text), (0...1).contains(value) {
                share = value
            } else {
                environment.mistake("OTEL_TRACES_SAMPLER_ARG is \"\(text)\"; it must be a number from 0 to 1")
            }
        }
        return Sampler(name, share: share)
    }

    /// `a=b,c=d`, blanks around names and values dropped, values percent-encoded (the format of W3C Baggage, without
    /// properties). Nil when it is something else.
    static func pairs(_ text: String, isName: (String) -> Bool) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for part in text.split(separator: ",") {
            guard let equals = part.firstIndex(of: "=") else {
                if part.allSatisfy(\.isWhitespace) { continue }
                return nil
            }
            let name = part[..<equals].trimmingCharacters(in: .whitespaces)
            let raw = part[part.index(after: equals)...].trimmingCharacters(in: .whitespaces)
            guard !name.isEmpty, isName(name), let value = raw.removingPercentEncoding else { return nil }
            pairs.append((name, value))
        }
        return pairs.count <= pairsMax ? pairs : nil
    }

    /// Of a field's name (RFC 9110 §5.6.2).
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

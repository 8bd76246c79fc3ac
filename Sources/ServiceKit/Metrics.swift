import Synchronization

/// A number that only grows.
public final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    public func add(_ count: Int = 1) { value.wrappingAdd(count, ordering: .relaxed) }
    public var count: Int { value.load(ordering: .relaxed) }
}

/// A number that goes up and down.
public final class Gauge: Sendable {
    private let value = Atomic<Int>(0)
    public func add(_ count: Int) { value.wrappingAdd(count, ordering: .relaxed) }
    public func set(_ count: Int) { value.store(count, ordering: .relaxed) }
    public var count: Int { value.load(ordering: .relaxed) }
}

/// Durations in seconds, in fixed buckets.
public final class DurationHistogram: Sendable {
    /// Upper bounds in microseconds: from a read by key to a request that somebody gives up on.
    static let bounds = [
        500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
    ]

    private struct State {
        var buckets = [Int](repeating: 0, count: DurationHistogram.bounds.count + 1)
        var microseconds = 0
    }

    private let state = Mutex(State())

    public func record(microseconds: Int) {
        let index = Self.bounds.firstIndex { microseconds <= $0 } ?? Self.bounds.count
        state.withLock { state in
            state.buckets[index] += 1
            state.microseconds += microseconds
        }
    }

    var snapshot: (buckets: [Int], microseconds: Int) { state.withLock { ($0.buckets, $0.microseconds) } }
}

/// The metrics of a process, in Prometheus' text format (exposition format 0.0.4), base units.
public final class Metrics: Sendable {
    /// Label sets of one metric: more is a label that should not be one.
    public static let seriesMax = 1000

    private enum Instrument {
        case counter(Counter)
        case gauge(Gauge)
        case read(@Sendable () -> Double)
        case histogram(DurationHistogram)
    }

    private struct Family {
        let help: String
        let type: String
        var series: [(labels: String, instrument: Instrument)] = []
    }

    private let families = Mutex<[String: Family]>([:])

    public init() {}

    /// The counter of this name and these labels; the same one for the same arguments.
    public func counter(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Counter {
        instrument(name, help, "counter", labels, make: { .counter(Counter()) }) {
            if case .counter(let counter) = $0 { counter } else { nil }
        } ?? Counter()
    }

    public func gauge(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Gauge {
        instrument(name, help, "gauge", labels, make: { .gauge(Gauge()) }) {
            if case .gauge(let gauge) = $0 { gauge } else { nil }
        } ?? Gauge()
    }

    public func histogram(
        _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]
    ) -> DurationHistogram {
        instrument(name, help, "histogram", labels, make: { .histogram(DurationHistogram()) }) {
            if case .histogram(let histogram) = $0 { histogram } else { nil }
        } ?? DurationHistogram()
    }

    /// A gauge that is read when it is asked for.
    public func observe(
        _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
        _ read: @escaping @Sendable () -> Double
    ) {
        _ = instrument(name, help, "gauge", labels, make: { .read(read) }) { _ in true }
    }

    private func instrument<T>(
        _ name: String, _ help: String, _ type: String, _ labels: KeyValuePairs<String, String>,
        make: () -> Instrument, as cast: (Instrument) -> T?
    ) -> T? {
        let labels = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
        return families.withLock { families in
            var family = families[name] ?? Family(help: help, type: type)
            if let known = family.series.first(where: { $0.labels == labels }) { return cast(known.instrument) }
            guard family.series.count < Self.seriesMax else { return nil }
            let instrument = make()
            family.series.append((labels, instrument))
            families[name] = family
            return cast(instrument)
        }
    }

    public func text() -> String {
        let families = families.withLock { $0 }
        var out = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            out += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.type)\n"
            for (labels, instrument) in family.series {
                let braces = labels.isEmpty ? "" : "{\(labels)}"
                switch instrument {
                case .counter(let counter): out += "\(name)\(braces) \(counter.count)\n"
                case .gauge(let gauge): out += "\(name)\(braces) \(gauge.count)\n"
                case .read(let read): out += "\(name)\(braces) \(read())\n"
                case .histogram(let histogram): out += Self.text(name, labels, histogram)
                }
            }
        }
        return out
    }

    private static func text(_ name: String, _ labels: String, _ histogram: DurationHistogram) -> String {
        let (buckets, microseconds) = histogram.snapshot
        let prefix = labels.isEmpty ? "" : labels + ","
        var out = ""
        var sum = 0
        for (index, count) in buckets.enumerated() {
            sum += count
            let bounds = DurationHistogram.bounds
            let bound = index < bounds.count ? String(Double(bounds[index]) / 1_000_000) : "+Inf"
            out += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(sum)\n"
        }
        let braces = labels.isEmpty ? "" : "{\(labels)}"
        out += "\(name)_sum\(braces) \(Double(microseconds) / 1_000_000)\n\(name)_count\(braces) \(sum)\n"
        return out
    }

    private static func escaped(_ value: String) -> String {
        var out = ""
        for character in value {
            switch character {
            case "\\": out += "\\\\"
            case "\"": out += "\\\""
            case "\n": out += "\\n"
            default: out.append(character)
            }
        }
        return out
    }
}

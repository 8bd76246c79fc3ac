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

/// Values in buckets. Takes a lock for each record: what happens at every request is counted by its loop instead, and
/// collected (`Metrics.collect`).
public final class Histogram: Sendable {
    /// What a person waits for.
    public static let seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    /// What runs in the background.
    public static let longSeconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]
    /// How many there are of something.
    public static let sizes: [Double] = [1, 2, 5, 10, 20, 50, 100, 200, 500]

    private struct State {
        var buckets: [Int]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(buckets: [Int](repeating: 0, count: bounds.count + 1)))
    }

    public func record(_ value: Double) { record(CollectionOfOne(value)) }

    /// All under one lock.
    public func record(_ values: some Collection<Double>) {
        state.withLock { state in
            for value in values {
                state.buckets[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
                state.sum += value
            }
        }
    }

    var sample: MetricFamily.Value {
        let state = state.withLock { $0 }
        return .buckets(bounds: bounds, counts: state.buckets, sum: state.sum)
    }
}

/// The metrics of a process, in base units. Names, meanings and what to do about them: docs/operations/metrics.md.
public final class Metrics: Sendable {
    /// Label sets of one metric: more is a label that should not be one.
    public static let seriesMax = 1000

    private enum Instrument {
        case counter(Counter)
        case gauge(Gauge)
        case read(@Sendable () -> Double)
        case histogram(Histogram)

        var value: MetricFamily.Value {
            switch self {
            case .counter(let counter): .whole(counter.count)
            case .gauge(let gauge): .whole(gauge.count)
            case .read(let read): .number(read())
            case .histogram(let histogram): histogram.sample
            }
        }
    }

    private struct Family {
        let help: String
        let type: MetricFamily.Kind
        var series: [(labels: String, instrument: Instrument)] = []
    }

    /// Gives what is kept elsewhere, when somebody asks. It may wait for loops and, for seconds, for the database.
    public typealias Collector = @Sendable () async -> [MetricFamily]

    private let families = Mutex<[String: Family]>([:])
    private let collectors = Mutex<[Collector]>([])

    public init() {}

    /// The counter of this name and these labels; the same one for the same arguments. Looked for under a lock: who
    /// counts often keeps it.
    public func counter(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Counter {
        instrument(name, help, .counter, labels, make: { .counter(Counter()) }) {
            if case .counter(let counter) = $0 { counter } else { nil }
        } ?? Counter()
    }

    public func gauge(_ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:]) -> Gauge {
        instrument(name, help, .gauge, labels, make: { .gauge(Gauge()) }) {
            if case .gauge(let gauge) = $0 { gauge } else { nil }
        } ?? Gauge()
    }

    /// - Parameter bounds: the upper ends of the buckets, rising; the same for all series of a name.
    public func histogram(
        _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
        bounds: [Double] = Histogram.seconds
    ) -> Histogram {
        instrument(name, help, .histogram, labels, make: { .histogram(Histogram(bounds: bounds)) }) {
            if case .histogram(let histogram) = $0 { histogram } else { nil }
        } ?? Histogram(bounds: bounds)
    }

    /// A gauge that is read when it is asked for.
    public func observe(
        _ name: String, _ help: String, labels: KeyValuePairs<String, String> = [:],
        _ read: @escaping @Sendable () -> Double
    ) {
        _ = instrument(name, help, .gauge, labels, make: { .read(read) }) { _ in true }
    }

    public func collect(_ collector: @escaping Collector) { collectors.withLock { $0.append(collector) } }

    private func instrument<T>(
        _ name: String, _ help: String, _ type: MetricFamily.Kind, _ labels: KeyValuePairs<String, String>,
        make: () -> Instrument, as cast: (Instrument) -> T?
    ) -> T? {
        let labels = MetricFamily.text(labels)
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

    /// What was made here, without what is collected.
    public func text() -> String { MetricFamily.text(kept) }

    /// Everything, in Prometheus' text format (exposition format 0.0.4).
    public func page() async -> String {
        var all = kept
        for collector in collectors.withLock({ $0 }) { all += await collector() }
        return MetricFamily.text(all)
    }

    private var kept: [MetricFamily] {
        families.withLock { $0 }.map { name, family in
            MetricFamily(
                name, family.help, family.type, series: family.series.map { ($0.labels, $0.instrument.value) })
        }
    }
}

import EventLoop

/// A metric with its series, as it is at one moment.
public struct MetricFamily: Sendable {
    public enum Kind: String, Sendable { case counter, gauge, histogram }

    enum Value {
        case whole(Int)
        case number(Double)
        /// - Parameter counts: of each bucket by itself, and one more for what is above the last bound.
        case buckets(bounds: [Double], counts: [Int], sum: Double)
    }

    let name: String
    let help: String
    let kind: Kind
    private(set) var series: [(labels: String, value: Value)]

    public init(_ name: String, _ help: String, _ kind: Kind) { self.init(name, help, kind, series: []) }

    init(_ name: String, _ help: String, _ kind: Kind, series: [(labels: String, value: Value)]) {
        self.name = name
        self.help = help
        self.kind = kind
        self.series = series
    }

    public mutating func add(_ value: Int, _ labels: KeyValuePairs<String, String> = [:]) {
        series.append((Self.text(labels), .whole(value)))
    }

    public mutating func add(_ value: Double, _ labels: KeyValuePairs<String, String> = [:]) {
        series.append((Self.text(labels), .number(value)))
    }

    public mutating func add(_ durations: DurationCounts, _ labels: KeyValuePairs<String, String> = [:]) {
        let bounds = DurationCounts.boundsMicroseconds.map { Double($0) / 1_000_000 }
        let sum = Double(durations.nanoseconds) / 1_000_000_000
        series.append((Self.text(labels), .buckets(bounds: bounds, counts: durations.buckets, sum: sum)))
    }

    // MARK: The text format

    /// A name that comes twice, from two collectors, is one metric: Prometheus refuses a page that has it twice.
    static func text(_ families: [MetricFamily]) -> String {
        var byName: [String: MetricFamily] = [:]
        for family in families {
            if byName[family.name] == nil {
                byName[family.name] = family
            } else {
                byName[family.name]?.series += family.series
            }
        }
        var out = ""
        for family in byName.values.sorted(by: { $0.name < $1.name }) where !family.series.isEmpty {
            out += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
            for (labels, value) in family.series { append(family.name, labels, value, to: &out) }
        }
        return out
    }

    private static func append(_ name: String, _ labels: String, _ value: Value, to out: inout String) {
        let braces = labels.isEmpty ? "" : "{\(labels)}"
        switch value {
        case .whole(let number): out += "\(name)\(braces) \(number)\n"
        case .number(let number): out += "\(name)\(braces) \(number)\n"
        case .buckets(let bounds, let counts, let sum):
            let prefix = labels.isEmpty ? "" : labels + ","
            var running = 0
            for (index, count) in counts.enumerated() {
                running += count
                let bound = index < bounds.count ? "\(bounds[index])" : "+Inf"
                out += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(running)\n"
            }
            out += "\(name)_sum\(braces) \(sum)\n\(name)_count\(braces) \(running)\n"
        }
    }

    static func text(_ labels: KeyValuePairs<String, String>) -> String {
        labels.map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",")
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

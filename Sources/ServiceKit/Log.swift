import Foundation
import Synchronization
import Tracing

/// A line of a log: one JSON object on standard error, or a short text line for people.
///
/// Messages are constants; what varies goes into fields. No personal data, no secrets, no query strings. Lines about a
/// traced request or work item name its trace.
public struct Log: Sendable {
    public enum Level: String, Sendable, CaseIterable, Comparable {
        case debug, info, warning, error

        private var order: Int { Self.allCases.firstIndex(of: self) ?? 0 }
        public static func < (left: Level, right: Level) -> Bool { left.order < right.order }
    }

    public enum Format: String, Sendable, CaseIterable {
        case json, text
    }

    public enum Value: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
        ExpressibleByStringInterpolation
    {
        case string(String)
        case int(Int64)
        case double(Double)
        case bool(Bool)

        public init(stringLiteral value: String) { self = .string(value) }
        public init(integerLiteral value: Int64) { self = .int(value) }
        public init(booleanLiteral value: Bool) { self = .bool(value) }
    }

    public let service: String
    public let level: Level
    private let format: Format
    private let sink: LogSink
    private let now: @Sendable () -> Date
    private let context: [(String, Value)]

    public init(
        service: String, level: Level = .info, format: Format = .json, sink: LogSink,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.init(service: service, level: level, format: format, sink: sink, now: now, context: [])
    }

    private init(
        service: String, level: Level, format: Format, sink: LogSink, now: @escaping @Sendable () -> Date,
        context: [(String, Value)]
    ) {
        self.service = service
        self.level = level
        self.format = format
        self.sink = sink
        self.now = now
        self.context = context
    }

    /// Writes nowhere.
    public static let silent = Log(service: "", level: .error, sink: LogSink(discarding: true))

    /// The same log with fields that every line carries.
    public func with(_ fields: KeyValuePairs<String, Value>) -> Log {
        Log(
            service: service, level: level, format: format, sink: sink, now: now,
            context: context + fields.map { ($0, $1) })
    }

    public func debug(_ message: StaticString, _ fields: KeyValuePairs<String, Value> = [:]) {
        write(.debug, message, fields)
    }
    public func info(_ message: StaticString, _ fields: KeyValuePairs<String, Value> = [:]) {
        write(.info, message, fields)
    }
    public func warning(_ message: StaticString, _ fields: KeyValuePairs<String, Value> = [:]) {
        write(.warning, message, fields)
    }
    public func error(_ message: StaticString, _ fields: KeyValuePairs<String, Value> = [:]) {
        write(.error, message, fields)
    }

    private func write(_ level: Level, _ message: StaticString, _ fields: KeyValuePairs<String, Value>) {
        guard level >= self.level else { return }
        var all = context + fields.map { ($0, $1) }
        if let trace = TraceContext.current {
            all += [("trace_id", .string("\(trace.trace)")), ("span_id", .string(trace.spanText))]
        }
        var line = ""
        switch format {
        case .json:
            line = "{\"time\":\"\(Self.timestamp(now()))\",\"level\":\"\(level.rawValue)\",\"service\":"
            line += Self.quoted(service) + ",\"message\":" + Self.quoted("\(message)")
            for (name, value) in all { line += "," + Self.quoted(name) + ":" + Self.json(value) }
            line += "}\n"
        case .text:
            let time = Self.timestamp(now()).dropFirst(11).prefix(8)
            line = "\(time) \(level == .info ? "" : level.rawValue.uppercased() + " ")\(message)"
            for (name, value) in all { line += " \(name)=" + Self.json(value) }
            line += "\n"
        }
        sink.write(line)
    }

    private static func timestamp(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    private static func json(_ value: Value) -> String {
        switch value {
        case .string(let text): quoted(withoutAddresses(text))
        case .int(let number): String(number)
        case .double(let number): number.isFinite ? String(number) : "null"
        case .bool(let flag): flag ? "true" : "false"
        }
    }

    /// What errors quote may name people: the words of a mail server, the row that a constraint refused.
    static func withoutAddresses(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        var out = ""
        var rest = text[...]
        while let at = rest.firstIndex(of: "@") {
            let before = rest[..<at].lastIndex(where: isBorder).map { rest.index(after: $0) } ?? rest.startIndex
            let behind = rest[at...].firstIndex(where: isBorder) ?? rest.endIndex
            out += rest[..<before] + (before < at ? "•••" : rest[before..<behind])
            rest = rest[behind...]
        }
        return out + rest
    }

    /// Between the words of which an address is one.
    private static func isBorder(_ character: Character) -> Bool {
        character.isWhitespace || "<>()[]{}\"',;=|".contains(character)
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let hex = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

/// Writes lines to a descriptor on a thread of its own: a full pipe never holds a loop. Beyond `bytesMax` lines are
/// dropped and counted.
public final class LogSink: Sendable {
    public static let bytesMax = 1 << 20

    private struct State {
        var pending: [UInt8] = []
        var dropped = 0
        var busy = false
    }

    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)
    private let idle = DispatchSemaphore(value: 0)
    private let discarding: Bool

    public init(descriptor: Int32 = 2) {
        discarding = false
        let thread = Thread { [self] in drain(into: descriptor) }
        thread.name = "log"
        thread.stackSize = 256 << 10
        thread.start()
    }

    init(discarding: Bool) { self.discarding = discarding }

    func write(_ line: String) {
        guard !discarding else { return }
        let wake = state.withLock { state in
            guard state.pending.count + line.utf8.count <= Self.bytesMax else {
                state.dropped += 1
                return false
            }
            state.pending.append(contentsOf: line.utf8)
            defer { state.busy = true }
            return !state.busy
        }
        if wake { available.signal() }
    }

    /// Waits until everything has been handed to the kernel, a second at most. For the end of a process.
    public func flush() {
        guard !discarding else { return }
        let end = DispatchTime.now() + 1
        // It was idle many times before while nobody waited: each of those counts as well, and says nothing of now.
        while state.withLock({ $0.busy }) {
            guard idle.wait(timeout: end) == .success else { return }
        }
    }

    private func drain(into descriptor: Int32) {
        while true {
            available.wait()
            while let (bytes, dropped) = take() {
                var out = bytes
                if dropped > 0 {
                    let line = "{\"level\":\"warning\",\"message\":\"log lines dropped\",\"count\":\(dropped)}\n"
                    out += Array(line.utf8)
                }
                Self.writeAll(out, to: descriptor)
            }
            idle.signal()
        }
    }

    /// What is to be written; nil, and idle from then on, when there is nothing.
    private func take() -> (bytes: [UInt8], dropped: Int)? {
        state.withLock { state in
            guard !state.pending.isEmpty || state.dropped > 0 else {
                state.busy = false
                return nil
            }
            defer {
                state.pending = []
                state.dropped = 0
            }
            return (state.pending, state.dropped)
        }
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                guard let base = buffer.baseAddress else { return }
                let count = Foundation.write(descriptor, base + sent, buffer.count - sent)
                if count < 0 {
                    if errno == EINTR { continue }
                    // Nobody reads the log any more; there is nowhere left to say so.
                    return
                }
                sent += count
            }
        }
    }
}

import EventLoop
import Foundation
import Synchronization
import Tracing
import Transfer

/// Sends spans to the collector, a batch at a time, away from the loops: a collector that is slow, away or wrong costs
/// spans and nothing else.
final class SpanExporter: Sendable {
    /// Of one batch. With the pauses between them a collector may be away for some 15 seconds before spans are lost,
    /// and the queue bounds how many wait meanwhile.
    static let attemptsMax = 5
    static let pauseSecondsFirst = 1.0
    static let pauseSecondsMax = 8.0
    /// Of the answer.
    static let answerBytesMax = 64 << 10
    /// For what still waits when the process ends.
    static let flushSecondsMax = 1.0

    typealias Send = @Sendable (_ body: [UInt8], _ secondsMax: Int) async throws -> HTTPClientResponse

    private struct State {
        var isStopping = false
        var isRung = false
        var isFailing = false
        /// Of the pause before a batch, which a full one ends.
        var sleeper: Task<Void, Never>?
        /// Of the pause before another attempt.
        var backOff: Task<Void, Never>?
        var running: Task<Void, Never>?
        var exported = 0
        var rejected = 0
        var failed = 0
    }

    private let tracer: Tracer
    private let settings: TraceSettings
    private let clock: any ServiceClock
    private let random: @Sendable () -> Double
    private let log: Log
    private let send: Send
    private let state = Mutex(State())

    /// - Parameter random: in `0..<1`, for the pauses between attempts.
    init(
        _ tracer: Tracer, settings: TraceSettings, clock: any ServiceClock, log: Log,
        random: @escaping @Sendable () -> Double,
        send: @escaping Send
    ) {
        self.tracer = tracer
        self.settings = settings
        self.clock = clock
        self.log = log
        self.random = random
        self.send = send
        tracer.whenFull { [weak self] in self?.ring() }
    }

    func start() {
        state.withLock { state in
            if state.running == nil, !state.isStopping { state.running = Task { await self.run() } }
        }
    }

    /// Sends what waits, for `flushSecondsMax` at most, and drops the rest.
    func stop() async {
        let running = state.withLock { state in
            state.isStopping = true
            state.sleeper?.cancel()
            state.backOff?.cancel()
            return state.running
        }
        let end = OneEnd()
        let timer = Task { [clock] in
            do { try await clock.sleep(seconds: Self.flushSecondsMax) } catch { return }
            end.come()
        }
        // An attempt that hangs holds a thread of libcurl's until the process ends, and nobody else.
        _ = Task {
            await running?.value
            end.come()
        }
        await end.wait()
        timer.cancel()
        let lost = tracer.dropAll()
        if lost > 0 { log.warning("spans were dropped at the end", ["spans": .int(Int64(lost))]) }
    }

    private func run() async {
        while !isStopping {
            await pause(seconds: settings.delaySeconds, endsByBell: true)
            await exportAll()
        }
    }

    private func exportAll() async {
        while true {
            let batch = tracer.takeBatch()
            guard !batch.isEmpty else { return }
            await export(batch)
        }
    }

    private func export(_ batch: [FinishedSpan]) async {
        let body = SpanWriter.write(batch, resource: settings.resource)
        var attempt = 1
        while true {
            switch await tryOnce(body) {
            case .taken(let rejected):
                state.withLock { state in
                    state.rejected += min(rejected, batch.count)
                    state.exported += max(0, batch.count - rejected)
                }
                return rejected > 0 ? fails("the collector rejected spans") : works()
            case .refused(let reason): return lose(batch, reason)
            case .later(let reason, let seconds):
                fails(reason)
                guard attempt < Self.attemptsMax, !isStopping else { return lose(batch, reason) }
                let own = min(Self.pauseSecondsMax, Self.pauseSecondsFirst * pow(2, Double(attempt - 1)))
                await pause(seconds: seconds ?? own * (0.5 + random() / 2), endsByBell: false)
                attempt += 1
            }
        }
    }

    private func tryOnce(_ body: [UInt8]) async -> ExportAnswer {
        let secondsMax = isStopping ? Int(Self.flushSecondsMax.rounded(.up)) : settings.timeoutSeconds
        do {
            return ExportAnswer(try await send(body, secondsMax), now: clock.now())
        } catch {
            return ExportAnswer(error)
        }
    }

    private func lose(_ batch: [FinishedSpan], _ reason: String) {
        state.withLock { $0.failed += batch.count }
        fails(reason)
    }

    // MARK: Waiting

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    /// A batch is there. From any thread.
    private func ring() {
        state.withLock { state in
            state.isRung = true
            state.sleeper?.cancel()
        }
    }

    private func pause(seconds: Double, endsByBell: Bool) async {
        let sleeper: Task<Void, Never>? = state.withLock { state in
            if state.isStopping || (endsByBell && state.isRung) { return nil }
            let sleeper = Task { [clock] in
                // Cancelled is woken.
                do { try await clock.sleep(seconds: seconds) } catch { return }
            }
            state.sleeper = endsByBell ? sleeper : nil
            state.backOff = endsByBell ? nil : sleeper
            return sleeper
        }
        await sleeper?.value
        state.withLock { state in
            state.sleeper = nil
            state.backOff = nil
            if endsByBell { state.isRung = false }
        }
    }

    // MARK: What is told

    /// Once, until it works again: how many spans it costs is told by a metric.
    private func fails(_ reason: String) {
        let isNews = state.withLock { state in
            defer { state.isFailing = true }
            return !state.isFailing
        }
        if isNews { log.warning("traces are not exported", ["reason": .string(reason)]) }
    }

    private func works() {
        let isNews = state.withLock { state in
            defer { state.isFailing = false }
            return state.isFailing
        }
        if isNews { log.info("traces are exported again") }
    }

    var families: [MetricFamily] {
        let (waiting, dropped) = tracer.counts
        let counts = state.withLock { ($0.exported, $0.rejected, $0.failed) }
        var spans = MetricFamily("martlet_trace_spans_total", "Spans that ended, by what became of them.", .counter)
        spans.add(counts.0, ["outcome": "exported"])
        spans.add(counts.1, ["outcome": "rejected"])
        spans.add(counts.2, ["outcome": "failed"])
        spans.add(dropped, ["outcome": "dropped"])
        var queue = MetricFamily("martlet_trace_spans_waiting", "Spans that wait for the collector.", .gauge)
        queue.add(waiting)
        return [spans, queue]
    }
}

/// Lets one wait for whatever comes first.
private final class OneEnd: Sendable {
    private struct State {
        var hasCome = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func come() {
        let waiter = state.withLock { state in
            state.hasCome = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.hasCome { state.waiter = continuation }
                return state.hasCome
            }
            if isOver { continuation.resume() }
        }
    }
}

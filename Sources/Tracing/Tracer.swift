import Synchronization

/// Begins spans, and keeps those that have ended until somebody exports them. Where nothing is traced there is none:
/// an optional tracer that is nil costs a comparison.
public final class Tracer: Sendable {
    private struct State {
        var waiting: [FinishedSpan] = []
        var dropped = 0
        var whenFull: (@Sendable () -> Void)?
    }

    public let sampler: Sampler
    let clock: SpanClock
    private let random: @Sendable () -> UInt64
    private let queueMax: Int
    private let batchMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - queueMax: spans that wait for the collector; more are dropped and counted.
    ///   - batchMax: so many are exported at once: `whenFull` is called when they are there.
    ///   - random: 64 bits of which each value is as likely as the others, for ids.
    public init(
        sampler: Sampler, queueMax: Int, batchMax: Int, clock: SpanClock = .system,
        random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    ) {
        self.sampler = sampler
        self.queueMax = queueMax
        self.batchMax = batchMax
        self.clock = clock
        self.random = random
    }

    // MARK: Beginning

    /// A span below `parent`, or the first of a trace.
    /// - Parameter link: another trace that this one has to do with.
    public func begin(
        _ name: String, _ kind: Span.Kind, parent: TraceContext?, link: TraceContext? = nil,
        _ attributes: [SpanAttribute] = []
    ) -> Span {
        let trace = parent?.trace ?? newTrace()
        let context = TraceContext(
            trace: trace, span: newSpan(), isSampled: sampler.samples(trace, parent: parent), state: parent?.state)
        return Span(
            self, context: context, parent: parent?.span, name: name, kind: kind, link: link, attributes: attributes,
            began: clock.begin())
    }

    /// A span below that of the present task, whose fate it shares; nil where there is none that is recorded.
    public func beginWithin(_ name: String, _ kind: Span.Kind, _ attributes: [SpanAttribute] = []) -> Span? {
        guard let parent = TraceContext.current, parent.isSampled else { return nil }
        return begin(below: parent, name, kind, attributes)
    }

    /// Whatever the sampler would say: what is part of a recorded span is recorded.
    public func begin(
        below parent: TraceContext, _ name: String, _ kind: Span.Kind, _ attributes: [SpanAttribute] = []
    ) -> Span {
        let context = TraceContext(
            trace: parent.trace, span: newSpan(), isSampled: parent.isSampled, state: parent.state)
        return Span(
            self, context: context, parent: parent.span, name: name, kind: kind, link: nil, attributes: attributes,
            began: clock.begin())
    }

    private func newTrace() -> TraceID {
        // An id of zeros is none.
        while true {
            let id = TraceID(high: random(), low: random())
            if id.high | id.low != 0 { return id }
        }
    }

    private func newSpan() -> UInt64 {
        while true {
            let id = random()
            if id != 0 { return id }
        }
    }

    // MARK: Those that have ended

    func take(_ span: FinishedSpan) {
        let whenFull: (@Sendable () -> Void)? = state.withLock { state in
            guard state.waiting.count < queueMax else {
                state.dropped += 1
                return nil
            }
            state.waiting.append(span)
            return state.waiting.count == batchMax ? state.whenFull : nil
        }
        whenFull?()
    }

    /// Called when a batch waits, wherever its last span ended: it must not wait.
    public func whenFull(_ call: @escaping @Sendable () -> Void) { state.withLock { $0.whenFull = call } }

    /// A batch at most, the oldest first.
    public func takeBatch() -> [FinishedSpan] {
        state.withLock { state in
            let batch = Array(state.waiting.prefix(batchMax))
            state.waiting.removeFirst(batch.count)
            return batch
        }
    }

    /// Throws away what waits and counts it as dropped. Returns how many there were.
    @discardableResult public func dropAll() -> Int {
        state.withLock { state in
            let count = state.waiting.count
            state.dropped += count
            state.waiting = []
            return count
        }
    }

    public var counts: (waiting: Int, dropped: Int) { state.withLock { ($0.waiting.count, $0.dropped) } }
}

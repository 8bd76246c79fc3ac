import Synchronization
import Testing

@testable import Tracing

/// Numbers that a test knows: 1, 2, 3…
private final class Count: Sendable {
    private let value = Mutex<UInt64>(0)
    func next() -> UInt64 {
        value.withLock { value in
            value += 1
            return value
        }
    }
}

private func tracer(
    _ sampler: Sampler = Sampler(root: .always, followsParent: true), queueMax: Int = 100, batchMax: Int = 10
) -> Tracer {
    let (ids, time) = (Count(), Count())
    return Tracer(
        sampler: sampler, queueMax: queueMax, batchMax: batchMax,
        clock: SpanClock {
            let now = time.next()
            return SpanClock.Moment(nanoseconds: 1_000_000 - 100 * now, steady: now)
        }, random: { ids.next() })
}

private let remote = TraceContext(trace: TraceID(high: 7, low: 8), span: 9, isSampled: true, state: "a=b")

@Suite("Tracers")
struct TracerTests {
    @Test("a span without a parent begins a trace; one below another shares its trace and its notes")
    func ids() {
        let tracer = tracer()
        let root = tracer.begin("root", .server, parent: nil)
        #expect(root.context.trace == TraceID(high: 1, low: 2) && root.context.span == 3 && root.context.isSampled)
        let child = tracer.begin("child", .server, parent: remote)
        #expect(child.context.trace == remote.trace && child.context.span == 4 && child.context.state == "a=b")
        child.end()
        #expect(tracer.takeBatch().map(\.parent) == [9])
    }

    @Test("zeros are no ids, however often they come")
    func zeros() {
        let numbers = Mutex<[UInt64]>([5, 0, 0, 7, 0, 0, 0])
        let tracer = Tracer(sampler: Sampler(.always, share: 1), queueMax: 1, batchMax: 1) {
            numbers.withLock { $0.popLast() ?? 1 }
        }
        let span = tracer.begin("x", .internal, parent: nil)
        #expect(span.context.trace == TraceID(high: 0, low: 7) && span.context.span == 5)
    }

    @Test("a span ends once, keeps what was said of it, and takes as long as the steady clock says")
    func ending() {
        let tracer = tracer()
        let span = tracer.begin("a", .client, parent: nil, link: remote, [SpanAttribute("one", "1")])
        span.end(name: "b", [SpanAttribute("two", 2)], error: "503")
        span.end(name: "c")
        let all = tracer.takeBatch()
        #expect(all.count == 1 && all[0].name == "b" && all[0].isError && all[0].link == remote)
        #expect(
            all[0].attributes == [
                SpanAttribute("one", "1"), SpanAttribute("two", 2), SpanAttribute("error.type", "503"),
            ])
        // The time of day went backwards meanwhile.
        #expect(all[0].ended - all[0].began == 1 && all[0].kind.rawValue == 3)
    }

    @Test("what is not sampled is passed on and never exported, nor is what is below it")
    func unsampled() {
        let tracer = tracer(Sampler(.never, share: 1))
        let span = tracer.begin("a", .server, parent: remote)
        #expect(!span.context.isSampled && span.context.trace == remote.trace)
        span.end()
        TraceContext.$current.withValue(span.context) { #expect(tracer.beginWithin("b", .client) == nil) }
        #expect(tracer.beginWithin("c", .client) == nil)
        tracer.begin(below: span.context, "d", .client).end()
        #expect(tracer.counts.waiting == 0 && tracer.counts.dropped == 0)
    }

    @Test("within a recorded span there are others, whatever the sampler would say of a trace of their own")
    func within() throws {
        let tracer = tracer(Sampler(root: .never, followsParent: true))
        try TraceContext.$current.withValue(remote) {
            let span = try #require(tracer.beginWithin("a", .client))
            span.end()
        }
        #expect(tracer.takeBatch().map(\.context.trace) == [remote.trace])
    }

    @Test("no more wait than there is room for; the rest is counted")
    func full() {
        let tracer = tracer(queueMax: 3, batchMax: 2)
        let calls = Count()
        tracer.whenFull { _ = calls.next() }
        for number in 0..<5 { tracer.begin("\(number)", .internal, parent: nil).end() }
        #expect(tracer.counts == (3, 2) && calls.next() == 2)
        #expect(tracer.takeBatch().map(\.name) == ["0", "1"] && tracer.takeBatch().map(\.name) == ["2"])
        #expect(tracer.takeBatch().isEmpty)
        tracer.begin("x", .internal, parent: nil).end()
        #expect(tracer.dropAll() == 1 && tracer.counts == (0, 3))
    }

    @Test("samplers do what their names say")
    func samplers() {
        let (on, off) = (remote, TraceContext(trace: remote.trace, span: 1, isSampled: false))
        let (low, high) = (TraceID(high: .max, low: 0), TraceID(high: 0, low: .max))
        for (name, root, withOn, withOff) in [
            (Sampler.Name.always, true, true, true), (.never, false, false, false),
            (.parentOrAlways, true, true, false),
            (.parentOrNever, false, true, false),
        ] {
            let sampler = Sampler(name, share: 0.5)
            #expect(sampler.samples(high, parent: nil) == root, "\(name)")
            #expect(sampler.samples(high, parent: on) == withOn && sampler.samples(high, parent: off) == withOff)
        }
        let half = Sampler(.share, share: 0.5)
        #expect(half.samples(low, parent: nil) && !half.samples(high, parent: nil))
        #expect(half.samples(TraceID(high: 0, low: .max / 2 - 1), parent: off))
        #expect(!half.samples(TraceID(high: 0, low: .max / 2 + 1), parent: on))
        #expect(Sampler(.parentOrShare, share: 0).samples(low, parent: on))
        #expect(!Sampler(.share, share: 0).samples(low, parent: nil))
        #expect(Sampler(.share, share: 1).samples(high, parent: nil))
    }
}

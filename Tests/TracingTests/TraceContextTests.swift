import Seeded
import Testing

@testable import Tracing

@Suite("Trace contexts")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test("a context is read as it was written, and written as it was read")
    func both() throws {
        let text = "00-\(Self.trace)-\(Self.span)-01"
        let context = try #require(TraceContext(traceparent: text, state: "a=b"))
        #expect(context.trace.description == Self.trace && context.spanText == Self.span)
        #expect(context.isSampled && context.state == "a=b" && context.traceparent == text)
        #expect(text.utf8.count == TraceContext.length)
        let off = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-00"))
        #expect(!off.isSampled && off.traceparent.hasSuffix("-00"))
        let small = TraceContext(trace: TraceID(high: 0, low: 1), span: 0xF, isSampled: false)
        #expect(small.traceparent == "00-\(String(repeating: "0", count: 31))1-000000000000000f-00")
    }

    @Test("of the flags only the first is known; a later version may have more behind it")
    func versions() {
        let middle = "-\(Self.trace)-\(Self.span)-"
        for (text, isSampled) in [
            ("00\(middle)03", true), ("00\(middle)fe", false), ("01\(middle)01", true),
            ("cc\(middle)01-what-is-this", true),
            ("fe\(middle)00-", false),
        ] { #expect(TraceContext(traceparent: text)?.isSampled == isSampled, "\(text)") }
    }

    @Test(
        "what is malformed is none",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-01-",
            "00-\(trace)-\(span)-01-x", "00-\(trace)-\(span)-011", "01-\(trace)-\(span)-01x", "ff-\(trace)-\(span)-01",
            "0-\(trace)-\(span)-001", "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
            "0G-\(trace)-\(span)-01", "00-\(trace)-\(span)-0A", "00-\(trace)-\(span)-zz",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-\(span)-01", "00-\(trace)-00F067AA0BA902B7-01",
            "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
            " 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-01 ", "00-\(trace)-00f067aa0ba902\u{0}7-01",
            "00-\(trace)-00f067aa0ba90é-01", "01-\(trace)-\(span)-01-" + String(repeating: "x", count: 500),
        ])
    func malformed(_ text: String) { #expect(TraceContext(traceparent: text) == nil) }

    @Test("two callers are none, and notes count with one only")
    func fields() {
        let text = "00-\(Self.trace)-\(Self.span)-01"
        #expect(TraceContext(traceparents: [text], states: ["a=1", "b=2"])?.state == "a=1,b=2")
        #expect(TraceContext(traceparents: [text], states: ["broken"])?.traceparent == text)
        #expect(TraceContext(traceparents: [text, text], states: []) == nil)
        #expect(TraceContext(traceparents: [], states: ["a=1"]) == nil)
        #expect(TraceContext(traceparents: ["x"], states: ["a=1"]) == nil)
    }

    @Test("notes of other systems are passed on whole, or not at all")
    func state() {
        let long = String(repeating: "v", count: 256)
        for (fields, whole) in [
            (["congo=t61rcWkgMzE"], "congo=t61rcWkgMzE"), ([" a=1 ,\tb=2 "], "a=1,b=2"), (["a=1,,b=2", ""], "a=1,b=2"),
            (["fw529a3039@dt=FfxYcg", "2a/b-c_d*=~!"], "fw529a3039@dt=FfxYcg,2a/b-c_d*=~!"), (["a=b c"], "a=b c"),
            (["a=\(long)"], "a=\(long)"),
        ] { #expect(TraceState.whole(fields) == whole) }
        for fields in [
            [], [""], [" , "], ["a"], ["=1"], ["a="], ["A=1"], ["_a=1"], ["a=1=2"], ["a=é"], ["a=\u{7}"], ["a=1,a=2"],
            ["a@b@c=1"], ["a@=1"], ["a=\(long)v"], ["a=\(long)", "b=\(long)"],
            [(0...32).map { "k\($0)=v" }.joined(separator: ",")],
        ] { #expect(TraceState.whole(fields) == nil, "\(fields)") }
        #expect(TraceState.whole([(0..<32).map { "k\($0)=v" }.joined(separator: ",")]) != nil)
    }

    @Test("whatever a header says, it gives a context that is written as it was read, or none")
    func fuzz() throws {
        let words = [
            "00-", "01-", "ff-", "-01", "-00", Self.trace, Self.span, "0000000000000000", "-", "A", "é", "\u{0}",
        ]
        var taken = 0
        let rounds = try Fuzz("traceparent", rounds: 20_000).run { fuzz in
            fuzz.input = fuzz.mutated(Array("00-\(Self.trace)-\(Self.span)-01".utf8), words: words, timesMax: 2)
            let text = String(decoding: fuzz.input, as: UTF8.self)
            guard let context = TraceContext(traceparent: text) else { return }
            taken += 1
            try fuzz.check(context.trace != TraceID(high: 0, low: 0) && context.span != 0, "an id of zeros")
            let written = context.traceparent
            try fuzz.checkEqual(TraceContext(traceparent: written), context, "read again")
            try fuzz.check(text.dropFirst(3).hasPrefix(written.dropFirst(3).dropLast(2)), "other ids: \(written)")
            if text.hasPrefix("00") { try fuzz.check(text.utf8.count == 55, "version 00 is longer") }
        }
        #expect(rounds < 20_000 || taken > 100)
    }

    @Test("whatever notes there are, what is passed on is within the limits and stays what it is")
    func fuzzState() throws {
        let pieces = ["a", "b1", "=", ",", " ", "\t", "@", "x=1", "y=2,", "_", "A", "é", "\u{7}", "~", "k=v,k2=v2"]
        var taken = 0
        let rounds = try Fuzz("tracestate", rounds: 20_000).run { fuzz in
            let text = fuzz.text(of: pieces, max: 30)
            fuzz.input = Array(text.utf8)
            guard let whole = TraceState.whole([text]) else { return }
            taken += 1
            try fuzz.check(whole.utf8.count <= TraceState.lengthMax, "too long")
            try fuzz.check(whole.split(separator: ",").count <= TraceState.membersMax, "too many")
            try fuzz.check(whole.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "not printable")
            try fuzz.checkEqual(TraceState.whole([whole]), whole, "read again")
        }
        #expect(rounds < 20_000 || taken > 100)
    }
}

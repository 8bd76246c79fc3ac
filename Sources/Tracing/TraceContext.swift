/// Where in a trace something happens: what is passed on, so that what is caused by it joins the same trace.
///
/// Read and written as `traceparent` and `tracestate` of the W3C recommendation Trace Context.
public struct TraceContext: Sendable, Hashable {
    /// Of the request or the work item that the present task is about; nil where nothing is traced.
    @TaskLocal public static var current: TraceContext?

    /// Of `traceparent`, version 00.
    public static let length = 55
    /// A later version may have more behind what we know of it. What is longer than this is none.
    public static let lengthMax = 512

    /// Both halves of the trace's id are never 0 at once.
    public let trace: TraceID
    /// Never 0.
    public let span: UInt64
    /// Whether whoever began the trace records it.
    public let isSampled: Bool
    /// `tracestate` as it came: other systems' notes, which are passed on and not read.
    public let state: String?

    public init(trace: TraceID, span: UInt64, isSampled: Bool, state: String? = nil) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
        self.state = state
    }

    /// The recommendation's §3.2.2 and §4.3: lower-case hexadecimal digits, no id of zeros, version 00 of exactly 55
    /// characters, a later one of as many or more, version ff never.
    /// - Returns: nil when it is malformed: the caller begins a trace of its own.
    public init?(traceparent: String, state: String? = nil) {
        let bytes = Array(traceparent.utf8)
        guard (Self.length...Self.lengthMax).contains(bytes.count), bytes[2] == Self.dash, bytes[35] == Self.dash,
            bytes[52] == Self.dash, let version = Hex.value(bytes[0..<2]), version != 0xFF,
            let high = Hex.value(bytes[3..<19]), let low = Hex.value(bytes[19..<35]),
            let span = Hex.value(bytes[36..<52]), let flags = Hex.value(bytes[53..<55])
        else { return nil }
        guard bytes.count == Self.length || (version > 0 && bytes[Self.length] == Self.dash) else { return nil }
        let trace = TraceID(high: high, low: low)
        guard trace != TraceID(high: 0, low: 0), span != 0 else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1, state: state)
    }

    /// By the fields of a request: one `traceparent`, and as many of `tracestate` as there are.
    public init?(traceparents: [String], states: [String]) {
        guard traceparents.count == 1, let only = traceparents.first else { return nil }
        self.init(traceparent: only, state: TraceState.whole(states))
    }

    public var traceparent: String {
        var text = "00-"
        trace.append(to: &text)
        text += "-"
        Hex.append(span, to: &text)
        return text + (isSampled ? "-01" : "-00")
    }

    public var spanText: String {
        var text = ""
        Hex.append(span, to: &text)
        return text
    }

    private static let dash = UInt8(ascii: "-")
}

/// The id of a trace, 128 bits.
public struct TraceID: Sendable, Hashable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 32 hexadecimal digits.
    public var description: String {
        var text = ""
        append(to: &text)
        return text
    }

    func append(to text: inout String) {
        Hex.append(high, to: &text)
        Hex.append(low, to: &text)
    }
}

enum Hex {
    /// Of at most 16 digits, lower-case only.
    static func value(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return value
    }

    /// All 16 digits.
    static func append(_ value: UInt64, to text: inout String) {
        var shift: UInt64 = 64
        while shift > 0 {
            shift -= 4
            let digit = UInt8(truncatingIfNeeded: value >> shift & 0xF)
            text.unicodeScalars.append(
                Unicode.Scalar(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10))
        }
    }
}

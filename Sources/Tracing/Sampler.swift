/// Which traces are recorded, as OpenTelemetry's `OTEL_TRACES_SAMPLER` names it.
public struct Sampler: Sendable, Equatable {
    /// Of a trace that begins here.
    public enum Root: Sendable, Equatable {
        case always, never
        /// From 0 to 1. All who are given the same share decide the same of one trace.
        case share(Double)
    }

    public enum Name: String, Sendable, CaseIterable {
        case always = "always_on"
        case never = "always_off"
        case share = "traceidratio"
        case parentOrAlways = "parentbased_always_on"
        case parentOrNever = "parentbased_always_off"
        case parentOrShare = "parentbased_traceidratio"
    }

    public let root: Root
    /// Whether it is the caller's decision where there is a caller.
    public let followsParent: Bool

    public init(root: Root, followsParent: Bool) {
        self.root = root
        self.followsParent = followsParent
    }

    /// - Parameter share: of the names that have one.
    public init(_ name: Name, share: Double) {
        switch name {
        case .always, .parentOrAlways: root = .always
        case .never, .parentOrNever: root = .never
        case .share, .parentOrShare: root = .share(share)
        }
        switch name {
        case .always, .never, .share: followsParent = false
        case .parentOrAlways, .parentOrNever, .parentOrShare: followsParent = true
        }
    }

    public func samples(_ trace: TraceID, parent: TraceContext?) -> Bool {
        if followsParent, let parent { return parent.isSampled }
        switch root {
        case .always: return true
        case .never: return false
        case .share(let share):
            // The lower half without its last bit, as the SDKs of OpenTelemetry have it: services in other languages
            // decide alike.
            if share >= 1 { return true }
            return trace.low >> 1 < UInt64(share * 0x1p63)
        }
    }
}

import Foundation

/// The time of day for when a span began, and a steady clock for how long it took: setting the former must not make a
/// span last for hours.
public struct SpanClock: Sendable {
    public struct Moment: Sendable, Equatable {
        /// Since 1970.
        public let nanoseconds: UInt64
        let steady: UInt64

        public init(nanoseconds: UInt64, steady: UInt64) {
            self.nanoseconds = nanoseconds
            self.steady = steady
        }
    }

    private let now: @Sendable () -> Moment

    public init(_ now: @escaping @Sendable () -> Moment) { self.now = now }

    public static let system = SpanClock {
        Moment(nanoseconds: read(CLOCK_REALTIME), steady: read(CLOCK_MONOTONIC))
    }

    public func begin() -> Moment { now() }

    func end(of began: Moment) -> UInt64 { began.nanoseconds &+ (now().steady &- began.steady) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

import Cuv

extension EventLoop {
    /// Nanoseconds of the machine's monotonic clock: for measuring, as `nowMilliseconds` is read once a turn only.
    public static var nanoseconds: UInt64 { uv_hrtime() }
}

/// Durations, counted in buckets. A plain value without a lock: it belongs to one loop, and is copied when somebody
/// asks.
public struct DurationCounts: Sendable, Equatable {
    /// The upper bounds of the buckets, from a read by key to what somebody gives up on; beyond the last is one more.
    public static let boundsMicroseconds: [UInt64] = [
        250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        5_000_000, 10_000_000,
    ]

    /// One more than there are bounds.
    public private(set) var buckets = [Int](repeating: 0, count: boundsMicroseconds.count + 1)
    public private(set) var nanoseconds: UInt64 = 0

    public init() {}

    public var count: Int { buckets.reduce(0, +) }

    public mutating func record(nanoseconds: UInt64) {
        let microseconds = nanoseconds / 1_000
        var index = 0
        // Nearly all are in the first few.
        while index < Self.boundsMicroseconds.count, microseconds > Self.boundsMicroseconds[index] { index += 1 }
        buckets[index] += 1
        self.nanoseconds &+= nanoseconds
    }

    public mutating func add(_ other: DurationCounts) {
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        nanoseconds &+= other.nanoseconds
    }
}

/// Deadlines of many by few timers: entries lie in buckets of one tick each, and only the bucket whose time has come is
/// looked at. An entry whose deadline lies beyond the wheel is looked at when the wheel has gone round.
struct DeadlineWheel {
    struct Entry {
        let id: Int
        /// In which tick it lies; what its owner noted when it was put in. Another number means it is out of date.
        let tick: UInt64
    }

    static let bucketCount = 512

    let tickMilliseconds: UInt64
    private var buckets = [[Entry]](repeating: [], count: bucketCount)
    /// The last tick that was looked at.
    private(set) var current: UInt64

    init(tickMilliseconds: UInt64, now: UInt64) {
        self.tickMilliseconds = tickMilliseconds
        current = now / tickMilliseconds
    }

    /// The tick in which a deadline of now or later is looked at: never before it.
    func tick(for deadline: UInt64) -> UInt64 {
        let last = current + UInt64(Self.bucketCount) - 1
        guard deadline < last * tickMilliseconds else { return last }
        return max(current + 1, (deadline + tickMilliseconds - 1) / tickMilliseconds)
    }

    mutating func insert(_ id: Int, tick: UInt64) {
        buckets[Int(tick % UInt64(Self.bucketCount))].append(Entry(id: id, tick: tick))
    }

    /// Takes out what lies in the ticks up to now.
    mutating func advance(to now: UInt64) -> [Entry] {
        let target = now / tickMilliseconds
        var due: [Entry] = []
        // More than one round looks at every bucket once.
        let first = max(current + 1, target >= UInt64(Self.bucketCount) ? target - UInt64(Self.bucketCount) + 1 : 0)
        guard first <= target else { return [] }
        for tick in first...target {
            let place = Int(tick % UInt64(Self.bucketCount))
            due += buckets[place]
            buckets[place] = []
        }
        current = target
        return due
    }

    /// Between two looks, for these times: small beside both, and no more often than it helps.
    static func tickMilliseconds(for limits: (interval: UInt64, timeout: UInt64)) -> UInt64 {
        min(100, max(10, min(limits.interval, limits.timeout) / 20))
    }
}

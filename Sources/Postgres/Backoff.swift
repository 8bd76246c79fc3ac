/// How long to wait before the next attempt: doubled from `firstMilliseconds` up to `maxMilliseconds`, of which a
/// random part between a half and the whole is taken, so that many processes do not come back at the same moment.
struct Backoff {
    let firstMilliseconds: Int
    let maxMilliseconds: Int
    private(set) var failures = 0

    /// Doubling more often than this would only overflow.
    private static let doublingsMax = 16

    init(firstMilliseconds: Int, maxMilliseconds: Int) {
        self.firstMilliseconds = max(1, firstMilliseconds)
        self.maxMilliseconds = max(1, maxMilliseconds)
    }

    /// - Parameter random: in `0..<1`.
    mutating func next(random: Double) -> UInt64 {
        let whole = min(maxMilliseconds, firstMilliseconds << min(failures, Self.doublingsMax))
        failures += 1
        return UInt64(max(1, Double(whole) * (0.5 + 0.5 * min(max(random, 0), 1))))
    }

    mutating func reset() { failures = 0 }
}

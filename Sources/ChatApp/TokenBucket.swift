/// So many acts a second, and a burst after a pause. Times are the loop's milliseconds.
struct TokenBucket {
    private var milliTokens: Int
    private var filledAt: UInt64

    /// Starts full.
    init(burst: Int, now: UInt64) {
        milliTokens = burst * 1000
        filledAt = now
    }

    mutating func take(perSecond: Int, burst: Int, now: UInt64) -> Bool {
        // Elapsed time is capped by what fills the bucket, so the product stays small.
        // Loops that share one may differ by a moment.
        let elapsed = min(now > filledAt ? now - filledAt : 0, UInt64(burst * 1000 / max(1, perSecond) + 1))
        milliTokens = min(burst * 1000, milliTokens + Int(elapsed) * perSecond)
        filledAt = max(now, filledAt)
        guard milliTokens >= 1000 else { return false }
        milliTokens -= 1000
        return true
    }
}

import Core
import Foundation
import ServiceKit
import Synchronization

/// So many events a minute for each key (an address, a name). Fixed windows; the number of keys is bounded.
public final class RateLimiter: Sendable {
    /// Beyond, the keys of past windows go; if none are past, new keys are refused.
    public static let keysMax = 100_000

    private struct State {
        var window: Int64 = 0
        var counts: [String: Int] = [:]
    }

    private let state = Mutex(State())
    private let perMinute: Int
    private let clock: any ServiceClock

    public init(perMinute: Int, clock: any ServiceClock) {
        self.perMinute = perMinute
        self.clock = clock
    }

    /// - Throws: `tooMany` when the key has used up its minute. Does not count.
    public func check(_ key: String) throws(AppError) {
        let second = clock.seconds
        let used = state.withLock { state in
            roll(&state, second)
            return state.counts[key] ?? (state.counts.count < Self.keysMax ? 0 : perMinute)
        }
        guard used < perMinute else {
            throw AppError(
                .tooMany, "Too many requests, please try again later.", retryAfterSeconds: Int(60 - second % 60))
        }
    }

    public func count(_ key: String) {
        let second = clock.seconds
        state.withLock { state in
            roll(&state, second)
            if state.counts[key] != nil || state.counts.count < Self.keysMax { state.counts[key, default: 0] += 1 }
        }
    }

    private func roll(_ state: inout State, _ second: Int64) {
        guard second / 60 != state.window else { return }
        state.window = second / 60
        state.counts = [:]
    }
}

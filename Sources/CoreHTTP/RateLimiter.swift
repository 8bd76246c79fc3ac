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

    /// An event that has been counted before it was known whether it counts.
    public struct Reservation: Sendable {
        fileprivate let key: String
        fileprivate let window: Int64
    }

    /// Counts an event, in one step with the check: of many at once no more than the limit pass.
    /// - Throws: `tooMany` when the key has used up its minute.
    @discardableResult
    public func take(_ key: String) throws(AppError) -> Reservation {
        let second = clock.seconds
        let window = state.withLock { state -> Int64? in
            roll(&state, second)
            let used = state.counts[key] ?? (state.counts.count < Self.keysMax ? 0 : perMinute)
            guard used < perMinute else { return nil }
            state.counts[key] = used + 1
            return state.window
        }
        guard let window else {
            throw AppError(
                .tooMany, "Too many requests, please try again later.", retryAfterSeconds: Int(60 - second % 60))
        }
        return Reservation(key: key, window: window)
    }

    /// The event was none of those that are limited.
    public func giveBack(_ reservation: Reservation) {
        state.withLock { state in
            guard state.window == reservation.window, let used = state.counts[reservation.key], used > 0 else { return }
            state.counts[reservation.key] = used == 1 ? nil : used - 1
        }
    }

    private func roll(_ state: inout State, _ second: Int64) {
        guard second / 60 != state.window else { return }
        state.window = second / 60
        state.counts = [:]
    }
}

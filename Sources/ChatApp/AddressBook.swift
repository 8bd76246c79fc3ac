import Synchronization

/// What clients of one address have together in this process: sockets of `martlet.v1`, sessions of Socket.IO, and what
/// they send. An address is as `HTTPRequest.countedNetwork` has it; nil, where it is not known, is never too many.
public final class AddressBook: Sendable {
    enum Refusal {
        /// The address has as many as it may.
        case sockets
        /// It has as many as it may that have not signed in.
        case strangers
    }

    /// Kept while the address has a socket.
    private struct Entry {
        var sockets = 0
        var strangers = 0
        var sends: TokenBucket

        func refusal(_ limits: ChatLimits) -> Refusal? {
            if sockets >= limits.socketsPerAddressMax { return .sockets }
            return strangers >= limits.strangersPerAddressMax ? .strangers : nil
        }
    }

    private let limits: ChatLimits
    private let entries = Mutex<[String: Entry]>([:])

    init(limits: ChatLimits) { self.limits = limits }

    /// Why there may be no more of the address, nil when there may.
    func refusal(_ address: String?) -> Refusal? {
        guard let address else { return nil }
        return entries.withLock { $0[address]?.refusal(limits) }
    }

    /// Counts one that has not signed in, unless there may be no more.
    /// - Parameter now: the loop's milliseconds.
    func enter(_ address: String?, now: UInt64) -> Refusal? {
        guard let address else { return nil }
        return entries.withLock { entries in
            var entry =
                entries[address] ?? Entry(sends: TokenBucket(burst: limits.sendsPerAddressBurstMax, now: now))
            if let refusal = entry.refusal(limits) { return refusal }
            entry.sockets += 1
            entry.strangers += 1
            entries[address] = entry
            return nil
        }
    }

    /// One of them is no stranger any more.
    func signedIn(_ address: String?) {
        guard let address else { return }
        entries.withLock { $0[address]?.strangers -= 1 }
    }

    func leave(_ address: String?, isStranger: Bool) {
        guard let address else { return }
        entries.withLock { entries in
            guard var entry = entries[address] else { return }
            entry.sockets -= 1
            if isStranger { entry.strangers -= 1 }
            entries[address] = entry.sockets > 0 ? entry : nil
        }
    }

    /// False when the address sends faster than it may.
    func takeSend(_ address: String?, now: UInt64) -> Bool {
        guard let address else { return true }
        return entries.withLock { entries in
            entries[address]?.sends.take(
                perSecond: limits.sendsPerAddressPerSecond, burst: limits.sendsPerAddressBurstMax, now: now) ?? true
        }
    }
}

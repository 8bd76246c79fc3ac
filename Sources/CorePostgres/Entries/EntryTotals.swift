import Core
import Foundation
import Synchronization

/// The totals of great unfiltered lists, which are the same for everyone and are asked for with every page of them:
/// counted once a second. To count 20,000 postings takes ten times what it takes to read a page of them.
final class EntryTotals: Sendable {
    /// How old a total may be, in seconds.
    static let secondsMax = 1.0
    /// What is smaller is counted each time: it costs little, and who has just added something looks for it there.
    static let keptMin: Int64 = 1000

    private struct Kept {
        let total: Int64
        let counted: Date
    }

    /// At most one for each kind.
    private let totals = Mutex<[EntryKind: Kept]>([:])

    /// Nil: count, and `keep` it.
    func recent(_ query: EntryQuery, now: Date) -> Int64? {
        guard Self.isKept(query), let kept = totals.withLock({ $0[query.kind] }) else { return nil }
        let age = now.timeIntervalSince(kept.counted)
        return age >= 0 && age < Self.secondsMax ? kept.total : nil
    }

    /// - Parameter now: when it was asked for, not when the answer came.
    func keep(_ total: Int64?, of query: EntryQuery, now: Date) {
        guard Self.isKept(query) else { return }
        let kept = total.flatMap { $0 >= Self.keptMin ? Kept(total: $0, counted: now) : nil }
        totals.withLock { $0[query.kind] = kept }
    }

    private static func isKept(_ query: EntryQuery) -> Bool {
        query.filter == nil && (query.kind == .posting || query.kind == .company)
    }
}

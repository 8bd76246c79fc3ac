import Foundation

/// What is done now and then so that tables stay small and plans good.
public protocol UpkeepRepository: Sendable {
    /// The facts that search plans with. Seconds for a million postings.
    func refreshSearchFacts() async throws
    /// Deletes what has had its time, a bounded part of it. Returns the rows that went, by table.
    func prune(now: Date) async throws -> [String: Int]

    /// The part of the alerts' ledger that is to be walked this hour; nil while nothing of it may go, or matches may be
    /// under way that do not know yet what may.
    func ledgerWalk(now: Date) async throws -> LedgerWalk?
    /// Walks on, past `LedgerWalk.rowsMax` rows at most, and deletes those that may go. Many may walk together.
    /// - Returns: how many went; nil when somebody held one for too long, so that it is to be tried again.
    func stepLedger(_ walk: LedgerWalk) async throws -> Int?
    /// From here on no posting that was first published before this time is matched again, so that a later walk may
    /// delete its rows. An earlier time than that of before changes nothing.
    func forgetLedger(before: Date, now: Date) async throws
}

/// A walk through a part of the alerts' ledger.
public struct LedgerWalk: Sendable, Equatable {
    /// Of one step: its locks and its log stay small.
    public static let rowsMax = 10_000

    /// Older rows go, unless they wait for a digest.
    public let before: Date
    public let steps: Int
    /// Of the longest partition.
    public let blocks: Int64
    /// That a step reads of each partition.
    public let blocksOfStep: Int64

    public init(before: Date, steps: Int, blocks: Int64, blocksOfStep: Int64) {
        self.before = before
        self.steps = steps
        self.blocks = blocks
        self.blocksOfStep = blocksOfStep
    }
}

import Foundation

/// What is done now and then so that tables stay small and plans good.
public protocol UpkeepRepository: Sendable {
    /// The facts that search plans with. Seconds for a million postings.
    func refreshSearchFacts() async throws
    /// Deletes what has had its time, a bounded part of it. Returns the rows that went, by table.
    func prune(now: Date) async throws -> [String: Int]
}

/// How much background work of a kind there is in one state, counted up to a bound: a backlog of a million is as much
/// of an alarm as one of `countedMax`, and takes less to count.
public struct WorkBacklog: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable { case ready, leased, waiting, dead }

    /// Items that are looked at: ready and leased ones together the first in the queue's order, of the others as many.
    public static let countedMax = 10_000

    public let kind: String
    public let state: State
    public let count: Int
    /// How long the oldest of them has been due; of waiting ones 0.
    public let oldestSeconds: Double

    public init(kind: String, state: State, count: Int, oldestSeconds: Double) {
        self.kind = kind
        self.state = state
        self.count = count
        self.oldestSeconds = oldestSeconds
    }
}

/// Something an operator may want to know. `reason` is libpq's text: it names host, user and database, never a password
/// or a value.
public struct PostgresEvent: Sendable {
    public enum Kind: String, Sendable {
        case connected
        case connectFailed = "connect_failed"
        /// Failed, because there is a pooler of which the configuration does not know.
        case poolerMet = "pooler_met"
        case connectionLost = "connection_lost"
        case listening
    }

    public let kind: Kind
    /// `short`, `long`, `write`, `leased` or `listen`.
    public let lane: String
    public let reason: String
    /// Milliseconds until the next attempt, where there is one.
    public let retryMilliseconds: UInt64?

    init(_ kind: Kind, _ lane: LaneKind, reason: String = "", retryMilliseconds: UInt64? = nil) {
        self.kind = kind
        self.lane = lane.rawValue
        self.reason = reason
        self.retryMilliseconds = retryMilliseconds
    }
}

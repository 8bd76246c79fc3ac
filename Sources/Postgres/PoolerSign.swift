/// Tells by the reason for which a connection failed that a pooler stands before the server.
enum PoolerSign {
    /// pgbouncer's words for start-up options, which it refuses unless it is told to drop them.
    private static let refused = "unsupported startup parameter"
    /// Ours, when they were dropped.
    static let dropped = "the start-up options are not in force"

    static func isIn(_ reason: String) -> Bool { reason.contains(refused) || reason.contains(dropped) }
}

import Core

/// Before which position the queue has nothing, as the last look for lost leases saw it.
struct QueueFloor {
    private(set) var position = WorkPosition()
    private var era: String?
    private var lastWhole = -Double.infinity
    private var isWhole = false

    /// Where the next look begins: at the floor, and now and then at the beginning.
    ///
    /// - Parameter seconds: of a monotonic clock.
    mutating func from(at seconds: Double) -> WorkPosition {
        isWhole = seconds - lastWhole >= Worker.floorSecondsMax
        return isWhole ? WorkPosition() : position
    }

    /// What a look that began then has seen. One of another server or table, as after a failover to a standby that had
    /// not got everything, says nothing: the next look begins at the beginning.
    mutating func note(_ rescue: WorkRescue, at seconds: Double) {
        guard isWhole || rescue.era == era else {
            self = QueueFloor()
            return
        }
        if isWhole { lastWhole = seconds }
        era = rescue.era
        position = rescue.floor
    }
}

/// Where one worker reads on in the queue.
///
/// Items are ordered by the transaction that made them ready. Reading on from the last one claimed is quick, however
/// many dead rows lie before it, but a transaction with a lower number may commit later. So every short claim, and
/// every second, is followed by a scan from low down: from the bound that was read before the last such scan, because
/// whatever that scan could not see has at least that transaction.
public struct WorkCursor: Sendable {
    /// While a backlog lasts, items that committed late wait no longer than this.
    public static let lowScanSecondsMax = 1.0
    /// Rows that were locked when a scan passed them, by a claim or an enqueue that was rolled back, are found so.
    public static let fullScanSecondsMin = 30.0
    /// A full scan may read many dead rows: it takes no more than a fiftieth of the time.
    public static let fullScanShareMax = 50.0

    private var position = WorkPosition()
    private var boundBefore: UInt64 = 0
    private var wasShort = true
    private var lastLowScan = -Double.infinity
    private var nextFullScan: Double
    private var fullScanBegan: Double?

    /// The highest position claimed, or `end` when nothing ready was left behind it.
    public private(set) var reached = WorkPosition()

    /// - Parameter seconds: of a monotonic clock, as all times here.
    public init(at seconds: Double, fullScanSecondsMin: Double = Self.fullScanSecondsMin) {
        nextFullScan = seconds + fullScanSecondsMin
    }

    /// Whether the next claim scans from low down: read the queue's bound before it, and give it to `begin`.
    public func needsBound(at seconds: Double) -> Bool {
        wasShort || seconds - lastLowScan >= Self.lowScanSecondsMax || seconds >= nextFullScan
    }

    /// Where to claim after.
    ///
    /// - Parameter floor: nothing is before it (`WorkRescue.floor`), so no scan begins there.
    public mutating func begin(
        bound: UInt64?, floor: WorkPosition = WorkPosition(), at seconds: Double
    ) -> WorkPosition {
        guard let bound else { return position }
        let start = max(floor, WorkPosition(tx: min(boundBefore, position.tx), id: 0))
        boundBefore = bound
        lastLowScan = seconds
        guard seconds >= nextFullScan else { return start }
        fullScanBegan = seconds
        return floor
    }

    public mutating func end(_ claim: WorkClaim, limit: Int, at seconds: Double) {
        wasShort = claim.items.count < limit
        position = wasShort ? .end : claim.last
        reached = wasShort ? .end : max(claim.last, reached == .end ? claim.last : reached)
        if let began = fullScanBegan {
            nextFullScan = seconds + max(Self.fullScanSecondsMin, (seconds - began) * Self.fullScanShareMax)
            fullScanBegan = nil
        }
    }
}

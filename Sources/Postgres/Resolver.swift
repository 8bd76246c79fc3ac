import EventLoop

/// Looks up host names off the loops, since the C library's resolver blocks.
final class Resolver: Sendable {
    private let plan: ConnectionPlan
    private let pool: OffloadPool?

    /// Look-ups that may wait at once; each lane of each loop asks for one connection at a time.
    static let queueMax = 1024

    /// The plan with its addresses.
    struct Resolved: Sendable {
        fileprivate let plan: ConnectionPlan
        fileprivate let base: [String: String]

        func parameters(for lane: LaneKind) -> [(keyword: String, value: String)] {
            plan.parameters(base, for: lane)
        }
    }

    init(_ plan: ConnectionPlan) {
        self.plan = plan
        pool = plan.needsResolving ? OffloadPool(name: "postgres-dns", threads: 1, queueMax: Self.queueMax) : nil
    }

    deinit { pool?.stop() }

    /// What needs no look-up is ready at once.
    var ready: Resolved? {
        guard pool == nil, let base = try? plan.resolved() else { return nil }
        return Resolved(plan: plan, base: base)
    }

    /// - Throws: `PostgresConfigurationError` for an unknown name, `OffloadPool.Full`.
    func resolve() async throws -> Resolved {
        guard let pool else { return Resolved(plan: plan, base: try plan.resolved()) }
        let plan = plan
        return try await pool.run { Resolved(plan: plan, base: try plan.resolved()) }
    }
}

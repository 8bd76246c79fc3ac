import Cpq
import EventLoop
import Synchronization

/// Knows where to connect. Looks up host names off the loops, since the C library's resolver blocks; and remembers, of
/// several servers, which one took the last connection, so that the next ones do not begin with one that is gone.
final class Resolver: Sendable {
    private let plan: ConnectionPlan
    private let pool: OffloadPool?
    private let first = Mutex<Target?>(nil)

    /// Look-ups that may wait at once; each lane of each loop asks for one connection at a time.
    static let queueMax = 1024

    /// An attempt to connect: all servers in turn.
    struct Attempt: Sendable {
        fileprivate let resolver: Resolver
        let targets: [Target]
        let parameters: [(keyword: String, value: String)]

        /// Servers, not addresses.
        var hostsCount: Int {
            targets.indices.count { index in
                !targets[..<index].contains { $0.host == targets[index].host && $0.port == targets[index].port }
            }
        }

        /// The server behind a connection is the one to begin with.
        func succeeded(_ raw: OpaquePointer) {
            guard targets.count > 1 else { return }
            func text(_ value: UnsafePointer<CChar>?) -> String { value.map { String(cString: $0) } ?? "" }
            let (host, address, port) = (text(PQhost(raw)), text(PQhostaddr(raw)), text(PQport(raw)))
            let found = targets.first {
                ($0.address.isEmpty ? $0.host == host : $0.address == address) && ($0.port.isEmpty || $0.port == port)
            }
            if let found { resolver.first.withLock { $0 = found } }
        }

        /// Whatever the reason, the next attempt begins with the next server: libpq goes on to it by itself only from
        /// one that refuses, not from one that says nothing.
        func failed() {
            guard targets.count > 1 else { return }
            // Several lanes may fail at once, and together they pass by one server, not several.
            resolver.first.withLock { if $0 == nil || $0 == targets[0] { $0 = targets[1] } }
        }
    }

    init(_ plan: ConnectionPlan) {
        self.plan = plan
        pool = plan.needsResolving ? OffloadPool(name: "postgres-dns", threads: 1, queueMax: Self.queueMax) : nil
    }

    deinit { pool?.stop() }

    /// What needs no look-up is ready at once.
    func ready(for lane: LaneKind) -> Attempt? {
        guard pool == nil, let targets = try? plan.resolved() else { return nil }
        return attempt(targets, lane)
    }

    /// - Throws: `PostgresConfigurationError` for unknown names, `OffloadPool.Full`.
    func resolve(for lane: LaneKind) async throws -> Attempt {
        guard let pool else { return attempt(try plan.resolved(), lane) }
        let plan = plan
        return attempt(try await pool.run { try plan.resolved() }, lane)
    }

    private func attempt(_ targets: [Target], _ lane: LaneKind) -> Attempt {
        let start = first.withLock { first in targets.firstIndex { $0 == first } } ?? 0
        let turned = Array(targets[start...] + targets[..<start])
        return Attempt(resolver: self, targets: turned, parameters: plan.parameters(turned, for: lane))
    }
}

extension PostgresConfiguration {
    /// Of several servers each gets its share of the time, so that one which is silent does not use it up.
    func connectMilliseconds(_ attempt: Resolver.Attempt) -> UInt64 {
        UInt64(
            max(connectMilliseconds / max(1, attempt.hostsCount), min(connectMilliseconds, Self.hostMillisecondsMin)))
    }

    private static let hostMillisecondsMin = 1_000
}

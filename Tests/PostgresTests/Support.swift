import Postgres
import TestSupport
import Testing

/// Holds a lock, so that statements which ask for it (`pg_advisory_xact_lock_shared(1)`) stand
/// still for as long as a test needs: no clock is involved.
struct Roadblock: Sendable {
    private let freed: Signal<Void>
    private let holder: Task<Void, any Error>

    static func put(_ db: Database) async throws -> Roadblock {
        let held = Signal<Void>()
        let freed = Signal<Void>()
        let holder = Task {
            try await db.transaction { tx in
                try await tx.execute("SELECT pg_advisory_xact_lock(1)")
                held.send(())
                try await freed.wait(count: 1, seconds: 600)
            }
        }
        try await held.wait(count: 1)
        return Roadblock(freed: freed, holder: holder)
    }

    func lift() async throws {
        freed.send(())
        try await holder.value
    }
}

extension TestDatabase {
    /// The server processes whose statements stand before the roadblock.
    func blocked() async throws -> Set<String> {
        let rows = try await run(
            """
            SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
            WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted
            """)
        return Set(rows.compactMap { $0[0] })
    }

    /// Waits until one statement stands before the roadblock, in another server process than `former`.
    @discardableResult
    func waitForBlocked(besides former: String? = nil) async throws -> String {
        var found = ""
        try await eventually {
            let now = try await blocked()
            found = now.first ?? ""
            return now.count == 1 && found != former
        }
        return found
    }

    /// Ends the connection of one server process, and none beside it: a lane has a connection on each loop, and one
    /// that waits for work may take a statement between its end and the news of it.
    func terminate(process: String) async throws {
        let ended = try await run("SELECT pg_terminate_backend(\(process))")
        #expect(ended.first?.first == "t")
    }

    /// Ends the connections of one lane, as an operator or a restart would. Gives their number.
    @discardableResult
    func terminate(_ lane: String) async throws -> Int {
        try await run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'martlet-test/\(lane)'
            """
        ).count
    }
}

/// The times of tests that stop statements on purpose: long enough for any machine.
func patient(_ configuration: inout PostgresConfiguration) {
    configuration.shortMilliseconds = 60_000
    configuration.longMilliseconds = 60_000
    configuration.writeMilliseconds = 60_000
    configuration.lockMilliseconds = 60_000
    configuration.reconnectFirstMilliseconds = 1
}

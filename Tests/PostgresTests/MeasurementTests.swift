import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Postgres

@Suite("What a database counts")
struct DatabaseMeasurementTests {
    private func lane(_ name: String, _ db: Database) async throws -> LaneMeasurements {
        try #require(await db.measurements.lanes.first { $0.lane == name })
    }

    @Test("statements count in their lane, those that fail too; a transaction's and its lease's in leased")
    func lanes() async throws {
        try await withTestDatabase { db in
            _ = try await db.short.execute("SELECT 1")
            await #expect(throws: PostgresError.self) { try await db.short.execute("SELECT 1 / \(0)::int") }
            _ = try await db.write.execute("SELECT 1")
            try await db.transaction { tx in
                try await tx.execute("SELECT 1")
                let leased = try await lane("leased", db)
                #expect(leased.connectionsBusy == 1 && leased.connectionsOpen == 1)
            }
            let short = try await lane("short", db)
            // A read that failed is asked once more, alone, and told as one.
            #expect(short.statements.count == 2 && short.failed == 1)
            #expect(short.statements.nanoseconds > 0 && short.waits.count == 2)
            #expect(short.connectionsOpen >= 1 && short.connectionsBusy == 0 && short.connectionsMax >= 1)
            #expect(try await lane("write", db).statements.count == 1)
            let leased = try await lane("leased", db)
            // BEGIN with the statement, COMMIT, and one wait for the lease.
            #expect(leased.statements.count == 2 && leased.waits.count == 1 && leased.connectionsBusy == 0)
            #expect(try await lane("long", db).connectionsOpen == 0)
            #expect(await db.measurements.connections.allSatisfy { $0.lost == 0 && $0.connectFailed == 0 })
        }
    }

    @Test("callers that wait are seen; one that is turned away counts as refused, and its wait as none")
    func waiting() async throws {
        try await withTestDatabase(configure: { configuration in
            configuration.leasedMax = 1
            // Connecting has to fit in, and a look at who waits.
            configuration.acquireMilliseconds = 10_000
        }) { db, _ in
            try await db.transaction { tx in
                try await tx.execute("SELECT 1")
                let second = Task { try await db.transaction { try await $0.execute("SELECT 1") } }
                try await eventually { try await lane("leased", db).waiting == 1 }
                await #expect(throws: PostgresUnavailable.busy) { try await second.value }
            }
            let leased = try await lane("leased", db)
            #expect(leased.refused == 1 && leased.waits.count == 1 && leased.waiting == 0)
        }
    }

    @Test("a connection that dies is told of by its lane")
    func lost() async throws {
        try await withTestDatabase { db, test in
            _ = try await db.write.execute("SELECT 1")
            #expect(try await test.terminate("write") == 1)
            try await eventually {
                await db.measurements.connections.contains { $0.lane == "write" && $0.lost == 1 }
            }
            _ = try await db.write.execute("SELECT 1")
        }
    }
}

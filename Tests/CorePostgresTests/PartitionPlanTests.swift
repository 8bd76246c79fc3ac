import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

/// What is by a room's key reads the partition that the room is in, although the plans are made without knowing which.
@Suite("Plans on partitions")
struct PartitionPlanTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let file: String
        /// Text of the statement that is meant, in the file.
        let has: String
        /// Its binds, for a room 7 of user 7.
        let binds: String
        /// How many scans are run for it.
        var scans = 1

        var testDescription: String { "\(file): \(has)" }
    }

    private static let cases = [
        Case(
            file: "PostgresRooms.swift", has: "n.seq > c.after", binds: "'{7}', '{0}', 100, 1000000"),
        Case(
            file: "PostgresRooms+Lists.swift", has: "AS active_at", binds: "100, '{7}'"),
        Case(
            file: "PostgresRooms+History.swift", has: "m.seq > rm.last_read_seq", binds: "100, 7, 99, 7, '{7}'"),
        Case(
            file: "PostgresRooms+History.swift", has: "o.seq < $", binds: "9, 51, 50, 1000000, 7, 7", scans: 2),
        Case(
            file: "PostgresRooms+History.swift", has: "o.seq > $", binds: "0, 51, 50, 1000000, 7, 7", scans: 2),
        Case(
            file: "PostgresRooms+History.swift", has: "a.last_seq", binds: "51, 50, 1000000, '{7}'", scans: 2),
        // Repeats are looked for, and targets.
        Case(
            file: "PostgresRooms+Send.swift", has: "row_number() OVER (PARTITION BY t.room_id, t.sender_id",
            binds: "100, '{7}', '{7}', '{c}', '{hi}', '{text}', '{NULL}', '{NULL}'", scans: 1),
        Case(
            file: "PostgresRooms+Send.swift", has: "url_generation + 1", binds: "'{7}', '{7}', '{d}'", scans: 4),
        Case(
            file: "PostgresRooms+Send.swift", has: "SET traceparent = t.traceparent",
            binds: "'{7}', '{7}', '{d}', '{t}'"),
    ]

    @Test("a room is looked for in its own partition and in no other", arguments: cases)
    private func pruned(_ example: Case) async throws {
        let scan = try StatementScan(folder: StatementTests.folder)
        let statement = try #require(
            scan.statements.first { $0.file == example.file && $0.text.contains(example.has) }, "\(example)")
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            let plan = try await database.run(
                """
                SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off;
                PREPARE s AS \(statement.text);
                EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE s(\(example.binds))
                """
            ).compactMap { $0[0] }
            let text = plan.joined(separator: "\n")
            let run = plan.filter { $0.contains(/Scan.* on messages_\d/) && !$0.contains("never executed") }
            let partitions = Set(run.compactMap { $0.firstMatch(of: /on (messages_\d)/).map { String($0.1) } })
            #expect(partitions.count <= 1, "\(text)")
            #expect(run.count >= example.scans, "\(text)")
            #expect(run.allSatisfy { $0.contains("Index") }, "\(text)")
        }
    }

    @Test("what is read in lists is planned once, and not each time for all partitions")
    func plannedOnce() async throws {
        let scan = try StatementScan(folder: StatementTests.folder)
        try await withTestDatabase { _, database in
            try await database.run(Self.fill)
            for example in Self.cases.prefix(6) {
                let statement = try #require(
                    scan.statements.first { $0.file == example.file && $0.text.contains(example.has) })
                let execute = Array(repeating: "EXECUTE s(\(example.binds));", count: 8).joined()
                let plans = try await database.run(
                    """
                    PREPARE s AS \(statement.text); \(execute)
                    SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 's'
                    """)
                #expect(plans == [["3", "5"]], "\(example)")
                try await database.run("DEALLOCATE ALL")
            }
        }
    }

    private static let fill = """
        INSERT INTO users (username, email) SELECT 'user' || i, 'user' || i || '@example.org'
          FROM generate_series(1, 2000) i;
        INSERT INTO rooms (wire_name, last_seq) SELECT 'a_' || i || '_b', 20 FROM generate_series(1, 2000) i;
        INSERT INTO room_members (room_id, user_id) SELECT i, i FROM generate_series(1, 2000) i;
        INSERT INTO messages (room_id, seq, sender_id, body)
          SELECT i, s, i, 'hello' FROM generate_series(1, 2000) i, generate_series(1, 19) s;
        INSERT INTO messages (room_id, seq, sender_id, client_id, kind, target_seq, body)
          SELECT i, 20, i, 'd', 'delete', 3, '' FROM generate_series(1, 2000) i;
        ANALYZE
        """
}

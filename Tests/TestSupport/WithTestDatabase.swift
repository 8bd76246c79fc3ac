import EventLoop
import Foundation
import Postgres

/// A database of one test's own.
public struct TestDatabase: Sendable {
    public let name: String
    /// For a second connection, a child process, a raw client.
    public let url: String
    /// The loops that test databases share.
    public let loops: LoopGroup
    private let server: TestServer

    init(name: String, server: TestServer) throws {
        self.name = name
        self.server = server
        loops = server.loops
        guard var parts = URLComponents(string: server.url), parts.scheme != nil else {
            throw TestDatabaseError("\(TestServer.variable) must be a postgres:// URL")
        }
        parts.path = "/" + name
        guard let url = parts.string else { throw TestDatabaseError("the database's URL could not be made") }
        self.url = url
    }

    /// Small pools: many tests run at once.
    public func configuration() throws -> PostgresConfiguration {
        var configuration = try PostgresConfiguration(url: url)
        configuration.shortPerLoop = 1
        configuration.longMax = 1
        configuration.writeMax = 2
        configuration.leasedMax = 2
        configuration.applicationName = "martlet-test"
        // The machine is shared: a statement that waits for a core or the disk is no failure of the test, and neither
        // is one that waits for a lock while the test gets to where it lets go of it.
        configuration.shortMilliseconds = 30_000
        configuration.longMilliseconds = 60_000
        configuration.writeMilliseconds = 60_000
        configuration.leasedMilliseconds = 60_000
        configuration.lockMilliseconds = 60_000
        configuration.idleInTransactionMilliseconds = 300_000
        configuration.silenceMilliseconds = 60_000
        configuration.connectMilliseconds = 60_000
        configuration.acquireMilliseconds = 60_000
        return configuration
    }

    /// A further `Database`. The caller closes it.
    public func open(
        configure: (inout PostgresConfiguration) -> Void = { _ in },
        log: @escaping @Sendable (PostgresEvent) -> Void = { _ in }
    ) throws -> Database {
        var configuration = try configuration()
        configure(&configuration)
        return Database(configuration, loops: loops, log: log)
    }

    /// Runs statements on a fresh connection of a superuser, outside of the driver under test; rows as text.
    @discardableResult
    public func run(_ sql: String) async throws -> [[String?]] {
        try await server.run(sql, database: name)
    }
}

/// Gives the test a database of its own, with all migrations, and drops it afterwards. Tests run in parallel and may
/// LISTEN.
///
/// The server is `MARTLET_TEST_DATABASE_URL`, which must be on this machine (see `TestServer`).
@discardableResult
public func withTestDatabase<T>(_ body: (Database) async throws -> T) async throws -> T {
    try await withTestDatabase { db, _ in try await body(db) }
}

/// As above, with the means to open a second connection.
@discardableResult
public func withTestDatabase<T>(
    configure: (inout PostgresConfiguration) -> Void = { _ in },
    _ body: (Database, TestDatabase) async throws -> T
) async throws -> T {
    let server = try await TestServer.current()
    await server.slots.take()
    let result: Result<T, any Error>
    do {
        result = .success(try await run(on: server, configure: configure, body))
    } catch {
        result = .failure(error)
    }
    await server.slots.give()
    return try result.get()
}

private func run<T>(
    on server: TestServer, configure: (inout PostgresConfiguration) -> Void,
    _ body: (Database, TestDatabase) async throws -> T
) async throws -> T {
    let name = try await server.create()
    let result: Result<T, any Error>
    do {
        let test = try TestDatabase(name: name, server: server)
        let db = try test.open(configure: configure)
        do {
            result = .success(try await body(db, test))
        } catch {
            result = .failure(error)
        }
        await db.close()
    }
    try await server.drop(name)
    return try result.get()
}

import Cpq
import EventLoop
import Foundation
import Synchronization

/// The throwaway server that tests make their databases on.
///
/// Its template is made once for a version of `migrations/`, under an advisory lock, since several test processes may
/// run at once; clones of it take about 55 ms.
final class TestServer: Sendable {
    static let variable = "MARTLET_TEST_DATABASE_URL"
    /// One lock for all test processes of a server: making templates and clearing away what killed runs have left.
    private static let lockKey = 0x6d61_7274

    let parameters: [String: String]
    let url: String
    /// Databases that may exist at once.
    let slots: Slots
    let loops = LoopGroup(count: 2, name: "test")
    /// Apart, so that a statement of a test does not stand behind the making and dropping of other tests' databases.
    private let makers = OffloadPool(name: "test-make", threads: 4, queueMax: 10_000)
    private let runners = OffloadPool(name: "test-run", threads: 4, queueMax: 10_000)
    private let template: String

    /// More parallel databases than this would only wait for the disk.
    static let slotsMax = 8
    /// What one test may hold: short 2, long 1, write 2, leased 2, listen 1, a second `Database` of the same size,
    /// admin.
    static let connectionsPerTest = 17

    private static let shared = Mutex<Task<TestServer, any Error>?>(nil)

    /// The server of this process, its template made.
    static func current() async throws -> TestServer {
        let task = shared.withLock { task in
            if let task { return task }
            let new = Task { try await make() }
            task = new
            return new
        }
        return try await task.value
    }

    private static func make() async throws -> TestServer {
        guard let url = ProcessInfo.processInfo.environment[variable], !url.isEmpty else {
            throw TestDatabaseError("\(variable) is not set: run make test, or ops/scripts/postgres start DIR PORT")
        }
        let parameters = try checked(url)
        let migrations = try MigrationFiles.load()
        let pool = OffloadPool(name: "test-template", threads: 1, queueMax: 1)
        defer { pool.stop() }
        let template = "martlet_template_\(migrations.digest)"
        let connections = try await pool.run {
            let admin = try AdminConnection(parameters)
            try admin.run("SELECT pg_advisory_lock(\(lockKey))")
            try clearAway(admin)
            try makeTemplate(template, migrations, admin, parameters)
            return try admin.run("SHOW max_connections")[0][0].flatMap { Int($0) } ?? 100
        }
        return TestServer(url: url, parameters: parameters, template: template, connections: connections)
    }

    private init(url: String, parameters: [String: String], template: String, connections: Int) {
        self.url = url
        self.parameters = parameters
        self.template = template
        slots = Slots(min(Self.slotsMax, max(2, (connections - 10) / Self.connectionsPerTest)))
    }

    /// Tests drop databases: only a server on this machine, and only by its maintenance database or one of ours.
    static func checked(_ url: String) throws -> [String: String] {
        guard let options = PQconninfoParse(url, nil) else {
            throw TestDatabaseError("\(variable) is not a connection string")
        }
        defer { PQconninfoFree(options) }
        var parameters: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { parameters[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        let hosts = ["host", "hostaddr"].compactMap { parameters[$0] }
        let local: Set<Substring> = ["localhost", "127.0.0.1", "::1"]
        let isLocal = hosts.allSatisfy { (list: String) in
            list.split(separator: ",").allSatisfy { $0.hasPrefix("/") || local.contains($0) }
        }
        guard !hosts.isEmpty, isLocal else {
            throw TestDatabaseError("\(variable) must name this machine: 127.0.0.1, ::1, localhost, a folder")
        }
        let name = parameters["dbname"] ?? ""
        guard name == "postgres" || name.hasPrefix("martlet_test") else {
            throw TestDatabaseError("\(variable) must name the database postgres or one called martlet_test…")
        }
        return parameters
    }

    private static func makeTemplate(
        _ template: String, _ migrations: MigrationFiles, _ admin: AdminConnection, _ parameters: [String: String]
    ) throws {
        let found = try admin.run("SELECT datistemplate FROM pg_database WHERE datname = '\(template)'")
        // It is marked as a template only when it is complete.
        if found.first?.first == "t" { return }
        if !found.isEmpty { try admin.run("DROP DATABASE \(template) WITH (FORCE)") }
        try admin.run("CREATE DATABASE \(template) TEMPLATE template0 ENCODING 'UTF8'")
        do {
            var inside = parameters
            inside["dbname"] = template
            let connection = try AdminConnection(inside)
            try connection.run("SET client_min_messages = warning")
            for file in migrations.files {
                do {
                    if file.inTransaction {
                        try connection.run("BEGIN;\n\(file.up)\n;COMMIT")
                    } else {
                        for statement in MigrationFiles.statements(file.up) { try connection.run(statement) }
                    }
                } catch {
                    throw TestDatabaseError("\(file.name): \(error)")
                }
            }
        }
        try admin.run("ALTER DATABASE \(template) IS_TEMPLATE true")
    }

    /// Drops the databases of test processes that are gone: they were killed before they could.
    private static func clearAway(_ admin: AdminConnection) throws {
        let names = try admin.run("SELECT datname FROM pg_database WHERE datname LIKE 'martlet\\_test\\_%'")
        for name in names.compactMap({ $0[0] }) {
            guard let pid = name.split(separator: "_").dropFirst(2).first.flatMap({ Int32($0) }) else { continue }
            if kill(pid, 0) != 0, errno == ESRCH { try admin.run("DROP DATABASE IF EXISTS \(name) WITH (FORCE)") }
        }
    }

    private static let next = Atomic<Int>(0)

    func create() async throws -> String {
        let number = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
        let name = "martlet_test_\(getpid())_\(number)"
        try await make("CREATE DATABASE \(name) TEMPLATE \(template)")
        return name
    }

    func drop(_ name: String) async throws {
        try await make("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
    }

    private func make(_ sql: String) async throws {
        let parameters = parameters
        _ = try await makers.run { try AdminConnection(parameters).run(sql) }
    }

    /// Runs statements on a fresh, blocking connection, off the loops and off Swift's threads.
    @discardableResult
    func run(_ sql: String, database: String? = nil) async throws -> [[String?]] {
        var parameters = parameters
        if let database { parameters["dbname"] = database }
        let used = parameters
        return try await runners.run { try AdminConnection(used).run(sql) }
    }
}

/// A counting semaphore for tasks; first come, first served.
actor Slots {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) { free = count }

    func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func give() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}

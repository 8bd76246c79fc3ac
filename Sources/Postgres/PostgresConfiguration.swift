import Cpq
import Foundation

/// Where the database is and how much of it may be used. The password is in here and in no description.
public struct PostgresConfiguration: Sendable {
    /// Short reads by key: connections of each loop.
    public var shortPerLoop = 1
    /// Searches and lists: connections of the process.
    public var longMax = 2
    /// Single writes and batches: connections of the process. Each is pipelined.
    public var writeMax = 4
    /// Transactions, COPY, sessions: connections of the process.
    public var leasedMax = 4

    /// `statement_timeout` of each lane. 0 is none.
    public var shortMilliseconds = 100
    public var longMilliseconds = 2_000
    public var writeMilliseconds = 5_000
    public var leasedMilliseconds = 30_000
    /// Beyond `statement_timeout`, for the network and a busy server: when nothing has been heard by then, the
    /// connection is given up.
    public var silenceMilliseconds = 5_000
    /// A transaction whose owner is silent for so long is ended by the server.
    public var idleInTransactionMilliseconds = 30_000
    /// How long a statement waits for another's lock before it gives up.
    public var lockMilliseconds = 5_000

    /// How long a statement waits for a connection before `PostgresUnavailable`.
    public var acquireMilliseconds = 3_000
    /// How long connecting may take, name look-up excluded.
    public var connectMilliseconds = 5_000
    /// Statements that wait in one lane of one loop; more are refused with `PostgresUnavailable.busy`.
    public var queueMax = 20_000
    public var reconnectFirstMilliseconds = 50
    public var reconnectMilliseconds = 2_000

    /// Shown in `pg_stat_activity`, followed by `/` and the lane.
    public var applicationName = "martlet"
    /// A pooler gives each transaction another server connection. Nothing is prepared then, no start-up options are
    /// sent (the timeouts and read-only lanes are the role's to set), and no connection is a session.
    public var isPooled: Bool

    /// libpq's keywords as the URL gave them.
    private(set) var parameters: [String: String]
    /// Those of the server itself, where another way leads past a pooler.
    private var directParameters: [String: String]?

    /// - Parameters:
    ///   - url: `postgres://user:password@host:port/database?…`, or libpq's `host=… dbname=…` form
    ///     (PostgreSQL manual, 34.1.1).
    ///   - directURL: the same of the server itself, for what needs a session of its own; nil: the same way.
    ///   - isPooled: whether a transaction pooler answers at `url`.
    public init(url: String, directURL: String? = nil, isPooled: Bool = false) throws(PostgresConfigurationError) {
        parameters = try Self.parse(url)
        if let directURL { directParameters = try Self.parse(directURL) }
        self.isPooled = isPooled
    }

    /// The way to sessions, for LISTEN and advisory locks; nil when there is only the pooler.
    public var direct: PostgresConfiguration? {
        guard let directParameters else { return isPooled ? nil : self }
        var other = self
        other.parameters = directParameters
        other.directParameters = nil
        other.isPooled = false
        return other
    }

    private static func parse(_ url: String) throws(PostgresConfigurationError) -> [String: String] {
        guard !url.isEmpty else { throw PostgresConfigurationError("the connection string is empty") }
        guard !url.utf8.contains(0) else { throw PostgresConfigurationError("the connection string has a NUL in it") }
        // libpq would take another scheme for its own form of settings, and say what is wrong with that.
        let scheme = url.prefix { $0.isLetter || $0.isNumber || $0 == "+" }
        if url.dropFirst(scheme.count).hasPrefix("://"), scheme != "postgres", scheme != "postgresql" {
            throw PostgresConfigurationError("it must be like postgres://user:password@host:port/database")
        }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(url, &message) else {
            defer { PQfreemem(message) }
            let text = message.map { String(cString: $0) } ?? ""
            throw PostgresConfigurationError(withoutQuotes(text))
        }
        defer { PQconninfoFree(options) }
        var parameters: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { parameters[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        try checkServers(parameters)
        return parameters
    }

    /// What libpq would say only when it connects, or not at all: a service on a standby can read, and nothing else.
    private static func checkServers(_ parameters: [String: String]) throws(PostgresConfigurationError) {
        func count(_ keyword: String) -> Int {
            guard let list = parameters[keyword], !list.isEmpty else { return 0 }
            return list.split(separator: ",", omittingEmptySubsequences: false).count
        }
        let servers = max(count("host"), count("hostaddr"), 1)
        guard count("port") <= 1 || count("port") == servers else {
            throw PostgresConfigurationError("it names \(count("port")) ports for \(servers) hosts")
        }
        guard count("host") == 0 || count("hostaddr") == 0 || count("host") == count("hostaddr") else {
            throw PostgresConfigurationError("it names another number of hosts than of their addresses")
        }
        switch parameters["target_session_attrs"] {
        case nil, "primary", "read-write": break
        case "any" where servers == 1: break
        default:
            throw PostgresConfigurationError(
                "target_session_attrs must be read-write or primary, because a standby takes no writes")
        }
    }

    /// What libpq quotes may be the password.
    private static func withoutQuotes(_ message: String) -> String {
        let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
        let kept = parts.enumerated().map { $0.offset.isMultiple(of: 2) ? String($0.element) : "…" }
        return kept.joined(separator: "\"").trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// What tells PostgreSQL's own programs the same (PostgreSQL manual, 34.15). The password is in here: give it to a
    /// child in its environment, never in its arguments, which everybody on the machine can read.
    public var environment: [String: String] {
        guard let options = PQconndefaults() else { return [:] }
        defer { PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let variable = option.pointee.envvar, let value = parameters[String(cString: keyword)] {
                values[String(cString: variable)] = value
            }
            option += 1
        }
        return values
    }

    /// `db1:5432,db2:5432`
    public var address: String {
        let targets = ConnectionPlan(self).servers
        return targets.map { "\($0.host.isEmpty ? $0.address : $0.host):\($0.port.isEmpty ? "5432" : $0.port)" }
            .joined(separator: ",")
    }

    public var host: String { parameters["host"] ?? parameters["hostaddr"] ?? "" }
    public var database: String { parameters["dbname"] ?? parameters["user"] ?? "" }

    /// The same server, user and limits, another database.
    public func with(database: String) throws(PostgresConfigurationError) -> PostgresConfiguration {
        guard !database.isEmpty, !database.utf8.contains(0) else {
            throw PostgresConfigurationError("a database's name is neither empty nor has it a NUL")
        }
        var other = self
        other.parameters["dbname"] = database
        other.directParameters?["dbname"] = database
        return other
    }
}

/// A connection string that cannot be used. Never quotes it.
public struct PostgresConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    public let reason: String
    init(_ reason: String) { self.reason = reason }
    public var description: String { "not a PostgreSQL connection string: \(reason)" }
}

extension PostgresConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        "postgres \(parameters["user"] ?? "")@\(host):\(parameters["port"] ?? "5432")/\(database)"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

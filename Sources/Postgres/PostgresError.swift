import Cpq

/// What PostgreSQL said about a statement. Its descriptions name codes, constraints and columns, never values:
/// `message` and `detail` may quote a row and are only for those who ask for them.
public struct PostgresError: Error, Sendable, Equatable {
    /// Five characters (PostgreSQL manual, appendix A), `23505` for a unique violation.
    public let sqlState: String
    public let constraint: String?
    public let schema: String?
    public let table: String?
    public let column: String?
    /// May quote values. Not part of any description.
    public let message: String
    /// May quote values. Not part of any description.
    public let detail: String?
    /// The function of the server that raised it; in no language, unlike the message.
    let routine: String?
    /// FATAL or PANIC: the server ends the connection with it.
    let isFatal: Bool

    public init(
        sqlState: String, constraint: String? = nil, schema: String? = nil, table: String? = nil,
        column: String? = nil, message: String = "", detail: String? = nil
    ) {
        self.sqlState = sqlState
        self.constraint = constraint
        self.schema = schema
        self.table = table
        self.column = column
        self.message = message
        self.detail = detail
        routine = nil
        isFatal = false
    }

    /// Reads a failed result. Does not free it.
    init(result: OpaquePointer) {
        func field(_ code: Character) -> String? {
            PQresultErrorField(result, Int32(code.asciiValue ?? 0)).map { String(cString: $0) }
        }
        // The letters are the protocol's own field codes (PostgreSQL manual, 55.8); libpq's macros do not import.
        sqlState = field("C") ?? Self.noState
        constraint = field("n")
        schema = field("s")
        table = field("t")
        column = field("c")
        message = field("M") ?? ""
        detail = field("D")
        routine = field("R")
        let severity = field("V") ?? "FATAL"
        isFatal = severity == "FATAL" || severity == "PANIC"
    }

    /// libpq made the error itself: the connection broke.
    static let noState = "08006"

    public var isUniqueViolation: Bool { sqlState == "23505" }
    public var isForeignKeyViolation: Bool { sqlState == "23503" }
    public var isCheckViolation: Bool { sqlState == "23514" }
    public var isNotNullViolation: Bool { sqlState == "23502" }
    /// Another transaction was in the way; the same transaction run again may succeed.
    public var isSerialization: Bool { sqlState == "40001" || sqlState == "40P01" }
    /// `statement_timeout` or a cancel request.
    public var isTimeout: Bool { sqlState == "57014" }
    public var isLockTimeout: Bool { sqlState == "55P03" }
    public var isReadOnly: Bool { sqlState == "25006" }
    /// The server cannot serve for now: shutting down, starting, out of connections, memory or disk.
    public var isUnavailable: Bool {
        sqlState.hasPrefix("08") || sqlState.hasPrefix("57P") || sqlState.hasPrefix("53")
    }

    /// The prepared statement is gone or its result's shape has changed; nothing was executed.
    var isStale: Bool {
        sqlState == "26000" || (sqlState == "0A000" && routine == "RevalidateCachedQuery")
    }
}

extension PostgresError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        var text = "PostgreSQL error \(sqlState)"
        if let constraint { text += ", constraint \(constraint)" }
        if let table { text += ", table \(table)" }
        if let column { text += ", column \(column)" }
        return text
    }

    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["sqlState": sqlState]) }
}

/// PostgreSQL could not be asked, or its answer did not come.
public enum PostgresUnavailable: Error, Sendable, Equatable {
    /// No connection within `acquireSecondsMax`.
    case notReachable
    /// All connections were at work for `acquireSecondsMax`, or the queue before them is full.
    case busy
    /// The connection ended before the statement took effect.
    case connectionLost
    /// The connection ended after a write was sent: it may have been done or not. Never repeated by the driver.
    case outcomeUnknown
    /// `Database.close()` was called.
    case closed
}

/// A fault in the calling code.
public enum PostgresMisuse: Error, Sendable, Equatable {
    /// A `Transaction` or session was used after its closure had ended.
    case leaseEnded
    /// COPY or a script at the same time as another statement of the same lease.
    case concurrentUse
    /// COPY takes no binds.
    case bindsNotAllowed
    /// The statement is a COPY, or not one where COPY was asked for.
    case copy
    /// Behind a transaction pooler no connection is a session, and no other way to the server is known.
    case noSession
    /// A channel's name has 1 to 63 bytes and there are 1 to `Listener.channelsMax` of them.
    case channelName
}

import Cpq

/// A blocking libpq connection for making and dropping databases. Only on the threads of an `OffloadPool`.
final class AdminConnection {
    private let raw: OpaquePointer

    init(_ parameters: [String: String]) throws {
        // Values are quoted as PostgreSQL manual 34.1.1.1 says.
        let text = parameters.map { "\($0.key)='\(Self.escape($0.value))'" }.joined(separator: " ")
        guard let raw = PQconnectdb(text) else { throw TestDatabaseError("libpq is out of memory") }
        self.raw = raw
        guard PQstatus(raw) == CONNECTION_OK else {
            throw TestDatabaseError("connecting: \(String(cString: PQerrorMessage(raw)))")
        }
        PQsetNoticeProcessor(raw, { _, _ in }, nil)
    }

    deinit { PQfinish(raw) }

    private static func escape(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
    }

    /// Runs statements by the simple protocol and gives the rows of the last, as text.
    @discardableResult
    func run(_ sql: String) throws -> [[String?]] {
        guard let result = PQexec(raw, sql) else { throw TestDatabaseError(String(cString: PQerrorMessage(raw))) }
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY else {
            throw TestDatabaseError("\(sql): \(status) \(String(cString: PQresultErrorMessage(result)))")
        }
        return (0..<PQntuples(result)).map { row in
            (0..<PQnfields(result)).map { column in
                PQgetisnull(result, row, column) == 1 ? nil : String(cString: PQgetvalue(result, row, column))
            }
        }
    }
}

/// Says what is wrong with the test's own database, not with the code under test.
public struct TestDatabaseError: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

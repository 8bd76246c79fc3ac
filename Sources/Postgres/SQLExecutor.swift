/// Something that runs statements: a lane of a `Database`, an open `Transaction`, a session.
///
/// Decode closures run on the connection's loop; what they return leaves it. All throw `PostgresError` (the statement
/// failed), `PostgresUnavailable` (it could not be asked), `PostgresEncodingError` and `PostgresDecodingError` (a value
/// does not fit), or `CancellationError`.
public protocol SQLExecutor: Sendable {
    /// Runs statements that stand or fall together: one round trip, one implicit transaction where none is open.
    /// - Parameter read: called once, on the loop, with a result for each statement.
    func run<T: Sendable>(
        _ first: SQL, _ rest: [SQL], read: @escaping @Sendable (QueryResult, [QueryResult]) throws -> T
    ) async throws -> T
}

extension SQLExecutor {
    /// All rows.
    public func rows<T: Sendable>(
        _ sql: SQL, as decode: @escaping @Sendable (Row) throws -> T
    ) async throws -> [T] {
        try await run(sql, []) { result, _ in try result.all(decode) }
    }

    /// The first row; nil when there is none. More rows are not decoded, but they were read: let the statement say
    /// LIMIT 1.
    public func first<T: Sendable>(
        _ sql: SQL, as decode: @escaping @Sendable (Row) throws -> T
    ) async throws -> T? {
        try await run(sql, []) { result, _ in result.count > 0 ? try decode(result[0]) : nil }
    }

    /// The number of rows inserted, updated, deleted or read.
    @discardableResult
    public func execute(_ sql: SQL) async throws -> Int {
        try await run(sql, []) { result, _ in result.affected }
    }

    /// Several statements, one round trip, one implicit transaction: all are done, or none. In a transaction they are
    /// part of it. Each statement sees what those before it have done.
    ///
    ///     let (rooms, messages) = try await db.write.batch(
    ///         Statement("SELECT …") { try $0.get(0, as: Int64.self) }, Statement("INSERT …") { … })
    @discardableResult
    public func batch<each T: Sendable>(
        _ statement: repeat Statement<each T>
    ) async throws -> (repeat [each T]) {
        var all: [SQL] = []
        for one in repeat each statement { all.append(one.sql) }
        guard let first = all.first else { return (repeat Self.nothing(each statement)) }
        return try await run(first, Array(all.dropFirst())) { first, rest in
            var next = 0
            func take<U: Sendable>(_ one: Statement<U>) throws -> [U] {
                defer { next += 1 }
                return try one.read(next == 0 ? first : rest[next - 1])
            }
            return (repeat try take(each statement))
        }
    }

    private static func nothing<U: Sendable>(_ statement: Statement<U>) -> [U] { [] }

    /// As `batch` of statements, for a number of them known only when it runs. Gives the affected rows of each.
    @discardableResult
    public func batch(_ statements: [SQL]) async throws -> [Int] {
        guard let first = statements.first else { return [] }
        return try await run(first, Array(statements.dropFirst())) { first, rest in
            [first.affected] + rest.map(\.affected)
        }
    }
}

extension QueryResult {
    func all<T>(_ decode: (Row) throws -> T) throws -> [T] {
        var values: [T] = []
        values.reserveCapacity(count)
        for index in 0..<count { values.append(try decode(self[index])) }
        return values
    }
}

/// A statement of a batch and how its rows are read.
public struct Statement<T: Sendable>: Sendable {
    let sql: SQL
    let read: @Sendable (QueryResult) throws -> [T]

    public init(_ sql: SQL, as decode: @escaping @Sendable (Row) throws -> T) {
        self.sql = sql
        read = { try $0.all(decode) }
    }
}

extension Statement where T == Int {
    /// Reads no rows; gives one number, that of the affected rows.
    public init(_ sql: SQL) {
        self.sql = sql
        read = { [$0.affected] }
    }
}

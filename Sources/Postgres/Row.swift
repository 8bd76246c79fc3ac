import Cpq
import Foundation

/// What a statement answered. Lives on the loop, in the lane's hands and in a `read` closure; freed with its last
/// reference.
public final class QueryResult {
    let raw: OpaquePointer
    public let count: Int

    /// Takes the result over: it is freed here and nowhere else.
    init(taking raw: OpaquePointer) {
        self.raw = raw
        count = Int(PQntuples(raw))
    }

    deinit { PQclear(raw) }

    /// - Parameter index: `0..<count`.
    public subscript(index: Int) -> Row {
        precondition(index >= 0 && index < count, "there is no such row")
        return Row(result: self, index: Int32(index))
    }

    /// Rows inserted, updated, deleted, or read.
    public var affected: Int { PQcmdTuples(raw).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The command's tag, such as `INSERT 0 1` or `COMMIT`.
    var tag: String { PQcmdStatus(raw).map { String(cString: $0) } ?? "" }

    func columnName(_ index: Int32) -> String { PQfname(raw, index).map { String(cString: $0) } ?? "#\(index)" }
}

/// One row, valid during the decode closure it is given to: nothing of it is Sendable, only what is decoded leaves.
public struct Row {
    let result: QueryResult
    let index: Int32

    /// The value of a column by position, from 0.
    /// - Throws: `PostgresDecodingError` when there is no such column, its type is another one, or it is NULL and `T`
    ///   is
    ///   not an optional.
    public func get<T: PostgresDecodable>(_ index: Int, as type: T.Type = T.self) throws(PostgresDecodingError) -> T {
        let column = Int32(truncatingIfNeeded: index)
        guard index >= 0, index < Int(PQnfields(result.raw)) else {
            throw PostgresDecodingError(column: "#\(index)", reason: .noSuchColumn)
        }
        do throws(PostgresCellError) {
            guard PQgetisnull(result.raw, self.index, column) == 0 else { return try T.decodeNull() }
            let length = Int(PQgetlength(result.raw, self.index, column))
            let start = PQgetvalue(result.raw, self.index, column)
            let cell = PostgresCell(
                bytes: UnsafeRawBufferPointer(start: start, count: length), type: PQftype(result.raw, column))
            return try T.decode(cell)
        } catch {
            throw PostgresDecodingError(column: result.columnName(column), reason: .cell(error))
        }
    }

    /// The value of a column by its name, as it is spelled in the result (case counts).
    public func get<T: PostgresDecodable>(_ name: String, as type: T.Type = T.self) throws(PostgresDecodingError) -> T {
        let columns = PQnfields(result.raw)
        let found = name.withCString { wanted -> Int32? in
            (0..<columns).first { PQfname(result.raw, $0).map { strcmp($0, wanted) == 0 } ?? false }
        }
        guard let found else { throw PostgresDecodingError(column: name, reason: .noSuchColumn) }
        return try get(Int(found))
    }
}

/// A column that is not what the code expects: a fault in the code or the schema, never of a client.
public struct PostgresDecodingError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        case noSuchColumn
        case cell(PostgresCellError)
    }

    public let column: String
    public let reason: Reason

    public init(column: String, reason: Reason) {
        self.column = column
        self.reason = reason
    }

    public var description: String {
        switch reason {
        case .noSuchColumn: "column \(column): there is no such column"
        case .cell(.null): "column \(column): NULL, but a value is expected"
        case .cell(.mismatch(let type, let wanted)): "column \(column): type \(type) cannot be read as \(wanted)"
        case .cell(.outOfRange(let wanted)): "column \(column): out of range for \(wanted)"
        case .cell(.infinite): "column \(column): infinity cannot be read as Date"
        case .cell(.malformed(let wanted)): "column \(column): malformed \(wanted)"
        case .cell(.dimensions): "column \(column): only arrays of one dimension can be read"
        }
    }
}

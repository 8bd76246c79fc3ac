import Foundation
import Synchronization
import Tracing

/// Spans of statements: what was asked of which table, never the values.
final class StatementTracing: Sendable {
    /// Shapes of statements whose names are kept; beyond, names are made anew each time.
    static let namesMax = 2_000

    private let tracer: Tracer
    private let names = Mutex<[UInt64: StatementName]>([:])

    init(_ tracer: Tracer) { self.tracer = tracer }

    /// Nil where the present task is about nothing that is traced.
    /// - Parameter count: of the statements that go together.
    func begin(_ statement: SQL, count: Int) -> Span? {
        guard let parent = TraceContext.current, parent.isSampled else { return nil }
        let name = name(of: statement)
        var attributes = [
            SpanAttribute("db.system.name", "postgresql"), SpanAttribute("db.operation.name", .string(name.operation)),
        ]
        if let table = name.table { attributes.append(SpanAttribute("db.collection.name", .string(table))) }
        if count > 1 { attributes.append(SpanAttribute("db.operation.batch.size", .int(count))) }
        return tracer.begin(below: parent, name.text, .client, attributes)
    }

    private func name(of statement: SQL) -> StatementName {
        let digest = statement.key.digest
        if let known = names.withLock({ $0[digest] }) { return known }
        let name = StatementName(statement.text)
        names.withLock { names in
            if names.count < Self.namesMax { names[digest] = name }
        }
        return name
    }
}

extension Span {
    /// On the loop of the connection, when the caller is told.
    func end(_ outcome: Outcome<QueryResult>) {
        guard case .failed(let error) = outcome else { return end() }
        fail(error)
    }

    func fail(_ error: any Error) {
        switch error {
        case let error as PostgresError:
            end([SpanAttribute("db.response.status_code", .string(error.sqlState))], error: error.sqlState)
        case let error as PostgresUnavailable: end(error: "\(error)")
        default: end(error: "\(type(of: error))")
        }
    }
}

/// What a statement does, in two words: `INSERT job_postings`.
struct StatementName: Sendable, Equatable {
    let operation: String
    let table: String?

    var text: String { table.map { "\(operation) \($0)" } ?? operation }

    /// The first table that is written to; of a statement that writes nothing the first that is read. Names of common
    /// table expressions are none.
    init(_ statement: String) {
        let words = statement.split { $0.isWhitespace || "(),;".contains($0) }.map(String.init)
        let first = words.first?.uppercased() ?? ""
        var expressions: Set<String> = []
        for (index, word) in words.enumerated() where word.uppercased() == "AS" && index > 0 {
            expressions.insert(words[index - 1])
        }
        func word(_ index: Int) -> String { words.indices.contains(index) ? words[index].uppercased() : "" }
        var read: String?
        for index in words.indices {
            switch word(index) {
            case "INSERT" where word(index + 1) == "INTO" && words.indices.contains(index + 2):
                (operation, table) = ("INSERT", words[index + 2])
                return
            case "DELETE" where word(index + 1) == "FROM" && words.indices.contains(index + 2):
                (operation, table) = ("DELETE", words[index + 2])
                return
            case "UPDATE" where !["DO", "FOR", "KEY"].contains(word(index - 1)) && words.indices.contains(index + 1):
                (operation, table) = ("UPDATE", words[index + 1])
                return
            case "FROM"
            where read == nil && !["DISTINCT", "EPOCH"].contains(word(index - 1)) && words.indices.contains(index + 1):
                let name = words[index + 1]
                let isTable =
                    name.first?.isLetter == true && !expressions.contains(name)
                    && !["UNNEST", "SELECT", "LATERAL", "GENERATE_SERIES"].contains(name.uppercased())
                if isTable { read = name }
            default: break
            }
        }
        operation = first == "WITH" ? "SELECT" : first
        table = read
    }
}

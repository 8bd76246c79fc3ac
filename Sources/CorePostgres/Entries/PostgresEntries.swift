import Core
import Foundation
import Postgres

public struct PostgresEntries: EntryRepository {
    private let db: Database
    private let scans = EntryScans()
    private let totals = EntryTotals()

    public init(db: Database) { self.db = db }

    public func entries(_ query: EntryQuery, viewer: User.ID?, now: Date) async throws -> EntryPage {
        let statements = EntryStatements(query, viewer: viewer, now: now)
        return try await inTurn(query) {
            let (values, total) = try await page(query, statements, now)
            return EntryPage(entries: try await populated(values, query, statements), total: total)
        }
    }

    public func entry(_ id: Int64, _ query: EntryQuery, viewer: User.ID?, now: Date) async throws -> Entry {
        let statements = EntryStatements(query, viewer: viewer, now: now)
        return try await inTurn(byID: true, query) {
            let value = try await db.short.first(statements.single(id), as: EntryRows.value(query.kind))
            return try await populated([value.orNotFound()], query, statements).first.orNotFound()
        }
    }

    /// What no index answers waits for its turn, and is refused when it cannot be found in the lane's time: there is
    /// no use in asking again. For the rest a timeout means that the database is busy.
    private func inTurn<T>(
        byID: Bool = false, _ query: EntryQuery, _ work: () async throws -> T
    ) async throws -> T {
        let isQuick = byID ? query.isPopulatedByIndex : query.isServedByIndex
        guard !isQuick else { return try await mapped(work) }
        return try await scans.run {
            try await mapped {
                do { return try await work() } catch let error as PostgresError where error.isTimeout {
                    throw AppError(
                        .refused, "This takes too long to find: narrow the filters, or sort by another field.")
                }
            }
        }
    }

    private func page(
        _ query: EntryQuery, _ statements: EntryStatements, _ now: Date
    ) async throws -> (values: [Entry.Value], total: Int64?) {
        let page = statements.page()
        let read = EntryRows.value(query.kind)
        guard query.counted else { return (try await db.long.rows(page, as: read), nil) }
        if let total = totals.recent(query, now: now) { return (try await db.long.rows(page, as: read), total) }
        let total = Statement(statements.total()) { try $0.get(0, as: Int64.self) }
        if query.isServedByIndex {
            let (values, counted) = try await db.long.batch(Statement(page, as: read), total)
            totals.keep(counted.first, of: query, now: now)
            return (values, counted.first)
        }
        // Finding them was the work, and a page that is not full says how many there are.
        let values = try await db.long.rows(page, as: read)
        if values.count < query.limit, !values.isEmpty || query.offset == 0 {
            return (values, Int64(query.offset + values.count))
        }
        return (values, try await db.long.batch(total).first)
    }

    /// One round trip for each level of relations, with one statement for each relation that does not come along.
    private func populated(
        _ values: [Entry.Value], _ query: EntryQuery, _ statements: EntryStatements
    ) async throws -> [Entry] {
        guard !query.comesAlong else { return values.map { $0.entry(query) } }
        var tree = EntryTree(values, query)
        while let requests = try tree.descend() {
            let all = requests.map { request in
                statements.related(
                    request.relation, to: request.starts, request.query, rowsMax: tree.rowsLeft,
                    bytesMax: tree.bytesLeft)
            }
            guard let first = all.first else { continue }
            let kinds = requests.map(\.relation.to)
            let found = try await db.long.run(first, Array(all.dropFirst())) { first, rest in
                try zip(kinds, [first] + rest).map { kind, result in try EntryRows.links(kind, in: result) }
            }
            for (request, links) in zip(requests, found) { try tree.add(links, to: request) }
        }
        return tree.entries()
    }
}

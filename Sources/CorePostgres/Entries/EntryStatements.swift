import Core
import Foundation
import Postgres

/// The statements of an entry query, as one viewer's. Each is put together from literals, with all values bound; the
/// same shape of query gives the same statement, so that it is prepared once.
struct EntryStatements {
    /// Bytes of long text (descriptions, bios) that one answer shows beyond its page. Two thousand postings may have a
    /// hundred kilobytes each, and an answer holds them in memory.
    static let populatedBytesMax = 16 << 20
    /// Conditions and sorts of a query whose statements are kept prepared. There are as many shapes of larger ones as
    /// a client likes, and each would have a megabyte of every connection's memory.
    static let keptPartsMax = 6

    private let query: EntryQuery
    private let visibility: EntryVisibility
    private let conditions: EntryConditions
    private let isKept: Bool

    init(_ query: EntryQuery, viewer: User.ID?, now: Date) {
        self.query = query
        isKept = query.partCount <= Self.keptPartsMax
        visibility = EntryVisibility(viewer: viewer, now: now)
        conditions = EntryConditions(visibility: visibility, asksOneByOne: !isKept)
    }

    private func kept(_ statement: SQL) -> SQL { isKept ? statement : statement.unprepared }

    /// One page of rows. The ids are found first, by an index alone where there is one, and only those of the page are
    /// joined. As an array, because the plan may be made before the limit is known: of a subquery PostgreSQL would
    /// expect a tenth of the table, and read all of it.
    func page() -> SQL {
        let kind = query.kind
        let ids: SQL =
            """
            SELECT \(EntryTables.id(kind)) FROM \(EntryTables.table(kind)) WHERE \(listed)
            ORDER BY \(conditions.order(kind, query.sort)) LIMIT \(query.limit)::bigint OFFSET \(query.offset)::bigint
            """
        guard !query.sort.isEmpty else {
            // In the order of the primary key, which the rows come in anyway: a tenth cheaper than by their places.
            return kept(
                """
                SELECT \(EntryTables.columns(kind)) FROM \(EntryTables.table(kind)) \(EntryTables.joins(kind))
                WHERE \(EntryTables.id(kind)) = ANY (ARRAY(\(ids)))
                ORDER BY \(EntryTables.id(kind)) DESC
                """)
        }
        return kept(
            """
            SELECT \(EntryTables.columns(kind))
            FROM unnest(ARRAY(\(ids))) WITH ORDINALITY AS page (id, place)
            JOIN \(EntryTables.table(kind)) ON \(EntryTables.id(kind)) = page.id \(EntryTables.joins(kind))
            ORDER BY page.place
            """)
    }

    private var listed: SQL {
        switch (visibility.condition(query.kind, .list), query.filter.map(conditions.condition)) {
        case (let visible?, let wanted?): "\(visible) AND \(wanted)"
        case (let visible?, nil): visible
        case (nil, let wanted?): wanted
        case (nil, nil): "true"
        }
    }

    /// Counted up to `EntryQuery.countedMax`; beyond, PostgreSQL's own estimate of how many there are, where all are
    /// listed that an index has.
    func total() -> SQL {
        let counted: SQL =
            """
            (SELECT count(*) AS n FROM (SELECT FROM \(EntryTables.table(query.kind)) WHERE \(listed)
             LIMIT \(EntryQuery.countedMax)::bigint) found) counted
            """
        let index: SQL? =
            switch (query.kind, query.filter) {
            case (.posting, nil): "'job_postings_published'"
            case (.company, nil): "'companies_pkey'"
            default: nil
            }
        guard let index else { return kept("SELECT counted.n FROM \(counted)") }
        return """
            SELECT CASE WHEN counted.n < \(EntryQuery.countedMax)::bigint THEN counted.n
                        ELSE greatest(counted.n, (SELECT i.reltuples FROM pg_class i
                                                  WHERE i.oid = \(index)::regclass)::bigint) END
            FROM \(counted)
            """
    }

    func single(_ id: Int64) -> SQL {
        let kind = query.kind
        return """
            SELECT \(EntryTables.columns(kind)) FROM \(EntryTables.table(kind)) \(EntryTables.joins(kind))
            WHERE \(EntryTables.id(kind)) = \(id) AND \(visibility.condition(kind, .single) ?? "true")
            """
    }

    /// What is at the end of a relation, for all its starts at once: the start's id, then the row. Some more than
    /// `rowsMax` or `bytesMax` says that there is too much.
    func related(_ relation: EntryRelation, to starts: [Int64], _ query: EntryQuery, rowsMax: Int, bytesMax: Int) -> SQL
    {
        let (from, to) = (relation.from, relation.to)
        let limit = relation.isMany ? EntryQuery.populatedPerParentMax : 1
        let wanted = query.filter.map(conditions.condition) ?? "true"
        let ids: SQL =
            """
            SELECT \(EntryTables.id(to)) FROM \(EntryTables.table(from)), \(conditions.end(of: relation))
            AND \(EntryTables.id(from)) = start.id AND \(wanted)
            ORDER BY \(conditions.order(to, query.sort)) LIMIT \(limit)::bigint
            """
        let links: SQL =
            """
            (SELECT start.id AS parent, found.id AS id, start.place AS x, found.place AS y
             FROM unnest(\(starts)::bigint[]) WITH ORDINALITY AS start (id, place)
             CROSS JOIN LATERAL unnest(ARRAY(\(ids))) WITH ORDINALITY AS found (id, place)
             ORDER BY x, y LIMIT \(rowsMax + 1)::bigint)
            """
        return kept(
            """
            SELECT link.parent, \(EntryTables.columns(to))
            FROM \(EntryTables.weighed(links, to, bytesMax: bytesMax)) \(EntryTables.joins(to))
            ORDER BY link.x, link.y
            """)
    }
}

/// Which queries are quick however much there is: those that an index answers. All others look at rows until they have
/// found enough, which may be all rows.
extension EntryQuery {
    var isServedByIndex: Bool { (filter.map { $0.pins != nil } ?? isServedSort) && isPopulatedByIndex }

    var isPopulatedByIndex: Bool {
        populate.allSatisfy { relation, query in query.isServed(as: relation) && query.isPopulatedByIndex }
    }

    /// At the end of a relation, which is found by index: there may be very many, of which none fits, or which have to
    /// be put in order.
    private func isServed(as relation: EntryRelation) -> Bool {
        guard relation.isMany, filter?.pins != .few else { return true }
        return sort.isEmpty && (filter == nil || filter?.pins == .some)
    }

    private var isServedSort: Bool {
        // Media are everybody's, and what the viewer may see of them is found by looking.
        guard kind != .media else { return false }
        guard let first = sort.first else { return true }
        guard sort.count == 1, first.path.isEmpty else { return false }
        switch first.field {
        case .posting(.id), .posting(.createdAt), .posting(.publishedAt): return true
        default: return first.field == .id(of: kind)
        }
    }
}

extension EntryFilter {
    enum Pins { case few, some }

    /// Few: the filter names the ids. Some: it names nothing but the ids of what they belong to. Nil: neither.
    var pins: Pins? {
        switch self {
        case .compare(let condition):
            guard condition.field == .id(of: condition.field.kind) else { return nil }
            switch condition.comparison {
            case .equals, .isIn: return .few
            default: return nil
            }
        case .related(.postingCompany, let filter), .related(.applicationPosting, let filter):
            return filter.pins == .few ? .some : nil
        case .all(let filters):
            let pins = filters.map(\.pins)
            if pins.contains(.few) { return .few }
            return !pins.isEmpty && pins.allSatisfy { $0 == .some } ? .some : nil
        case .related, .any, .not, .hasRelated: return nil
        }
    }
}

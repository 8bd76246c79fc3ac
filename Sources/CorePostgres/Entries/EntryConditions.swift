import Core
import Foundation
import Postgres

/// Filters and sorts as SQL, on the aliases of `EntryTables`.
struct EntryConditions {
    let visibility: EntryVisibility
    /// PostgreSQL makes joins of EXISTS, and looks for the best order of them all: good for a few, and seconds of
    /// planning for dozens. OFFSET 0 has it ask one after the other, as they stand.
    let asksOneByOne: Bool

    func condition(_ filter: EntryFilter) -> SQL {
        switch filter {
        case .all(let filters): all(filters.map(condition))
        case .any(let filters): any(filters.map(condition))
        case .not(let filter): "NOT (\(condition(filter)))"
        case .compare(let condition): comparison(condition)
        case .related(let relation, let filter):
            EntryTables.key(relation).flatMap { keyed(filter, $0) } ?? exists(relation, condition(filter))
        case .hasRelated(let relation, let wanted):
            wanted ? exists(relation, "true") : "NOT \(exists(relation, "true"))"
        }
    }

    private func all(_ conditions: [SQL]) -> SQL { joined(conditions) { "\($0) AND \($1)" } ?? "true" }
    private func any(_ conditions: [SQL]) -> SQL { joined(conditions) { "\($0) OR \($1)" } ?? "false" }

    private func joined(_ conditions: [SQL], _ join: (SQL, SQL) -> SQL) -> SQL? {
        conditions.first.map { first in "(\(conditions.dropFirst().reduce(first, join)))" }
    }

    private func exists(_ relation: EntryRelation, _ condition: SQL) -> SQL {
        asksOneByOne
            ? "EXISTS (SELECT FROM \(end(of: relation)) AND \(condition) OFFSET 0)"
            : "EXISTS (SELECT FROM \(end(of: relation)) AND \(condition))"
    }

    /// The rows at the end of a relation that the viewer sees, for FROM and WHERE.
    func end(of relation: EntryRelation) -> SQL {
        let table = EntryTables.table(relation.to)
        let link = EntryTables.link(relation)
        guard let visible = visibility.condition(relation) else { return "\(table) WHERE \(link)" }
        return "\(table) WHERE \(link) AND \(visible)"
    }

    /// The filter when it asks for the id alone, with another column in the id's place.
    private func keyed(_ filter: EntryFilter, _ key: SQL) -> SQL? {
        func keyed(_ filters: [EntryFilter]) -> [SQL]? {
            let conditions = filters.compactMap { self.keyed($0, key) }
            return conditions.count == filters.count ? conditions : nil
        }
        switch filter {
        case .all(let filters): return keyed(filters).map(all)
        case .any(let filters): return keyed(filters).map(any)
        case .not(let filter): return self.keyed(filter, key).map { "NOT (\($0))" }
        case .compare(let condition):
            guard condition.field == .id(of: condition.field.kind) else { return nil }
            return Self.compare(key, .integer, condition.comparison)
        case .related, .hasRelated: return nil
        }
    }

    private func comparison(_ condition: EntryCondition) -> SQL {
        guard let type = condition.field.type,
            let column = EntryColumns.expression(condition.field, now: visibility.now)
        else { return "NULL::boolean" }
        return condition.field == .posting(.description)
            ? Self.compare(column, type, condition.comparison.withOneSpaceForMany)
            : Self.compare(column, type, condition.comparison)
    }

    // MARK: Sorting

    /// Always with the id at the end, so that pages neither repeat nor miss an entry; in the direction of the sort
    /// before it, so that one index on both serves up and down.
    func order(_ kind: EntryKind, _ sort: [EntrySort]) -> SQL {
        let id = EntryTables.id(kind)
        guard let first = sort.first, let last = sort.last else { return "\(id) DESC" }
        let terms = sort.dropFirst().reduce(term(first)) { "\($0), \(term($1))" }
        if sort.contains(where: { $0.path.isEmpty && $0.field == .id(of: kind) }) { return terms }
        return last.descending ? "\(terms), \(id) DESC" : "\(terms), \(id)"
    }

    private func term(_ sort: EntrySort) -> SQL {
        let column = EntryColumns.expression(sort.field, now: visibility.now) ?? EntryTables.id(sort.field.kind)
        let value = sort.path.reversed().reduce(column) { "(SELECT \($0) FROM \(end(of: $1)))" }
        return sort.descending ? "\(value) DESC" : value
    }
}

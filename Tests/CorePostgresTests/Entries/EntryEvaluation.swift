import Core
import Foundation

/// Filters, sorts and `populate`, by looking at every entry.
extension EntryModel {
    /// The ids of a whole list, in order.
    func list(_ query: EntryQuery, _ viewer: User.ID?) -> [Int64] {
        sorted(ids(query.kind).filter { isListed(query.kind, $0, viewer) && fulfils(query, $0, viewer) }, query, viewer)
    }

    private func fulfils(_ query: EntryQuery, _ id: Int64, _ viewer: User.ID?) -> Bool {
        query.filter.map { holds($0, query.kind, id, viewer) == true } ?? true
    }

    /// What the query shows, as ids: `3{postingCompany:1{}}`.
    func shown(_ query: EntryQuery, _ id: Int64, _ viewer: User.ID?) -> String {
        let related = query.populate.sorted { "\($0.key)" < "\($1.key)" }.map { relation, query in
            let ends = sorted(ends(relation, of: id, viewer).filter { fulfils(query, $0, viewer) }, query, viewer)
            return "\(relation):" + ends.map { shown(query, $0, viewer) }.joined(separator: ",")
        }
        return "\(id){\(related.joined(separator: ";"))}"
    }

    static func shown(_ entry: Entry) -> String {
        let related = entry.related.sorted { "\($0.relation)" < "\($1.relation)" }.map { relation, related in
            let ends: [Entry] =
                switch related {
                case .one(let one): one.map { [$0] } ?? []
                case .many(let many): many
                }
            return "\(relation):" + ends.map { shown($0) }.joined(separator: ",")
        }
        return "\(entry.id){\(related.joined(separator: ";"))}"
    }

    // MARK: Filters

    func holds(_ filter: EntryFilter, _ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) -> Bool? {
        switch filter {
        case .all(let filters):
            let all = filters.map { holds($0, kind, id, viewer) }
            return all.contains(false) ? false : all.contains(nil) ? nil : true
        case .any(let filters):
            let all = filters.map { holds($0, kind, id, viewer) }
            return all.contains(true) ? true : all.contains(nil) ? nil : false
        case .not(let filter): return holds(filter, kind, id, viewer).map { !$0 }
        case .compare(let condition):
            let found = value(kind, id).flatMap { Self.value(of: condition.field, in: $0, now: now) }
            return holds(condition.comparison, found)
        case .related(let relation, let filter):
            return ends(relation, of: id, viewer).contains { holds(filter, relation.to, $0, viewer) == true }
        case .hasRelated(let relation, let wanted): return ends(relation, of: id, viewer).isEmpty != wanted
        }
    }

    private func holds(_ comparison: EntryComparison, _ found: EntryValue?) -> Bool? {
        switch comparison {
        case .isNull: return found == nil
        case .isIn(let values):
            return values.isEmpty ? false : found.map { found in values.contains { compare(found, $0) == 0 } }
        case .equals(let value): return compare(found, value).map { $0 == 0 }
        case .less(let value): return compare(found, value).map { $0 < 0 }
        case .lessOrEqual(let value): return compare(found, value).map { $0 <= 0 }
        case .greater(let value): return compare(found, value).map { $0 > 0 }
        case .greaterOrEqual(let value): return compare(found, value).map { $0 >= 0 }
        case .between(let low, let high):
            return compare(found, low).flatMap { first in compare(found, high).map { first >= 0 && $0 <= 0 } }
        case .equalsIgnoringCase(let text): return search(found, text, true) { $0 == $1 }
        case .contains(let text, let ignoring): return search(found, text, ignoring) { Self.contains($0, $1) }
        case .startsWith(let text, let ignoring): return search(found, text, ignoring) { $0.starts(with: $1) }
        case .endsWith(let text, let ignoring):
            return search(found, text, ignoring) { $0.reversed().starts(with: $1.reversed()) }
        }
    }

    private func search(
        _ found: EntryValue?, _ text: String, _ ignoringCase: Bool, _ test: ([Unicode.Scalar], [Unicode.Scalar]) -> Bool
    ) -> Bool? {
        guard case .text(let found)? = found else { return nil }
        let (left, right) = ignoringCase ? (found.lowercased(), text.lowercased()) : (found, text)
        return test(Array(left.unicodeScalars), Array(right.unicodeScalars))
    }

    private static func contains(_ text: [Unicode.Scalar], _ part: [Unicode.Scalar]) -> Bool {
        (0...text.count).contains { text[$0...].starts(with: part) }
    }

    // MARK: Order

    private func sorted(_ ids: [Int64], _ query: EntryQuery, _ viewer: User.ID?) -> [Int64] {
        let idDescends = query.sort.last?.descending ?? true
        return ids.sorted { left, right in
            for sort in query.sort {
                let (one, other) = (key(sort, query.kind, left, viewer), key(sort, query.kind, right, viewer))
                // No value comes after all values, going up.
                let order = compare(one, other, shown: false) ?? ((one == nil ? 1 : 0) - (other == nil ? 1 : 0))
                if order != 0 { return sort.descending ? order > 0 : order < 0 }
            }
            return idDescends ? left > right : left < right
        }
    }

    private func key(_ sort: EntrySort, _ kind: EntryKind, _ id: Int64, _ viewer: User.ID?) -> EntryValue? {
        var at: Int64? = id
        for relation in sort.path { at = at.flatMap { ends(relation, of: $0, viewer).first } }
        return at.flatMap { value(sort.field.kind, $0) }.flatMap { Self.value(of: sort.field, in: $0, now: now) }
    }
}

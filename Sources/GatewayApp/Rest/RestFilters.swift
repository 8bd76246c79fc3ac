import Core
import CoreHTTP

/// `filters`, with every operator of contracts/01 §4. Where Strapi leaves open what a query means, this is what its
/// query builder makes of it: a list with an operator that takes one value means any of them, a value without an
/// operator means `$eq`, a list without one `$in`, a value for a relation is its id.
extension RestQueryReader {
    /// Nil when there is no condition in it.
    func filter(_ value: QueryTree, _ names: WireNames, _ path: [String]) throws(AppError) -> EntryFilter? {
        switch value {
        case .null, .text: throw .query(path, "The filters parameter must be an object or an array")
        case .list(let items):
            var filters: [EntryFilter] = []
            for (index, item) in items.enumerated() {
                if let filter = try filter(item, names, path + [String(index)]) { filters.append(filter) }
            }
            return Self.all(filters)
        case .object(let members):
            var filters: [EntryFilter] = []
            for member in members {
                if let filter = try condition(member, names, path + [member.name]) { filters.append(filter) }
            }
            return Self.all(filters)
        }
    }

    private static func all(_ filters: [EntryFilter]) -> EntryFilter? {
        filters.count > 1 ? .all(filters) : filters.first
    }

    private static func any(_ filters: [EntryFilter]) -> EntryFilter? {
        filters.count > 1 ? .any(filters) : filters.first
    }

    /// One name in an object of filters: an operator that joins, a field or a relation.
    private func condition(
        _ member: QueryTree.Member, _ names: WireNames, _ path: [String]
    ) throws(AppError) -> EntryFilter? {
        switch member.name {
        case "$and": return Self.all(try group(member.value, names, path))
        case "$or": return Self.any(try group(member.value, names, path))
        case "$not": return try filter(member.value, names, path).map { .not($0) }
        default:
            if let field = names.field(member.name) { return try compare(field, member.value, path) }
            if let relation = names.relation(member.name) { return try related(relation, member.value, path) }
            throw .unknownKey(member.name, path)
        }
    }

    /// The filters that `$and` and `$or` join: a list, an object whose names are numbers, or one alone.
    private func group(_ value: QueryTree, _ names: WireNames, _ path: [String]) throws(AppError) -> [EntryFilter] {
        var parts: [(String, QueryTree)] = []
        switch value {
        case .null, .text: throw .query(path, "Expected a list of filters.")
        case .list(let items): parts = items.enumerated().map { (String($0), $1) }
        case .object(let members):
            guard members.allSatisfy({ RestValue.integer($0.name) != nil }) else {
                return try filter(value, names, path).map { [$0] } ?? []
            }
            parts = members.map { ($0.name, $0.value) }
        }
        var filters: [EntryFilter] = []
        for (name, part) in parts {
            if let filter = try filter(part, names, path + [name]) { filters.append(filter) }
        }
        return filters
    }

    // MARK: Relations

    private func related(
        _ relation: EntryRelation, _ value: QueryTree, _ path: [String]
    ) throws(AppError) -> EntryFilter? {
        let names = WireNames.of(relation.to)
        let id = EntryField.id(of: relation.to)
        switch value {
        case .null: return .hasRelated(relation, false)
        case .text, .list: return try compare(id, value, path).map { .related(relation, $0) }
        case .object(let members):
            var outer: [EntryFilter] = []
            var inner: [EntryFilter] = []
            for member in members {
                let path = path + [member.name]
                switch member.name {
                case "$null": outer.append(.hasRelated(relation, try !flag(member.value, path)))
                case "$notNull": outer.append(.hasRelated(relation, try flag(member.value, path)))
                case let name where name.hasPrefix("$") && !["$and", "$or", "$not"].contains(name):
                    inner.append(try apply(name, member.value, to: id, path))
                default: if let filter = try condition(member, names, path) { inner.append(filter) }
                }
            }
            if let filter = Self.all(inner) { outer.append(.related(relation, filter)) }
            return Self.all(outer)
        }
    }

    // MARK: Fields

    private func compare(_ field: EntryField, _ value: QueryTree, _ path: [String]) throws(AppError) -> EntryFilter? {
        switch value {
        case .null: return try compare(field, .isNull, path)
        case .text(let text): return try compare(field, .equals(try self.value(text, field, path)), path)
        case .list: return try apply("$in", value, to: field, path)
        case .object(let members):
            var filters: [EntryFilter] = []
            for member in members {
                filters.append(try apply(member.name, member.value, to: field, path + [member.name]))
            }
            return Self.all(filters)
        }
    }

    private func apply(
        _ name: String, _ value: QueryTree, to field: EntryField, _ path: [String]
    ) throws(AppError) -> EntryFilter {
        switch name {
        case "$eq": return try each(value, field, path) { .equals($0) }
        case "$ne": return .not(try each(value, field, path) { .equals($0) })
        case "$lt": return try each(value, field, path) { .less($0) }
        case "$lte": return try each(value, field, path) { .lessOrEqual($0) }
        case "$gt": return try each(value, field, path) { .greater($0) }
        case "$gte": return try each(value, field, path) { .greaterOrEqual($0) }
        case "$in": return try compare(field, .isIn(try values(value, field, path)), path)
        case "$notIn": return .not(try compare(field, .isIn(try values(value, field, path)), path))
        case "$between":
            let ends = try values(value, field, path)
            guard ends.count == 2 else { throw .query(path, "$between takes two values.") }
            return try compare(field, .between(ends[0], ends[1]), path)
        case "$null": return try null(field, try flag(value, path), path)
        case "$notNull": return try null(field, try !flag(value, path), path)
        case "$not":
            guard let filter = try compare(field, value, path) else { throw .query(path, "$not takes a condition.") }
            return .not(filter)
        default: return try applyText(name, value, to: field, path)
        }
    }

    private func applyText(
        _ name: String, _ value: QueryTree, to field: EntryField, _ path: [String]
    ) throws(AppError) -> EntryFilter {
        switch name {
        case "$eqi": return try eachText(value, field, path) { .equalsIgnoringCase($0) }
        case "$nei": return .not(try eachText(value, field, path) { .equalsIgnoringCase($0) })
        case "$contains": return try eachText(value, field, path) { .contains($0, ignoringCase: false) }
        case "$notContains": return .not(try eachText(value, field, path) { .contains($0, ignoringCase: false) })
        case "$containsi": return try eachText(value, field, path) { .contains($0, ignoringCase: true) }
        case "$notContainsi": return .not(try eachText(value, field, path) { .contains($0, ignoringCase: true) })
        case "$startsWith": return try eachText(value, field, path) { .startsWith($0, ignoringCase: false) }
        case "$startsWithi": return try eachText(value, field, path) { .startsWith($0, ignoringCase: true) }
        case "$endsWith": return try eachText(value, field, path) { .endsWith($0, ignoringCase: false) }
        case "$endsWithi": return try eachText(value, field, path) { .endsWith($0, ignoringCase: true) }
        default: throw .unknownKey(name, path)
        }
    }

    /// An operator of one value with one or with several, any of which will do. Null is compared by being null.
    private func each(
        _ value: QueryTree, _ field: EntryField, _ path: [String], _ make: (EntryValue) -> EntryComparison
    ) throws(AppError) -> EntryFilter {
        if case .null = value { return try compare(field, .isNull, path) }
        var filters: [EntryFilter] = []
        for value in try values(value, field, path) { filters.append(try compare(field, make(value), path)) }
        return Self.any(filters) ?? .any([])
    }

    private func eachText(
        _ value: QueryTree, _ field: EntryField, _ path: [String], _ make: (String) -> EntryComparison
    ) throws(AppError) -> EntryFilter {
        var filters: [EntryFilter] = []
        for text in try texts(value, path) { filters.append(try compare(field, make(text), path)) }
        return Self.any(filters) ?? .any([])
    }

    private func null(_ field: EntryField, _ isNull: Bool, _ path: [String]) throws(AppError) -> EntryFilter {
        let filter = try compare(field, EntryComparison.isNull, path)
        return isNull ? filter : .not(filter)
    }

    private func compare(
        _ field: EntryField, _ comparison: EntryComparison, _ path: [String]
    ) throws(AppError) -> EntryFilter {
        try located(path) { () throws(AppError) in try .compare(field, comparison) }
    }

    // MARK: Values

    private func values(_ value: QueryTree, _ field: EntryField, _ path: [String]) throws(AppError) -> [EntryValue] {
        var values: [EntryValue] = []
        for text in try texts(value, path) { values.append(try self.value(text, field, path)) }
        return values
    }

    private func texts(_ value: QueryTree, _ path: [String]) throws(AppError) -> [String] {
        switch value {
        case .text(let text): return [text]
        case .list(let items):
            var texts: [String] = []
            for item in items {
                guard case .text(let text) = item else { throw .query(path, "Expected a list of values.") }
                texts.append(text)
            }
            return texts
        case .null, .object: throw .query(path, "Expected a value.")
        }
    }

    private func value(_ text: String, _ field: EntryField, _ path: [String]) throws(AppError) -> EntryValue {
        guard let type = field.type else { throw .query(path, "This field is only shown.") }
        return try RestValue.value(text, type, path)
    }

    private func flag(_ value: QueryTree, _ path: [String]) throws(AppError) -> Bool {
        guard case .text(let text) = value else { throw RestValue.noFlag(path) }
        return try RestValue.flag(text, path)
    }
}

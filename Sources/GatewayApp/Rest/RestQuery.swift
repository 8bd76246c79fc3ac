import Core
import CoreHTTP

/// The query of a request in Strapi's list language (contracts/01 §4), read into what the repository understands.
/// Names that are not in `WireNames` are refused with their path, as Strapi does since 4.13; parameters of the first
/// level that Strapi does not know are ignored, as Strapi does.
struct RestQuery: Sendable {
    /// Names in one comma list: a page of everything there is.
    static let namesMax = 100

    let entries: EntryQuery
    let page: RestPage

    /// Of a list.
    /// - Parameter counted: whether the answer has a place for the total.
    /// - Throws: `invalid` with the path.
    init(list query: String, of kind: EntryKind, counted: Bool = true) throws(AppError) {
        guard !query.isEmpty else {
            page = RestPage()
            entries = try EntryQuery(kind, offset: page.offset, limit: page.limit, counted: counted)
            return
        }
        let tree = try QueryTree(query)
        if tree["_q"] != nil {
            throw .query(["_q"], "_q is not supported; ask /api/jobs/search for words.")
        }
        page = try RestPage(tree["pagination"] ?? .null)
        let plan = try RestQueryReader().plan(tree, WireNames.of(kind), [])
        entries = try plan.query(kind, page: page, counted: counted && page.counted)
    }

    /// Of one entry: only `fields` and `populate` mean something, as in Strapi.
    /// - Throws: `invalid` with the path.
    init(entry query: String, of kind: EntryKind) throws(AppError) {
        page = RestPage()
        guard !query.isEmpty else {
            entries = try EntryQuery(kind)
            return
        }
        let tree = try QueryTree(query)
        let plan = try RestQueryReader().plan(tree, WireNames.of(kind), [], filtered: false)
        entries = try plan.query(kind)
    }
}

/// What one level of a query asks for, while `populate` may still add to it.
struct RestPlan {
    var filter: EntryFilter?
    var sort: [EntrySort] = []
    var fields: Set<EntryField>?
    var populate: [EntryRelation: RestPlan] = [:]
    /// Where in the query it stands.
    let path: [String]

    /// - Throws: `invalid` when a limit of `EntryQuery` is passed.
    func query(
        _ kind: EntryKind, page: RestPage? = nil, counted: Bool = false
    ) throws(AppError) -> EntryQuery {
        var populated: [EntryRelation: EntryQuery] = [:]
        for (relation, plan) in populate { populated[relation] = try plan.query(relation.to) }
        let culprit = filter == nil ? ["populate"] : populate.isEmpty ? ["filters"] : []
        return try located(path + culprit) { () throws(AppError) in
            try EntryQuery(
                kind, filter: filter, sort: sort, offset: page?.offset ?? 0, limit: page?.limit ?? 0,
                counted: counted, fields: fields, populate: populated)
        }
    }
}

/// Reads the parts of a query. A path is where in the query a value stands, for the error.
struct RestQueryReader {
    /// - Parameter filtered: whether `filters` and `sort` count here.
    func plan(
        _ tree: QueryTree, _ names: WireNames, _ path: [String], filtered: Bool = true
    ) throws(AppError) -> RestPlan {
        var plan = RestPlan(path: path)
        if filtered {
            if let filters = tree["filters"], filters != .null {
                plan.filter = try filter(filters, names, path + ["filters"])
            }
            if let sort = tree["sort"] { plan.sort = try self.sort(sort, names, path + ["sort"]) }
        }
        if let fields = tree["fields"] { plan.fields = try self.fields(fields, names, path + ["fields"]) }
        if let populate = tree["populate"] {
            try self.populate(populate, names, into: &plan, path + ["populate"])
        }
        return plan
    }

    // MARK: fields

    /// `name`, `name,type`, `[0]=name`, `*`; nil for all.
    private func fields(_ value: QueryTree, _ names: WireNames, _ path: [String]) throws(AppError) -> Set<EntryField>? {
        var fields: Set<EntryField> = []
        for (name, path) in try listed(value, path) {
            if name == "*" { return nil }
            guard let field = names.field(name) else { throw .unknownKey(name, path) }
            fields.insert(field)
        }
        return fields
    }

    // MARK: populate

    private func populate(
        _ value: QueryTree, _ names: WireNames, into plan: inout RestPlan, _ path: [String]
    ) throws(AppError) {
        switch value {
        case .null: break
        case .text, .list:
            for (name, path) in try listed(value, path) {
                try populate(name.split(separator: ".", omittingEmptySubsequences: false), names, into: &plan, path)
            }
        case .object(let members):
            for member in members {
                if names.isShownAnyway(member.name) { continue }
                guard let relation = names.relation(member.name) else { throw .unknownKey(member.name, path) }
                guard let nested = try nested(member.value, WireNames.of(relation.to), path + [member.name]) else {
                    continue
                }
                plan.populate[relation] = nested
            }
        }
    }

    /// `company.logo`: each on the way is populated. `*` is everything one level deep; a truth value as a name is
    /// nothing, as in Strapi.
    private func populate(
        _ names: [Substring], _ kind: WireNames, into plan: inout RestPlan, _ path: [String]
    ) throws(AppError) {
        guard names.count <= EntryQuery.relationsMax else {
            throw .query(path, "Relations are limited to \(EntryQuery.relationsMax) one after the other.")
        }
        guard let first = names.first else { return }
        if names.count == 1 {
            if first == "*" {
                for (_, relation) in kind.relations where plan.populate[relation] == nil {
                    plan.populate[relation] = RestPlan(path: path)
                }
                return
            }
            if RestValue.boolean(String(first)) != nil || kind.isShownAnyway(String(first)) { return }
        }
        guard let relation = kind.relation(String(first)) else { throw .unknownKey(String(first), path) }
        var nested = plan.populate[relation] ?? RestPlan(path: path)
        try populate(Array(names.dropFirst()), WireNames.of(relation.to), into: &nested, path + [String(first)])
        plan.populate[relation] = nested
    }

    /// The value of `populate[company]`: a truth value, `*`, or what is asked of it. Nil for not at all.
    private func nested(_ value: QueryTree, _ names: WireNames, _ path: [String]) throws(AppError) -> RestPlan? {
        switch value {
        case .null: return nil
        case .text("*"): return RestPlan(path: path)
        case .text(let text):
            guard let flag = RestValue.boolean(text) else {
                throw .query(path, "populate of a relation must be true, false, * or an object.")
            }
            return flag ? RestPlan(path: path) : nil
        case .list: throw .query(path, "Invalid nested populate. Expected '*' or an object.")
        case .object(let members):
            for member in members
            where !["fields", "filters", "sort", "populate", "locale", "publicationState"].contains(member.name) {
                throw .unknownKey(member.name, path)
            }
            return try plan(value, names, path)
        }
    }

    // MARK: sort

    private func sort(_ value: QueryTree, _ names: WireNames, _ path: [String]) throws(AppError) -> [EntrySort] {
        var sorts: [EntrySort] = []
        switch value {
        case .null: break
        case .text(let text): try sort(text, names, into: &sorts, path)
        case .list(let items):
            for (index, item) in items.enumerated() {
                let path = path + [String(index)]
                switch item {
                case .text(let text): try sort(text, names, into: &sorts, path)
                case .object(let members): try sort(members, [], names, into: &sorts, path)
                case .null, .list: throw .query(path, Self.wrongSort)
                }
            }
        case .object(let members): try sort(members, [], names, into: &sorts, path)
        }
        guard sorts.count <= EntryQuery.sortsMax else {
            throw .query(path, "Sorting is limited to \(EntryQuery.sortsMax) fields.")
        }
        return sorts
    }

    private static let wrongSort = "Invalid sort parameter. Expected texts like name:desc, or objects."

    /// `name`, `name:desc`, `company.name:asc,id`.
    private func sort(
        _ text: String, _ names: WireNames, into sorts: inout [EntrySort], _ path: [String]
    ) throws(AppError) {
        for part in try Self.parts(text, path) {
            let pieces = part.split(separator: ":", omittingEmptySubsequences: false).map { RestValue.trimmed($0) }
            guard pieces.count <= 2, let name = pieces.first else { throw .query(path, Self.wrongSort) }
            let descending = try descending(pieces.count > 1 ? pieces[1] : "asc", path)
            let keys = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            sorts.append(try sort(keys, descending, names, path))
        }
    }

    /// `sort[name]=desc`, `sort[company][name]=asc`.
    private func sort(
        _ members: [QueryTree.Member], _ keys: [String], _ names: WireNames, into sorts: inout [EntrySort],
        _ path: [String]
    ) throws(AppError) {
        for member in members {
            let (keys, path) = (keys + [member.name], path + [member.name])
            switch member.value {
            case .text(let text):
                sorts.append(try sort(keys, try descending(RestValue.trimmed(text), path), names, path))
            case .object(let members): try sort(members, keys, names, into: &sorts, path)
            case .null, .list: throw .query(path, Self.wrongSort)
            }
        }
    }

    private func sort(
        _ keys: [String], _ descending: Bool, _ names: WireNames, _ path: [String]
    ) throws(AppError) -> EntrySort {
        var names = names
        var relations: [EntryRelation] = []
        for key in keys.dropLast() {
            guard let relation = names.relation(key) else { throw .unknownKey(key, path) }
            relations.append(relation)
            names = WireNames.of(relation.to)
        }
        guard let key = keys.last, let field = names.field(key) else { throw .unknownKey(keys.last ?? "", path) }
        return try located(path) { () throws(AppError) in
            try EntrySort(path: relations, field, descending: descending)
        }
    }

    private func descending(_ order: String, _ path: [String]) throws(AppError) -> Bool {
        switch order.lowercased() {
        case "asc": false
        case "desc": true
        default: throw .query(path, "Invalid order. order can only be one of asc|desc|ASC|DESC")
        }
    }

    // MARK: Lists of names

    /// The names of a text with commas or of a list of such, each with where it stands.
    private func listed(_ value: QueryTree, _ path: [String]) throws(AppError) -> [(String, [String])] {
        var names: [(String, [String])] = []
        switch value {
        case .null: break
        case .text(let text): for part in try Self.parts(text, path) { names.append((part, path)) }
        case .list(let items):
            for (index, item) in items.enumerated() {
                let path = path + [String(index)]
                guard case .text(let text) = item else { throw .query(path, "Expected a text.") }
                for part in try Self.parts(text, path) { names.append((part, path)) }
            }
        case .object: throw .query(path, "Expected a text or a list of texts.")
        }
        return names
    }

    private static func parts(_ text: String, _ path: [String]) throws(AppError) -> [String] {
        let parts = text.split(separator: ",", maxSplits: RestQuery.namesMax)
        guard parts.count <= RestQuery.namesMax else {
            throw .query(path, "A list has at most \(RestQuery.namesMax) names.")
        }
        return parts.map { RestValue.trimmed($0) }.filter { !$0.isEmpty }
    }
}

/// Adds where in the query it was to an error that does not know.
func located<T>(_ path: [String], _ body: () throws(AppError) -> T) throws(AppError) -> T {
    do {
        return try body()
    } catch {
        throw error.issues.isEmpty && error.code == .invalid ? .query(path, error.message) : error
    }
}

extension AppError {
    /// As much of a name as an error repeats.
    private static let nameLengthMax = 80

    /// The same for what does not exist and for what is nobody's business, so that neither tells of the other.
    static func unknownKey(_ name: String, _ path: [String]) -> AppError {
        .query(path.last == name ? path : path + [name], "Invalid key \(name.prefix(nameLengthMax))")
    }
}

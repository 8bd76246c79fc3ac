/// A field to sort by: the entry's own, or one at the end of relations that lead to one entry each. Where there is no
/// value, as PostgreSQL has it: last when ascending, first when descending.
public struct EntrySort: Sendable, Equatable {
    public let path: [EntryRelation]
    public let field: EntryField
    public let descending: Bool

    /// - Throws: `invalid` when the field has no order, or the relations do not lead to it one by one.
    public init(path: [EntryRelation] = [], _ field: EntryField, descending: Bool = false) throws(AppError) {
        guard field.allowsSort else { throw AppError(.invalid, "This field cannot be sorted by.") }
        guard path.count <= EntryQuery.relationsMax else { throw EntryQuery.tooFar }
        for (index, relation) in path.enumerated() {
            let next = index + 1 < path.count ? path[index + 1].from : field.kind
            guard !relation.isMany, relation.to == next else { throw EntryQuery.otherKind }
        }
        self.path = path
        self.field = field
        self.descending = descending
    }

    var kind: EntryKind { path.first?.from ?? field.kind }
}

/// A list of entries as a client asks for it: Strapi's list language (contracts/01, 4) without its spelling. One that
/// exists names only what there is, within the limits.
public struct EntryQuery: Sendable, Equatable {
    /// Conditions, and what joins them, in one query with all its `populate`. Each is a piece of a statement that
    /// PostgreSQL has to plan.
    public static let conditionsMax = 100
    /// `all`, `any`, `not` and relations within each other.
    public static let depthMax = 10
    /// Relations one after the other, in filters, sorts and `populate`.
    public static let relationsMax = 3
    /// Values of one `isIn`.
    public static let valuesMax = 100
    /// Unicode scalars of one text to compare with; the longest field of a line has 2000.
    public static let textLengthMax = 2000
    public static let sortsMax = 5
    /// Relations to populate in all: each is a statement.
    public static let populateMax = 15
    public static let pageSizeMax = 100
    /// Beyond this the database would only skip rows.
    public static let offsetMax = 1_000_000
    /// Entries that a to-many relation shows of each parent. Strapi's `populate` has no pages.
    public static let populatedPerParentMax = 100
    /// Entries that one answer shows beyond its page: more are refused, and the client told to ask for less.
    public static let populatedMax = 2000
    /// A total is counted up to here; above, a filtered list says this number and an unfiltered one an estimate.
    public static let countedMax: Int64 = JobPosting.countedMax

    public let kind: EntryKind
    public let filter: EntryFilter?
    /// The id is always the last thing to sort by, in the direction of the sort before it; without any the newest id
    /// comes first.
    public let sort: [EntrySort]
    public let offset: Int
    public let limit: Int
    /// Whether the total is wanted.
    public let counted: Bool
    /// What to show of each entry beside its id; nil for all of it. Rows are read whole: this is for the writer of the
    /// answer.
    public let fields: Set<EntryField>?
    /// What to show along with each entry. Of these queries only filter, sort, fields and populate count.
    public let populate: [EntryRelation: EntryQuery]
    /// How many conditions and sorts it has, with all that it populates.
    public let partCount: Int

    /// - Throws: `invalid` when something belongs to another kind, or a limit is passed. The offset and the limit are
    ///   brought within their bounds.
    public init(
        _ kind: EntryKind, filter: EntryFilter? = nil, sort: [EntrySort] = [], offset: Int = 0, limit: Int = 25,
        counted: Bool = false, fields: Set<EntryField>? = nil, populate: [EntryRelation: EntryQuery] = [:]
    ) throws(AppError) {
        guard sort.count <= Self.sortsMax else {
            throw AppError(.invalid, "Sorting is limited to \(Self.sortsMax) fields.")
        }
        for sort in sort where sort.kind != kind { throw Self.otherKind }
        for field in fields ?? [] where field.kind != kind { throw Self.otherKind }
        for (relation, query) in populate where relation.from != kind || relation.to != query.kind {
            throw Self.otherKind
        }
        self.kind = kind
        self.filter = filter
        self.sort = sort
        self.offset = max(0, min(offset, Self.offsetMax))
        self.limit = max(0, min(limit, Self.pageSizeMax))
        self.counted = counted
        self.fields = fields
        self.populate = populate
        var conditions = 0
        try filter?.verify(kind, depth: 1, relations: 0, conditions: &conditions)
        conditionCount = populate.values.reduce(conditions) { $0 + $1.conditionCount }
        guard conditionCount <= Self.conditionsMax else { throw Self.tooManyConditions }
        populateCount = populate.values.reduce(populate.count) { $0 + $1.populateCount }
        guard populateCount <= Self.populateMax else {
            throw AppError(.invalid, "An answer shows at most \(Self.populateMax) relations.")
        }
        populateDepth = (populate.values.map(\.populateDepth).max() ?? -1) + 1
        guard populateDepth <= Self.relationsMax else { throw Self.tooFar }
        partCount = conditions + sort.count + populate.values.reduce(0) { $0 + $1.partCount }
    }

    /// The same list, of those only that fulfil this as well.
    /// - Throws: `invalid` when a limit is passed with it.
    public func narrowed(by own: EntryFilter) throws(AppError) -> EntryQuery {
        try EntryQuery(
            kind, filter: .all([own] + (filter.map { [$0] } ?? [])), sort: sort, offset: offset, limit: limit,
            counted: counted, fields: fields, populate: populate)
    }

    /// Whether all viewers, and who is nobody, get the same entries: a list of what is public, with what public
    /// relations lead to.
    public var isSameForEveryone: Bool { (kind == .posting || kind == .company) && asksForPublicOnly }

    private var asksForPublicOnly: Bool {
        (filter?.isSameForEveryone ?? true) && sort.allSatisfy { $0.path.allSatisfy(\.isSameForEveryone) }
            && populate.allSatisfy { $0.key.isSameForEveryone && $0.value.asksForPublicOnly }
    }

    private let conditionCount: Int
    private let populateCount: Int
    private let populateDepth: Int

    static let tooManyConditions = AppError(.invalid, "Filters are limited to \(conditionsMax) conditions.")

    static let otherKind = AppError(.invalid, "This field or relation belongs to something else.")
    static let tooFar = AppError(.invalid, "Relations are limited to \(relationsMax) one after the other.")
}

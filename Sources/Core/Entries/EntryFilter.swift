import Foundation

/// What a field is compared with.
public enum EntryValue: Sendable, Equatable {
    case text(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    /// Times are compared as they are shown, to the millisecond.
    case date(Date)

    func fits(_ type: EntryField.ValueType) -> Bool {
        switch (self, type) {
        case (.text(let text), .text): EntryComparison.isText(text)
        case (.number(let number), .number): number.isFinite
        case (.date(let date), .date): date.timeIntervalSince1970.isFinite
        case (.integer, .integer), (.boolean, .boolean): true
        default: false
        }
    }
}

/// A condition on one value. A value that is not there fulfils none but `isNull`, nor the opposite of one (as in SQL).
public enum EntryComparison: Sendable, Equatable {
    case equals(EntryValue)
    case equalsIgnoringCase(String)
    case less(EntryValue)
    case lessOrEqual(EntryValue)
    case greater(EntryValue)
    case greaterOrEqual(EntryValue)
    /// Both ends belong to it.
    case between(EntryValue, EntryValue)
    case isIn([EntryValue])
    case contains(String, ignoringCase: Bool)
    case startsWith(String, ignoringCase: Bool)
    case endsWith(String, ignoringCase: Bool)
    case isNull

    static func isText(_ text: String) -> Bool {
        text.unicodeScalars.count <= EntryQuery.textLengthMax && !text.utf8.contains(0)
    }

    /// Texts have all of them; long texts are searched, not compared; truth has no order.
    func fits(_ type: EntryField.ValueType) -> Bool {
        switch self {
        case .isNull: true
        case .contains(let text, _), .startsWith(let text, _), .endsWith(let text, _):
            (type == .text || type == .longText) && Self.isText(text)
        case .equalsIgnoringCase(let text): type == .text && Self.isText(text)
        case .equals(let value): value.fits(type)
        case .isIn(let values): values.count <= EntryQuery.valuesMax && values.allSatisfy { $0.fits(type) }
        case .less(let value), .lessOrEqual(let value), .greater(let value), .greaterOrEqual(let value):
            type != .boolean && value.fits(type)
        case .between(let low, let high): type != .boolean && low.fits(type) && high.fits(type)
        }
    }
}

/// A field and what it is compared with. One that exists fits together.
public struct EntryCondition: Sendable, Equatable {
    public let field: EntryField
    public let comparison: EntryComparison

    /// - Throws: `invalid` when the field is only shown, when its type has no such comparison or takes no such value,
    ///   when a text is too long or has NUL, or when there are too many values.
    public init(_ field: EntryField, _ comparison: EntryComparison) throws(AppError) {
        guard let type = field.type, comparison.fits(type) else {
            throw AppError(.invalid, "This field cannot be compared in this way.")
        }
        self.field = field
        self.comparison = comparison
    }
}

/// Which entries of one kind are wanted. Three-valued, as SQL has it.
public indirect enum EntryFilter: Sendable, Equatable {
    /// Everything when it is empty.
    case all([EntryFilter])
    /// Nothing when it is empty.
    case any([EntryFilter])
    case not(EntryFilter)
    case compare(EntryCondition)
    /// Some entry at the end of the relation that the viewer may see fulfils the filter.
    case related(EntryRelation, EntryFilter)
    /// Whether there is any entry at its end that the viewer may see.
    case hasRelated(EntryRelation, Bool)

    /// See `EntryQuery.isSameForEveryone`.
    var isSameForEveryone: Bool {
        switch self {
        case .all(let filters), .any(let filters): filters.allSatisfy(\.isSameForEveryone)
        case .not(let filter): filter.isSameForEveryone
        case .compare: true
        case .related(let relation, let filter): relation.isSameForEveryone && filter.isSameForEveryone
        case .hasRelated(let relation, _): relation.isSameForEveryone
        }
    }

    public static func compare(_ field: EntryField, _ comparison: EntryComparison) throws(AppError) -> EntryFilter {
        .compare(try EntryCondition(field, comparison))
    }

    /// Conditions counted, and the kinds of fields and relations checked.
    func verify(_ kind: EntryKind, depth: Int, relations: Int, conditions: inout Int) throws(AppError) {
        guard depth <= EntryQuery.depthMax else {
            throw AppError(.invalid, "Filters are limited to \(EntryQuery.depthMax) levels.")
        }
        guard relations <= EntryQuery.relationsMax else { throw EntryQuery.tooFar }
        conditions += 1
        guard conditions <= EntryQuery.conditionsMax else { throw EntryQuery.tooManyConditions }
        switch self {
        case .all(let filters), .any(let filters):
            for filter in filters {
                try filter.verify(kind, depth: depth + 1, relations: relations, conditions: &conditions)
            }
        case .not(let filter):
            try filter.verify(kind, depth: depth + 1, relations: relations, conditions: &conditions)
        case .compare(let condition):
            guard condition.field.kind == kind else { throw EntryQuery.otherKind }
        case .related(let relation, let filter):
            guard relation.from == kind else { throw EntryQuery.otherKind }
            try filter.verify(relation.to, depth: depth + 1, relations: relations + 1, conditions: &conditions)
        case .hasRelated(let relation, _):
            guard relation.from == kind else { throw EntryQuery.otherKind }
            guard relations < EntryQuery.relationsMax else { throw EntryQuery.tooFar }
        }
    }
}

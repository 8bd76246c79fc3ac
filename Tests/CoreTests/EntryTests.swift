import Core
import Foundation
import Testing

@Suite("Entries")
struct EntryTests {
    private static let allFields = EntryKind.allCases.flatMap(EntryField.all)

    @Test("fields belong to their kind; an id can be filtered and sorted by, and what is personal cannot")
    func fields() {
        for kind in EntryKind.allCases {
            #expect(EntryField.all(of: kind).allSatisfy { $0.kind == kind })
            #expect(EntryField.id(of: kind).allowsFilter && EntryField.id(of: kind).allowsSort)
        }
        for field in Self.allFields where field.isPersonal { #expect(field.type == nil) }
        #expect(EntryField.posting(.description).allowsFilter && !EntryField.posting(.description).allowsSort)
        #expect(!EntryField.posting(.salary).allowsFilter && !EntryField.posting(.salary).allowsSort)
    }

    @Test("a condition fits the type of its field, and texts and lists have their limits")
    func conditions() throws {
        let yes: [(EntryField, EntryComparison)] = [
            (.posting(.title), .equals(.text("Cook"))), (.posting(.title), .equalsIgnoringCase("cook")),
            (.posting(.title), .less(.text("m"))), (.posting(.description), .contains("soup", ignoringCase: true)),
            (.posting(.description), .isNull), (.posting(.id), .between(.integer(1), .integer(5))),
            (.posting(.isRemote), .equals(.boolean(true))), (.posting(.latitude), .greater(.number(-1.5))),
            (.posting(.createdAt), .lessOrEqual(.date(.now))), (.posting(.id), .isIn([])),
            (.posting(.title), .isIn(Array(repeating: .text("x"), count: EntryQuery.valuesMax))),
            (
                .posting(.title),
                .contains(String(repeating: "é", count: EntryQuery.textLengthMax), ignoringCase: false)
            ),
        ]
        for (field, comparison) in yes { #expect(try EntryCondition(field, comparison).comparison == comparison) }
        let no: [(EntryField, EntryComparison)] = [
            (.posting(.title), .equals(.integer(1))), (.posting(.id), .equals(.text("1"))),
            (.posting(.id), .equals(.number(1))), (.posting(.id), .contains("1", ignoringCase: false)),
            (.posting(.id), .equalsIgnoringCase("1")), (.posting(.description), .equals(.text("soup"))),
            (.posting(.description), .equalsIgnoringCase("soup")), (.posting(.description), .less(.text("soup"))),
            (.posting(.isRemote), .less(.boolean(true))),
            (.posting(.isRemote), .between(.boolean(false), .boolean(true))),
            (.posting(.latitude), .greater(.number(.nan))), (.posting(.latitude), .equals(.number(.infinity))),
            (.posting(.createdAt), .equals(.date(Date(timeIntervalSince1970: .infinity)))),
            (.posting(.title), .isIn(Array(repeating: .text("x"), count: EntryQuery.valuesMax + 1))),
            (.posting(.title), .isIn([.text("x"), .integer(1)])), (.posting(.title), .equals(.text("a\0b"))),
            (.posting(.title), .endsWith("a\0b", ignoringCase: true)), (.posting(.salary), .isNull),
            (
                .posting(.title),
                .contains(String(repeating: "é", count: EntryQuery.textLengthMax + 1), ignoringCase: false)
            ),
            (.user(.blocked), .equals(.boolean(true))), (.user(.createdAt), .isNull),
        ]
        for (field, comparison) in no {
            #expect(throws: AppError.self, "\(field) \(comparison)") { try EntryCondition(field, comparison) }
        }
    }

    @Test("fields and relations of another kind are refused wherever they stand")
    func kinds() throws {
        let named = try EntryFilter.compare(.company(.name), .equals(.text("Acme")))
        #expect(try EntryQuery(.posting, filter: .not(.related(.postingCompany, .any([named])))).kind == .posting)
        let wrong: [EntryFilter] = [
            named, .all([named]), .not(named), .related(.postingApplications, named), .related(.companyLogo, .all([])),
            .hasRelated(.companyLogo, true), .related(.postingCompany, .hasRelated(.postingCompany, false)),
        ]
        for filter in wrong {
            #expect(throws: AppError.self, "\(filter)") { try EntryQuery(.posting, filter: filter) }
        }
        #expect(throws: AppError.self) { try EntryQuery(.posting, fields: [.company(.name)]) }
        #expect(throws: AppError.self) { try EntryQuery(.posting, populate: [.companyLogo: EntryQuery(.media)]) }
        #expect(throws: AppError.self) { try EntryQuery(.posting, populate: [.postingCompany: EntryQuery(.media)]) }

        let byName = try EntrySort(path: [.applicationPosting, .postingCompany], .company(.name), descending: true)
        #expect(try EntryQuery(.application, sort: [byName]).sort == [byName])
        #expect(throws: AppError.self) { try EntryQuery(.posting, sort: [byName]) }
        #expect(throws: AppError.self) { try EntrySort(path: [.postingCompany], .posting(.title)) }
        #expect(throws: AppError.self) { try EntrySort(path: [.companyPostings], .posting(.title)) }
        #expect(throws: AppError.self) { try EntrySort(path: [.postingCompany, .userProfile], .media(.name)) }
        #expect(throws: AppError.self) { try EntrySort(.posting(.description)) }
        #expect(throws: AppError.self) { try EntrySort(.posting(.skills)) }
    }

    @Test("conditions, levels, relations, sorts and populated relations are limited, each up to its limit")
    func limits() throws {
        let condition = try EntryFilter.compare(.posting(.id), .isNull)
        func wide(_ count: Int) -> EntryFilter { .all(Array(repeating: condition, count: count)) }
        _ = try EntryQuery(.posting, filter: wide(EntryQuery.conditionsMax - 1))
        #expect(throws: AppError.self) { try EntryQuery(.posting, filter: wide(EntryQuery.conditionsMax)) }

        func deep(_ levels: Int) -> EntryFilter { levels == 1 ? condition : .not(deep(levels - 1)) }
        _ = try EntryQuery(.posting, filter: deep(EntryQuery.depthMax))
        #expect(throws: AppError.self) { try EntryQuery(.posting, filter: deep(EntryQuery.depthMax + 1)) }

        // From a company to its postings, to their company, and so on.
        func far(_ relations: Int, _ kind: EntryKind = .posting) throws -> EntryFilter {
            guard relations > 0 else { return try .compare(EntryField.id(of: kind), .isNull) }
            let relation: EntryRelation = kind == .posting ? .postingCompany : .companyPostings
            return .related(relation, try far(relations - 1, relation.to))
        }
        _ = try EntryQuery(.posting, filter: far(EntryQuery.relationsMax))
        #expect(throws: AppError.self) { try EntryQuery(.posting, filter: far(EntryQuery.relationsMax + 1)) }
        let last = EntryFilter.related(.postingCompany, .related(.companyPostings, .hasRelated(.postingCompany, true)))
        _ = try EntryQuery(.posting, filter: last)
        #expect(throws: AppError.self) {
            try EntryQuery(.company, filter: .related(.companyPostings, last))
        }

        let sort = try EntrySort(.posting(.id))
        _ = try EntryQuery(.posting, sort: Array(repeating: sort, count: EntryQuery.sortsMax))
        #expect(throws: AppError.self) {
            try EntryQuery(.posting, sort: Array(repeating: sort, count: EntryQuery.sortsMax + 1))
        }
    }

    @Test("what is populated is as deep and as wide as its limits, and its filters count too")
    func populateLimits() throws {
        func deep(_ levels: Int, _ kind: EntryKind) throws -> EntryQuery {
            guard levels > 0 else { return try EntryQuery(kind) }
            let relation: EntryRelation = kind == .posting ? .postingCompany : .companyPostings
            return try EntryQuery(kind, populate: [relation: deep(levels - 1, relation.to)])
        }
        _ = try deep(EntryQuery.relationsMax, .posting)
        #expect(throws: AppError.self) { try deep(EntryQuery.relationsMax + 1, .posting) }

        // All three relations of an application, of all applications of all of them.
        func wide(_ levels: Int, _ kind: EntryKind) throws -> EntryQuery {
            guard levels > 0 else { return try EntryQuery(kind) }
            let relations = EntryRelation.allCases.filter { $0.from == kind }
            return try EntryQuery(
                kind,
                populate: Dictionary(uniqueKeysWithValues: relations.map { ($0, try wide(levels - 1, $0.to)) }))
        }
        _ = try wide(2, .application)
        #expect(throws: AppError.self) { try wide(3, .application) }

        let half = EntryFilter.all(
            Array(repeating: try .compare(.company(.id), .isNull), count: EntryQuery.conditionsMax / 2))
        let company = try EntryQuery(.company, filter: half)
        #expect(throws: AppError.self) {
            try EntryQuery(.posting, filter: .related(.postingCompany, half), populate: [.postingCompany: company])
        }
    }

    @Test("pages are brought within their bounds")
    func pages() throws {
        let query = try EntryQuery(.posting, offset: -1, limit: 1000)
        #expect(query.offset == 0 && query.limit == EntryQuery.pageSizeMax)
        #expect(try EntryQuery(.posting, offset: .max).offset == EntryQuery.offsetMax)
        #expect(try EntryQuery(.posting, limit: -5).limit == 0)
    }

    @Test("an answer is everyone's only where neither it nor anything along its relations depends on who asks")
    func everyones() throws {
        for kind in EntryKind.allCases {
            #expect(try EntryQuery(kind).isSameForEveryone == (kind == .posting || kind == .company))
        }
        for relation in EntryRelation.allCases {
            let isPublic = relation == .postingCompany || relation == .companyLogo
            let shown = try EntryQuery(relation.from, populate: [relation: EntryQuery(relation.to)])
            #expect(shown.isSameForEveryone == isPublic, "\(relation)")
            let asked = try EntryQuery(relation.from, filter: .not(.all([.hasRelated(relation, true)])))
            #expect(asked.isSameForEveryone == isPublic, "\(relation)")
            let fulfilled = try EntryQuery(relation.from, filter: .any([.related(relation, .all([]))]))
            #expect(fulfilled.isSameForEveryone == isPublic, "\(relation)")
        }
        let deep = try EntryQuery(
            .posting,
            populate: [
                .postingCompany: EntryQuery(
                    .company, populate: [.companyRepresentative: EntryQuery(.user)])
            ])
        #expect(!deep.isSameForEveryone)
    }
}

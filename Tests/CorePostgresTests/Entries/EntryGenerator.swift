import Core
import Foundation
import Seeded

/// Random queries whose values are mostly those of the board, so that they find something.
struct EntryGenerator {
    private var random: SeededGenerator
    private let model: EntryModel

    init(seed: UInt64, _ model: EntryModel) {
        random = SeededGenerator(seed: seed)
        self.model = model
    }

    mutating func query(_ kind: EntryKind, populating levels: Int = 2) throws -> EntryQuery {
        var populate: [EntryRelation: EntryQuery] = [:]
        if levels > 0 {
            for relation in EntryRelation.allCases where relation.from == kind && chance(3) {
                populate[relation] = try query(relation.to, populating: levels - 1)
            }
        }
        let wanted = chance(4) ? nil : try filter(kind, depth: 3, relations: 2)
        var order: [EntrySort] = []
        for _ in 0..<Int.random(in: 0...2, using: &random) { order.append(try sort(kind)) }
        let (offset, limit) =
            chance(2) ? (0, 100) : (Int.random(in: 0...3, using: &random), Int.random(in: 0...4, using: &random))
        return try EntryQuery(
            kind, filter: wanted, sort: order, offset: offset, limit: limit, counted: chance(2), populate: populate)
    }

    private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    private mutating func pick<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }

    private mutating func filter(_ kind: EntryKind, depth: Int, relations: Int) throws -> EntryFilter {
        let ways = EntryRelation.allCases.filter { $0.from == kind }
        switch Int.random(in: 0..<10, using: &random) {
        case 0 where depth > 1: return .all(try some(kind, depth, relations))
        case 1...2 where depth > 1: return .any(try some(kind, depth, relations))
        case 3 where depth > 1: return .not(try filter(kind, depth: depth - 1, relations: relations))
        case 4...6 where depth > 1 && relations > 0 && !ways.isEmpty:
            let relation = pick(ways)
            return .related(relation, try filter(relation.to, depth: depth - 1, relations: relations - 1))
        case 7 where relations > 0 && !ways.isEmpty: return .hasRelated(pick(ways), chance(2))
        default: return try comparison(pick(EntryField.all(of: kind).filter(\.allowsFilter)))
        }
    }

    private mutating func some(_ kind: EntryKind, _ depth: Int, _ relations: Int) throws -> [EntryFilter] {
        var filters: [EntryFilter] = []
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            filters.append(try filter(kind, depth: depth - 1, relations: relations))
        }
        return filters
    }

    private mutating func comparison(_ field: EntryField) throws -> EntryFilter {
        var choices: [EntryComparison] = [.isNull]
        let samples = model.samples(field)
        if !samples.isEmpty {
            let (value, other) = (pick(samples), pick(samples))
            choices = Self.comparisons(value, other, samples: samples, part: part(of: value))
        }
        return try .compare(field, pick(choices.filter { (try? EntryCondition(field, $0)) != nil }))
    }

    /// Every comparison there is; the ones that do not fit a field's type are refused by `EntryCondition`.
    static func comparisons(
        _ value: EntryValue, _ other: EntryValue, samples: [EntryValue], part: String
    ) -> [EntryComparison] {
        var all: [EntryComparison] = [
            .isNull, .equals(value), .less(value), .lessOrEqual(value), .greater(value), .greaterOrEqual(value),
            .between(value, other), .isIn([]), .isIn([value, other]), .isIn(Array(samples.prefix(5))),
        ]
        for ignoring in [false, true] {
            all.append(.contains(part, ignoringCase: ignoring))
            all.append(.startsWith(part, ignoringCase: ignoring))
            all.append(.endsWith(part, ignoringCase: ignoring))
        }
        if case .text(let text) = value {
            all += [.equalsIgnoringCase(text.uppercased()), .equalsIgnoringCase(text), .equals(.text(text))]
        }
        return all
    }

    private mutating func part(of value: EntryValue) -> String {
        guard case .text(let text) = value, !text.isEmpty else { return pick(["", "%", "_", "\\", "a"]) }
        let scalars = Array(text.unicodeScalars)
        let start = chance(2) ? 0 : Int.random(in: 0..<scalars.count, using: &random)
        let end = chance(2) ? scalars.count : Int.random(in: start...scalars.count, using: &random)
        let part = String(String.UnicodeScalarView(scalars[start..<end]))
        return chance(3) ? part.uppercased() : part
    }

    private mutating func sort(_ kind: EntryKind) throws -> EntrySort {
        var path: [EntryRelation] = []
        var at = kind
        while path.count < 2, chance(3), case let ways = EntryRelation.allCases.filter({ $0.from == at && !$0.isMany }),
            !ways.isEmpty
        {
            path.append(pick(ways))
            at = path[path.count - 1].to
        }
        return try EntrySort(
            path: path, pick(EntryField.all(of: at).filter(\.allowsSort)), descending: chance(2))
    }
}

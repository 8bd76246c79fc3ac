import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Entries in PostgreSQL agree with a plain reading of the rules")
struct EntryAgreementTests {
    /// Everything but what is random comes from the seed.
    @Test("lists, totals, pages, order and what is populated, for everyone", arguments: 1...6 as ClosedRange<UInt64>)
    func agreement(seed: UInt64) async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let entries = PostgresEntries(db: db)
            let model = try await EntryModel(db)
            var generator = EntryGenerator(seed: seed, model)
            var found = 0
            for number in 0..<400 {
                let kind = EntryKind.allCases[number % EntryKind.allCases.count]
                // Some are beyond the limits.
                guard let query = try? generator.query(kind) else { continue }
                let viewer = EntryWorld.viewers[number % EntryWorld.viewers.count]
                let page = try await entries.entries(query, viewer: viewer, now: EntryWorld.now)
                let all = model.list(query, viewer)
                let wanted = all.dropFirst(query.offset).prefix(query.limit)
                found += page.entries.count
                #expect(
                    page.entries.map(EntryModel.shown) == wanted.map { model.shown(query, $0, viewer) },
                    "\(number), \(viewer?.value ?? 0): \(query)")
                #expect(page.total == (query.counted ? Int64(all.count) : nil), "\(number): \(query)")
            }
            #expect(found > 200)
        }
    }

    @Test("one entry by its id is found by those who may see it, with what they may see along with it")
    func singles() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let entries = PostgresEntries(db: db)
            let model = try await EntryModel(db)
            for kind in EntryKind.allCases {
                var populate: [EntryRelation: EntryQuery] = [:]
                for relation in EntryRelation.allCases where relation.from == kind {
                    populate[relation] = try EntryQuery(relation.to)
                }
                let query = try EntryQuery(kind, populate: populate)
                for viewer in EntryWorld.viewers {
                    for id in model.ids(kind) + [noSuchID] {
                        let isFound = model.isFound(kind, id, viewer)
                        do {
                            let entry = try await entries.entry(id, query, viewer: viewer, now: EntryWorld.now)
                            #expect(isFound, "\(kind) \(id) for \(viewer?.value ?? 0)")
                            #expect(EntryModel.shown(entry) == model.shown(query, id, viewer))
                            #expect(entry.value == model.value(kind, id))
                        } catch let error as AppError {
                            #expect(error == .notFound && !isFound, "\(kind) \(id) for \(viewer?.value ?? 0): \(error)")
                        }
                    }
                }
            }
        }
    }

    @Test("media in lists and by id are those that MediaRepository lets be read")
    func media() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let (entries, media) = (PostgresEntries(db: db), PostgresMedia(db: db))
            let query = try EntryQuery(.media, sort: [EntrySort(.media(.id))], limit: 100)
            for viewer in EntryWorld.viewers.compactMap({ $0 }) {
                let listed = try await entries.entries(query, viewer: viewer, now: EntryWorld.now).entries.map(\.id)
                var readable: [Int64] = []
                for id in 1...12 as ClosedRange<Int64> where try await media.mayRead(Media.ID(id), user: viewer) {
                    readable.append(id)
                }
                #expect(listed == readable, "\(viewer)")
            }
        }
    }

    @Test("every field, comparison, relation, sort and total is one that the migrated schema takes")
    func everything() async throws {
        try await withTestDatabase { db, database in
            try await EntryWorld.fill(database)
            let entries = PostgresEntries(db: db)
            let model = try await EntryModel(db)
            var count = 0
            func run(_ query: EntryQuery) async throws {
                for viewer in [nil, EntryWorld.jane] {
                    count += 1
                    do { _ = try await entries.entries(query, viewer: viewer, now: EntryWorld.now) } catch {
                        Issue.record("\(error): \(query)")
                    }
                }
            }
            for kind in EntryKind.allCases {
                for filter in try Self.filters(kind, model) {
                    try await run(EntryQuery(kind, filter: filter, counted: true))
                    for relation in EntryRelation.allCases where relation.to == kind {
                        try await run(
                            EntryQuery(
                                relation.from, filter: .not(.related(relation, filter)),
                                populate: [relation: EntryQuery(kind, filter: filter)]))
                    }
                }
                for sort in try Self.sorts(kind) { try await run(EntryQuery(kind, sort: [sort])) }
            }
            #expect(count > 3000)
        }
    }

    private static func filters(_ kind: EntryKind, _ model: EntryModel) throws -> [EntryFilter] {
        let values: [EntryValue] = [
            .text("a"), .integer(1), .number(1.5), .boolean(true), .date(EntryWorld.now),
        ]
        var filters: [EntryFilter] = []
        for field in EntryField.all(of: kind) {
            for value in values {
                for comparison in EntryGenerator.comparisons(value, value, samples: [value], part: "a") {
                    if let condition = try? EntryCondition(field, comparison) { filters.append(.compare(condition)) }
                }
            }
        }
        for relation in EntryRelation.allCases where relation.from == kind {
            filters += [.hasRelated(relation, true), .hasRelated(relation, false)]
        }
        return filters
    }

    /// By every field, the own ones and those at the end of every way that leads to one entry.
    private static func sorts(_ kind: EntryKind) throws -> [EntrySort] {
        var paths: [[EntryRelation]] = [[]]
        for _ in 0..<EntryQuery.relationsMax {
            for path in paths {
                for relation in EntryRelation.allCases
                where !relation.isMany && relation.from == (path.last?.to ?? kind) && !paths.contains(path + [relation])
                    && path.count < EntryQuery.relationsMax
                {
                    paths.append(path + [relation])
                }
            }
        }
        return try paths.flatMap { path in
            try EntryField.all(of: path.last?.to ?? kind).filter(\.allowsSort).map { field in
                try EntrySort(path: path, field, descending: path.count % 2 == 1)
            }
        }
    }
}

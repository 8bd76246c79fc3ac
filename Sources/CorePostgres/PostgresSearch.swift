import Core
import Foundation
import Postgres

/// Search by the functions of the search migration. A page is one statement: hits and what is shown of them together.
public struct PostgresSearch: PostingSearchRepository {
    /// Words offered for one that no posting has.
    public static let suggestionsMax = 3
    /// What search_words_query raises for a query without a word to look for.
    private static let needsATerm = "MS001"

    private let db: Database

    public init(db: Database) { self.db = db }

    public func search(
        _ search: PostingSearch, after: PostingSearch.Cursor?, limit: Int, now: Date
    ) async throws -> PostingSearch.Page {
        let limit = min(max(limit, 1), PostingSearch.pageSizeMax)
        let place = search.place
        let hits = try await explained {
            try await db.long.rows(
                """
                SELECT \(Columns.posting), \(Columns.company), \(Columns.logo), h.from_day, h.to_day, h.score
                FROM search_postings(\(search.q), \(search.placeName), \(search.kind), \(search.remote),
                       \(search.salaryAtLeast), \(search.companyID), \(place?.center.latitude),
                       \(place?.center.longitude), \(place?.radiusKm), \(now), \(limit + 1), \(after?.fromDay),
                       \(after?.toDay), \(after?.score), \(after?.id))
                  WITH ORDINALITY AS h(posting_id, score, from_day, to_day, ord)
                JOIN job_postings p ON p.id = h.posting_id
                \(Joins.companyOfPosting)
                ORDER BY h.ord
                """,
                as: { row -> (posting: JobPosting, cursor: PostingSearch.Cursor) in
                    var reader = RowReader(row)
                    let posting = try reader.posting()
                    let cursor = try PostingSearch.Cursor(
                        fromDay: reader.next(), toDay: reader.next(), score: reader.next(), id: posting.id)
                    return (posting, cursor)
                })
        }
        let page = hits.prefix(limit)
        return PostingSearch.Page(
            postings: page.map(\.posting), next: hits.count > limit ? page.last?.cursor : nil)
    }

    public func facets(_ search: PostingSearch, now: Date) async throws -> [PostingSearch.Facet] {
        let place = search.place
        return try await explained {
            try await db.long.rows(
                """
                SELECT facet, coalesce(value, 0), n, exact
                FROM search_facets(\(search.q), \(search.placeName), \(search.kind), \(search.remote),
                       \(search.salaryAtLeast), \(search.companyID), \(place?.center.latitude),
                       \(place?.center.longitude), \(place?.radiusKm), \(now))
                """,
                as: { row in
                    PostingSearch.Facet(
                        name: try row.get(0), value: try row.get(1), count: try row.get(2), exact: try row.get(3))
                })
        }
    }

    public func suggestions(for word: String) async throws -> [String] {
        // One word; the longest that search_words keeps has 40 letters.
        guard (3...40).contains(word.unicodeScalars.count), !word.utf8.contains(0) else { return [] }
        let near = try await mapped {
            try await db.long.rows(
                """
                SELECT n.word, s.word, s.df
                FROM (SELECT search_normalise(\(word)) AS word) n
                CROSS JOIN LATERAL search_suggest(n.word, 20) s
                WHERE NOT EXISTS (SELECT FROM search_words k WHERE k.word = n.word)
                  AND NOT EXISTS (
                    SELECT FROM search_terms t
                    WHERE t.lexeme = ANY (tsvector_to_array(to_tsvector('martlet', n.word))))
                """,
                as: { (try $0.get(0, as: String.self), try $0.get(1, as: String.self), try $0.get(2, as: Int32.self)) })
        }
        let ranked = near.map { asked, word, count in
            (word: word, distance: EditDistance.between(asked, word), count: count)
        }
        .filter { $0.distance <= ($0.word.unicodeScalars.count < 6 ? 1 : 2) }
        .sorted { ($0.distance, -$0.count, $0.word) < ($1.distance, -$1.count, $1.word) }
        return ranked.prefix(Self.suggestionsMax).map(\.word)
    }

    private func explained<T>(_ work: () async throws -> T) async throws -> T {
        try await mapped {
            do {
                return try await work()
            } catch let error as PostgresError where error.sqlState == Self.needsATerm {
                throw AppError.invalid("q", "q needs a word to look for: these are too common, or only excluded.")
            }
        }
    }
}

/// How many keys were struck wrongly: insertions, deletions, replacements, and neighbours that changed places, which is
/// what trigrams see worst.
enum EditDistance {
    static func between(_ left: String, _ right: String) -> Int {
        let left = Array(left.unicodeScalars)
        let right = Array(right.unicodeScalars)
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for i in 0..<left.count {
            var row = [i + 1]
            row.reserveCapacity(right.count + 1)
            for j in 0..<right.count {
                var best = min(last[j] + (left[i] == right[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    best = min(best, beforeLast[j - 1] + 1)
                }
                row.append(best)
            }
            beforeLast = last
            last = row
        }
        return last[right.count]
    }
}

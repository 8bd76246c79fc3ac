import Core
import Postgres

/// Stores what the importer has read. A call is one transaction and stands alone: an import that is broken off is begun
/// again and finds what it had stored unchanged.
public struct PostgresImport: ImportRepository {
    /// Ids in one `match_alerts` item: as many as the matcher takes together without holding others up.
    public static let matchedTogetherMax = 500

    private let db: Database
    private let notify: Bool

    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    public func store(_ postings: [ImportedPosting]) async throws -> ImportCounts {
        guard !postings.isEmpty else { return ImportCounts() }
        return try await mapped {
            try await createCompanies(of: postings)
            return try await db.transaction { transaction in
                try await stage(postings, in: transaction)
                let stored = try await merge(in: transaction)
                try await transaction.execute("SELECT index_postings(\(stored.map(\.id))::bigint[])")
                try await matchAlerts(stored.filter { $0.isNew && $0.isOpen }.map(\.id), in: transaction)
                let new = stored.count { $0.isNew }
                return ImportCounts(
                    new: new, updated: stored.count - new, unchanged: postings.count - stored.count)
            }
        }
    }

    public func store(_ companies: [ImportedCompany]) async throws -> ImportCounts {
        guard !companies.isEmpty else { return ImportCounts() }
        return try await mapped {
            let stored = try await db.write.rows(
                """
                INSERT INTO companies AS c (source, external_id, name, category, bio, website, content_hash)
                SELECT DISTINCT ON (i.source, i.external_id)
                       i.source, i.external_id, i.name, i.category, i.bio, i.website, i.content_hash
                FROM unnest(\(companies.map(\.source))::text[], \(companies.map(\.externalID))::text[],
                            \(companies.map(\.draft.name))::text[], \(companies.map(\.draft.category))::text[],
                            \(companies.map(\.draft.bio))::text[], \(companies.map(\.draft.website))::text[],
                            \(companies.map(\.contentHash))::bytea[])
                  AS i(source, external_id, name, category, bio, website, content_hash)
                ORDER BY i.source, i.external_id
                ON CONFLICT (source, external_id) DO UPDATE SET
                  name = excluded.name, category = excluded.category, bio = excluded.bio, website = excluded.website,
                  content_hash = excluded.content_hash, updated_at = now()
                WHERE c.content_hash IS DISTINCT FROM excluded.content_hash
                RETURNING xmax = 0
                """,
                as: { try $0.get(0, as: Bool.self) })
            let new = stored.count { $0 }
            return ImportCounts(new: new, updated: stored.count - new, unchanged: companies.count - stored.count)
        }
    }

    public func finish() async throws {
        try await mapped {
            try await db.session { session in
                // Seven seconds for a million postings; nobody waits for it.
                try await session.script("SET statement_timeout = '10min'")
                try await session.script("SELECT refresh_search_facts()")
                try await session.script("ANALYZE job_postings, posting_search, companies")
            }
        }
    }

    /// Companies that postings name are found by the source and the folded name, and made when they are new. In a
    /// transaction of its own, so that imports side by side do not wait for each other's postings.
    private func createCompanies(of postings: [ImportedPosting]) async throws {
        var names: [CompanyKey: String] = [:]
        for posting in postings {
            let key = CompanyKey(posting)
            if names[key] == nil { names[key] = posting.companyName }
        }
        // In one order everywhere: two imports that lock the same names never wait for each other in a circle.
        let keys = names.keys.sorted()
        try await db.write.execute(
            """
            INSERT INTO companies (source, external_id, name)
            SELECT i.source, i.external_id, i.name
            FROM unnest(\(keys.map(\.source))::text[], \(keys.map(\.folded))::text[],
                        \(keys.compactMap { names[$0] })::text[])
              WITH ORDINALITY AS i(source, external_id, name, ord)
            WHERE NOT EXISTS (SELECT FROM companies c WHERE c.source = i.source AND c.external_id = i.external_id)
            ORDER BY i.ord
            ON CONFLICT (source, external_id) DO NOTHING
            """)
    }

    private func matchAlerts(_ ids: [Int64], in transaction: Transaction) async throws {
        guard !ids.isEmpty else { return }
        try await transaction.execute(
            """
            INSERT INTO work_items (kind, payload, traceparent)
            SELECT 'match_alerts', jsonb_build_object('posting_ids', jsonb_agg(i.id ORDER BY i.ord)),
                   \(Enqueue.traceparent)::varchar
            FROM unnest(\(ids)::bigint[]) WITH ORDINALITY AS i(id, ord)
            GROUP BY (i.ord - 1) / \(Self.matchedTogetherMax)::bigint
            """)
        // Last, as every wake-up: once a batch, however many postings it has.
        if notify { try await transaction.execute("SELECT pg_notify('martlet_work', '')") }
    }
}

/// What makes two names of a source the same company.
struct CompanyKey: Hashable, Comparable {
    let source: String
    let folded: String

    init(_ posting: ImportedPosting) {
        source = posting.source
        folded = posting.companyName.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    static func < (left: Self, right: Self) -> Bool { (left.source, left.folded) < (right.source, right.folded) }
}

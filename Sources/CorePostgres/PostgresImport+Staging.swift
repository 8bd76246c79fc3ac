import Core
import Postgres

extension PostgresImport {
    struct Stored {
        let id: Int64
        let isNew: Bool
        let isOpen: Bool
    }

    /// Copies the postings into a table of the connection's own. It stays with the connection and is emptied by COMMIT.
    func stage(_ postings: [ImportedPosting], in transaction: Transaction) async throws {
        try await transaction.execute(
            """
            CREATE TEMPORARY TABLE IF NOT EXISTS import_postings (
              source text, external_id text, company_key text, title text, description text, employment_type text,
              kind smallint, environment text, remote smallint, place text, lat real, lng real,
              salary_min bigint, salary_max bigint, salary_currency text, salary_period text, skills text[],
              apply_url text, state text, published_at timestamptz, valid_through timestamptz, content_hash bytea
            ) ON COMMIT DELETE ROWS
            """)
        _ = try await transaction.copyIn(
            """
            COPY import_postings (source, external_id, company_key, title, description, employment_type, kind,
              environment, remote, place, lat, lng, salary_min, salary_max, salary_currency, salary_period, skills,
              apply_url, state, published_at, valid_through, content_hash) FROM STDIN
            """
        ) { writer in
            for posting in postings { try await writer.row(binds: Self.columns(posting)) }
        }
    }

    private static func columns(_ posting: ImportedPosting) -> [PostgresBind] {
        let draft = posting.draft
        let terms = draft.terms
        return [
            posting.source.postgresBind, posting.externalID.postgresBind, CompanyKey(posting).folded.postgresBind,
            draft.title.postgresBind, draft.description.postgresBind, terms.employmentType.postgresBind,
            terms.kind.rawValue.postgresBind, terms.environment.postgresBind, terms.remote.rawValue.postgresBind,
            terms.place.postgresBind, (terms.coordinate?.latitude).postgresBind,
            (terms.coordinate?.longitude).postgresBind, (terms.salary?.minimum).postgresBind,
            (terms.salary?.maximum).postgresBind, (terms.salary?.currency).postgresBind,
            (terms.salary?.period.rawValue).postgresBind, terms.skills.postgresBind, terms.applyURL.postgresBind,
            draft.state.rawValue.postgresBind, posting.publishedAt.postgresBind, draft.validThrough.postgresBind,
            posting.contentHash.postgresBind,
        ]
    }

    /// Writes what is new or different, and leaves the rest alone. A posting that has expired and is open in the source
    /// is different, whatever its words.
    func merge(in transaction: Transaction) async throws -> [Stored] {
        try await transaction.rows(
            """
            INSERT INTO job_postings AS p (
              source, external_id, company_id, title, description, employment_type, kind, environment, remote, place,
              lat, lng, salary_min, salary_max, salary_currency, salary_period, skills, apply_url, state, published_at,
              valid_through, content_hash)
            SELECT DISTINCT ON (i.source, i.external_id)
              i.source, i.external_id, c.id, i.title, i.description, i.employment_type, i.kind, i.environment, i.remote,
              i.place, i.lat, i.lng, i.salary_min, i.salary_max, i.salary_currency, i.salary_period, i.skills,
              i.apply_url, i.state, i.published_at, i.valid_through, i.content_hash
            FROM import_postings i
            JOIN companies c ON c.source = i.source AND c.external_id = i.company_key
            LEFT JOIN job_postings o ON o.source = i.source AND o.external_id = i.external_id
            WHERE o.id IS NULL OR o.content_hash IS DISTINCT FROM i.content_hash
               OR (o.valid_through <= now() AND coalesce(i.valid_through > now(), true))
            ORDER BY i.source, i.external_id
            ON CONFLICT (source, external_id) DO UPDATE SET
              company_id = excluded.company_id, title = excluded.title, description = excluded.description,
              employment_type = excluded.employment_type, kind = excluded.kind, environment = excluded.environment,
              remote = excluded.remote, place = excluded.place, lat = excluded.lat, lng = excluded.lng,
              salary_min = excluded.salary_min, salary_max = excluded.salary_max,
              salary_currency = excluded.salary_currency, salary_period = excluded.salary_period,
              skills = excluded.skills, apply_url = excluded.apply_url, state = excluded.state,
              published_at = excluded.published_at, valid_through = excluded.valid_through,
              content_hash = excluded.content_hash, updated_at = now()
            RETURNING p.id, p.xmax = 0,
              p.state = 'published' AND coalesce(p.valid_through > now(), true)
            """,
            as: { row in
                Stored(id: try row.get(0), isNew: try row.get(1), isOpen: try row.get(2))
            })
    }
}

import Core
import Foundation
import Postgres

public struct PostgresPostings: PostingRepository {
    private let db: Database
    private let notify: Bool

    public init(db: Database, notify: Bool = true) {
        self.db = db
        self.notify = notify
    }

    static let posting: @Sendable (Row) throws -> JobPosting = { row in
        var reader = RowReader(row)
        return try reader.posting()
    }

    /// A posting's row after a write.
    private struct Written: Sendable {
        let id: JobPosting.ID
        /// Published and not expired, by the database's clock.
        let isOpen: Bool
    }

    private static let written: @Sendable (Row) throws -> Written = { row in
        Written(id: try row.get(0), isOpen: try row.get(1))
    }

    public func create(_ draft: JobPosting.Draft, author: User.ID) async throws -> JobPosting {
        try await mapped {
            try await db.transaction { transaction in
                let (terms, salary) = (draft.terms, draft.terms.salary)
                let written = try await transaction.first(
                    """
                    INSERT INTO job_postings (
                      company_id, created_by, title, description, employment_type, kind, environment, remote, place,
                      lat, lng, salary_min, salary_max, salary_currency, salary_period, skills, apply_url, state,
                      published_at, valid_through)
                    SELECT me.company_id, me.user_id, \(draft.title), \(draft.description), \(terms.employmentType),
                      \(terms.kind)::smallint, \(terms.environment), \(terms.remote)::smallint, \(terms.place),
                      \(terms.coordinate?.latitude)::real, \(terms.coordinate?.longitude)::real,
                      \(salary?.minimum)::bigint, \(salary?.maximum)::bigint, \(salary?.currency), \(salary?.period),
                      \(terms.skills)::text[], \(terms.applyURL), \(draft.state),
                      CASE WHEN \(draft.state)::text <> 'draft' THEN now() END, \(draft.validThrough)::timestamptz
                    FROM company_members me WHERE me.user_id = \(author)
                    RETURNING id, state = 'published' AND (valid_through IS NULL OR valid_through > now())
                    """, as: Self.written)
                guard let written else {
                    throw AppError(.forbidden, "Postings are a company's: create yours first.")
                }
                return try await finish(
                    written, publishes: written.isOpen, action: "posting.create", actor: author, in: transaction)
            }
        }
    }

    public func update(
        _ id: JobPosting.ID, editor: User.ID,
        _ edit: @escaping @Sendable (JobPosting) throws(AppError) -> JobPosting.Draft
    ) async throws -> JobPosting {
        try await mapped {
            try await db.transaction { transaction in
                let (present, wasOpen) = try await lock(id, editor: editor, in: transaction)
                let draft = try edit(present)
                let (terms, salary) = (draft.terms, draft.terms.salary)
                let written = try await transaction.first(
                    """
                    UPDATE job_postings SET
                      title = \(draft.title), description = \(draft.description),
                      employment_type = \(terms.employmentType), kind = \(terms.kind),
                      environment = \(terms.environment), remote = \(terms.remote), place = \(terms.place),
                      lat = \(terms.coordinate?.latitude), lng = \(terms.coordinate?.longitude),
                      salary_min = \(salary?.minimum), salary_max = \(salary?.maximum),
                      salary_currency = \(salary?.currency), salary_period = \(salary?.period),
                      skills = \(terms.skills), apply_url = \(terms.applyURL), state = \(draft.state),
                      published_at = CASE WHEN \(draft.state)::text = 'draft' THEN published_at
                                          ELSE coalesce(published_at, now()) END,
                      valid_through = \(draft.validThrough), updated_at = now()
                    WHERE id = \(id)
                    RETURNING id, state = 'published' AND (valid_through IS NULL OR valid_through > now())
                    """, as: Self.written
                ).orNotFound()
                return try await finish(
                    written, publishes: written.isOpen && !wasOpen, action: "posting.update", actor: editor,
                    in: transaction)
            }
        }
    }

    /// What belongs to every write of a posting, in its transaction: the record of it, the index of search, and the
    /// alerts when people can see it who could not before. Gives the posting as it is now.
    private func finish(
        _ written: Written, publishes: Bool, action: String, actor: User.ID, in transaction: Transaction
    ) async throws -> JobPosting {
        var statements: [SQL] = [
            """
            INSERT INTO audit_log (actor_id, action, subject, subject_id, detail)
            SELECT \(actor)::bigint, \(action)::text, 'posting', p.id, jsonb_build_object('state', p.state)
            FROM job_postings p WHERE p.id = \(written.id)
            """,
            "SELECT index_posting(\(written.id))",
        ]
        if publishes {
            statements.append(Enqueue.item(.matchAlerts, payload: #"{"posting_id":\#(written.id)}"#))
        }
        _ = try await transaction.batch(statements)
        return try await transaction.lastFirst(
            """
            SELECT \(Columns.posting), \(Columns.company), \(Columns.logo)
            FROM job_postings p \(Joins.companyOfPosting) WHERE p.id = \(written.id)
            """, waking: notify && publishes, as: Self.posting
        ).orNotFound()
    }

    /// The posting as it is, locked, if the editor is a member of its company; and whether it is open.
    private func lock(
        _ id: JobPosting.ID, editor: User.ID, in transaction: Transaction
    ) async throws -> (posting: JobPosting, isOpen: Bool) {
        try await transaction.first(
            """
            SELECT p.state = 'published' AND (p.valid_through IS NULL OR p.valid_through > now()),
                   \(Columns.posting), \(Columns.company), \(Columns.logo)
            FROM job_postings p
            JOIN company_members me ON me.company_id = p.company_id AND me.user_id = \(editor)
            \(Joins.companyOfPosting)
            WHERE p.id = \(id) FOR UPDATE OF p
            """
        ) { row in
            var reader = RowReader(row, from: 1)
            return (posting: try reader.posting(), isOpen: try row.get(0, as: Bool.self))
        }.orNotFound()
    }

    public func delete(_ id: JobPosting.ID, editor: User.ID) async throws -> JobPosting {
        try await mapped {
            try await db.transaction { transaction in
                // FOR UPDATE also waits for those who are applying just now: their CVs are seen below.
                let (posting, _) = try await lock(id, editor: editor, in: transaction)
                let cvs = try await transaction.rows("SELECT cv_media_id FROM applications WHERE posting_id = \(id)") {
                    try $0.get(0, as: Media.ID.self)
                }
                var statements: [SQL] = [
                    "DELETE FROM job_postings WHERE id = \(id)",
                    "SELECT index_posting(\(id))",
                    """
                    INSERT INTO audit_log (actor_id, action, subject, subject_id)
                    VALUES (\(editor), 'posting.delete', 'posting', \(id))
                    """,
                ]
                if !cvs.isEmpty { statements += MediaStatements.delete(cvs) }
                if notify, !cvs.isEmpty { statements.append(Enqueue.wake) }
                _ = try await transaction.batch(statements)
                return posting
            }
        }
    }

    public func mine(of user: User.ID) async throws -> [PostingWithApplications] {
        try await mapped {
            let (postings, applications) = try await db.long.batch(
                Statement(
                    """
                    SELECT \(Columns.posting), \(Columns.company), \(Columns.logo)
                    FROM job_postings p \(Joins.companyOfPosting)
                    WHERE p.id = ANY (ARRAY(
                      SELECT p.id FROM company_members me JOIN job_postings p ON p.company_id = me.company_id
                      WHERE me.user_id = \(user) ORDER BY p.id DESC LIMIT \(JobPosting.mineMax)))
                    ORDER BY p.id DESC
                    """, as: Self.posting),
                Statement(
                    """
                    SELECT \(Columns.user), \(Columns.application), \(Columns.cv)
                    FROM applications a JOIN users u ON u.id = a.applicant_id \(Joins.partsOfApplication)
                    WHERE a.id = ANY (ARRAY(
                      SELECT a.id FROM company_members me
                      JOIN job_postings p ON p.company_id = me.company_id
                      JOIN applications a ON a.posting_id = p.id
                      WHERE me.user_id = \(user) ORDER BY a.id DESC LIMIT \(JobPosting.mineApplicationsMax)))
                    ORDER BY a.id DESC
                    """
                ) { row in
                    var reader = RowReader(row)
                    let applicant = try reader.user()
                    return (application: try reader.application(), applicant: applicant)
                })
            let byPosting = Dictionary(grouping: applications, by: \.application.postingID)
            return postings.map { PostingWithApplications(posting: $0, applications: byPosting[$0.id] ?? []) }
        }
    }
}

import Core
import Postgres

/// Who may read is part of each statement: what one may not read is not found.
public struct PostgresCVs: CVRepository {
    private let db: Database

    public init(db: Database) { self.db = db }

    private static let columns: SQL = "m.id, m.state, m.rejection_message, m.note, m.resume::text"

    private static let compared: SQL =
        """
        m.id, m.state, m.rejection_message, m.note, m.resume::text, left(m.text, \(CVComparison.textLengthMax)::int),
        ARRAY(SELECT o::bigint FROM jsonb_array_elements_text(coalesce(m.text_pages, '[]')) o), p.id, p.title,
        p.description, p.skills
        """

    private static func reading(_ reader: inout RowReader) throws -> CVReading {
        try CVReading(
            id: reader.next(), state: reader.next(), rejectionMessage: reader.next(), note: reader.next(),
            resume: reader.next())
    }

    private static let comparison: @Sendable (Row) throws -> CVComparison = { row in
        var reader = RowReader(row)
        return try CVComparison(
            cv: reading(&reader), text: reader.next(), pageOffsets: reader.next(), postingID: reader.next(),
            title: reader.next(), description: reader.next(), skills: reader.next())
    }

    public func reading(of id: Media.ID, viewer: User.ID) async throws -> CVReading {
        try await mapped {
            try await db.short.first(
                """
                SELECT \(Self.columns) FROM media m
                WHERE m.id = \(id) AND m.kind = 'cv' AND (m.owner_id = \(viewer) OR EXISTS (
                  SELECT FROM applications a
                  JOIN job_postings p ON p.id = a.posting_id
                  JOIN company_members me ON me.company_id = p.company_id AND me.user_id = \(viewer)
                  WHERE a.cv_media_id = m.id))
                """
            ) { row in
                var reader = RowReader(row)
                return try Self.reading(&reader)
            }.orNotFound()
        }
    }

    // A long CV takes longer to read than a row by key may.

    public func comparison(
        of cv: Media.ID, with posting: JobPosting.ID, owner: User.ID
    ) async throws -> CVComparison {
        try await mapped {
            try await db.long.first(
                """
                SELECT \(Self.compared)
                FROM media m CROSS JOIN job_postings p
                WHERE m.id = \(cv) AND m.kind = 'cv' AND m.owner_id = \(owner)
                  AND p.id = \(posting) AND (p.state <> 'draft' OR EXISTS (
                    SELECT FROM company_members me WHERE me.company_id = p.company_id AND me.user_id = \(owner)))
                """, as: Self.comparison
            ).orNotFound()
        }
    }

    public func comparison(of application: Application.ID, viewer: User.ID) async throws -> CVComparison {
        try await mapped {
            try await db.long.first(
                """
                SELECT \(Self.compared)
                FROM applications a
                JOIN media m ON m.id = a.cv_media_id
                JOIN job_postings p ON p.id = a.posting_id
                WHERE a.id = \(application) AND (a.applicant_id = \(viewer) OR EXISTS (
                  SELECT FROM company_members me WHERE me.company_id = p.company_id AND me.user_id = \(viewer)))
                """, as: Self.comparison
            ).orNotFound()
        }
    }
}

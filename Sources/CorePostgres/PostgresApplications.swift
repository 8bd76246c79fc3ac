import Core
import Foundation
import Postgres

public struct PostgresApplications: ApplicationRepository {
    /// Lines of one application's history: its moves are few, and its CV is looked at once.
    public static let historyMax = 200

    private let db: Database
    private let notify: Bool
    private let quota: Media.Quota

    /// - Parameter quota: of one person's files.
    public init(db: Database, notify: Bool = true, quota: Media.Quota = Media.Quota()) {
        self.db = db
        self.notify = notify
        self.quota = quota
    }

    private static let application: @Sendable (Row) throws -> Application = { row in
        var reader = RowReader(row)
        return try reader.application()
    }

    private static let detail: @Sendable (Row) throws -> ApplicationDetail = { row in
        var reader = RowReader(row)
        let application = try reader.application()
        let applicant = try reader.user()
        return ApplicationDetail(application: application, posting: try reader.posting(), applicant: applicant)
    }

    public func create(
        posting: JobPosting.ID, applicant: User.ID, cv: Media.Draft, now: Date
    ) async throws -> Application {
        try await mapped {
            try await db.transaction { transaction in
                // FOR SHARE: whoever closes or deletes the posting comes before or after, not in between.
                let (postings, _, media) = try await transaction.batch(
                    Statement(
                        """
                        SELECT p.state, p.valid_through, EXISTS (
                          SELECT FROM company_members me
                          WHERE me.company_id = p.company_id AND me.user_id = \(applicant))
                        FROM job_postings p WHERE p.id = \(posting) FOR SHARE
                        """
                    ) { row in
                        let state = try row.get(0, as: JobPosting.State.self)
                        let end = try row.get(1, as: Date?.self)
                        return (
                            standing: JobPosting.standing(state, validThrough: end, at: now),
                            isOwn: try row.get(2, as: Bool.self)
                        )
                    },
                    Statement(MediaStatements.takeTurns(applicant)),
                    Statement(MediaStatements.insert(cv, owner: applicant, quota: quota)) {
                        try $0.get(0, as: Media.ID.self)
                    })
                let found = try postings.first.orNotFound()
                try Self.mayApply(found.standing, isOwn: found.isOwn)
                guard let cv = media.first else { throw quota.exceeded }
                return try await add(posting: posting, applicant: applicant, cv: cv, in: transaction)
            }
        }
    }

    private static func mayApply(_ standing: JobPosting.Standing, isOwn: Bool) throws(AppError) {
        switch standing {
        case .draft: throw .notFound
        case .closed: throw AppError(.gone, "This posting is closed.")
        case .expired: throw AppError(.gone, "This posting has expired.")
        case .published:
            if isOwn { throw AppError(.forbidden, "You cannot apply to your own company.") }
        }
    }

    private func add(
        posting: JobPosting.ID, applicant: User.ID, cv: Media.ID, in transaction: Transaction
    ) async throws -> Application {
        let added = try await transaction.first(
            """
            WITH added AS (
              INSERT INTO applications (posting_id, applicant_id, cv_media_id)
              VALUES (\(posting), \(applicant), \(cv))
              ON CONFLICT (posting_id, applicant_id) DO NOTHING
              RETURNING id, applicant_id
            )
            INSERT INTO application_events (application_id, actor_id, kind)
            SELECT a.id, a.applicant_id, 'initiated' FROM added a
            RETURNING application_id
            """
        ) { try $0.get(0, as: Application.ID.self) }
        guard let added else {
            let first = try await transaction.first(
                "SELECT id FROM applications WHERE posting_id = \(posting) AND applicant_id = \(applicant)"
            ) { try $0.get(0, as: Application.ID.self) }
            throw AppError(
                .conflict, "You have applied to this posting already.",
                location: first.map { "/api/applications/\($0)" })
        }
        try await transaction.execute(MediaStatements.process(cv))
        return try await transaction.lastFirst(
            """
            SELECT \(Columns.application), \(Columns.cv)
            FROM applications a \(Joins.partsOfApplication) WHERE a.id = \(added)
            """, waking: notify, as: Self.application
        ).orNotFound()
    }

    public func mine(of applicant: User.ID) async throws -> [ApplicationDetail] {
        try await mapped {
            try await db.long.rows(
                """
                SELECT \(Columns.application), \(Columns.cv), \(Columns.user),
                       \(Columns.posting), \(Columns.company), \(Columns.logo)
                FROM applications a \(Joins.partsOfApplication)
                JOIN users u ON u.id = a.applicant_id
                JOIN job_postings p ON p.id = a.posting_id \(Joins.companyOfPosting)
                WHERE a.id = ANY (ARRAY(
                  SELECT id FROM applications WHERE applicant_id = \(applicant)
                  ORDER BY id DESC LIMIT \(Application.mineMax)))
                ORDER BY a.id DESC
                """, as: Self.detail)
        }
    }

    public func history(_ id: Application.ID, viewer: User.ID) async throws -> [Application.Event] {
        try await mapped {
            let events = try await db.short.rows(
                """
                SELECT e.kind, e.actor_id, e.note, e.at
                FROM applications a
                JOIN job_postings p ON p.id = a.posting_id
                JOIN application_events e ON e.application_id = a.id
                WHERE a.id = \(id) AND (a.applicant_id = \(viewer) OR EXISTS (
                  SELECT FROM company_members me WHERE me.company_id = p.company_id AND me.user_id = \(viewer)))
                ORDER BY e.id LIMIT \(Self.historyMax)
                """
            ) { row in
                Application.Event(
                    kind: try row.get(0), actorID: try row.get(1, as: User.ID?.self), note: try row.get(2),
                    at: try row.get(3))
            }
            // Every application has its beginning: without an event there is none, or none for this viewer.
            guard !events.isEmpty else { throw AppError.notFound }
            return events
        }
    }

    public func move(
        _ id: Application.ID, to status: Application.Status, actor: User.ID
    ) async throws -> ApplicationDetail {
        try await mapped {
            try await db.transaction { transaction in
                let present = try await lock(id, actor: actor, in: transaction)
                guard Application.mayAsk(for: status, company: present.isMember, applicant: present.isApplicant) else {
                    throw AppError(.forbidden, "It is not yours to make this application \(status.rawValue).")
                }
                guard present.status != status else { return try await detail(id, waking: false, in: transaction) }
                guard Application.mayMove(from: present.status, to: status) else {
                    throw AppError(
                        .conflict, "This application is \(present.status.rawValue) and cannot be \(status.rawValue).")
                }
                _ = try await transaction.batch([
                    "UPDATE applications SET status = \(status), updated_at = now() WHERE id = \(id)",
                    """
                    INSERT INTO application_events (application_id, actor_id, kind)
                    VALUES (\(id), \(actor), \(status))
                    """,
                ])
                if status == .accepted {
                    try await ApplicationRoom(applicationID: id, actorID: actor).open(in: transaction)
                }
                return try await detail(id, waking: notify && status == .accepted, in: transaction)
            }
        }
    }

    private struct Present: Sendable {
        let status: Application.Status
        let isApplicant: Bool
        let isMember: Bool
    }

    /// Only what is in the application's own row: what refers to it may have changed while this waited for the lock.
    private func lock(
        _ id: Application.ID, actor: User.ID, in transaction: Transaction
    ) async throws -> Present {
        let found = try await transaction.first(
            """
            SELECT a.status, a.applicant_id = \(actor), EXISTS (
              SELECT FROM company_members me WHERE me.company_id = p.company_id AND me.user_id = \(actor))
            FROM applications a JOIN job_postings p ON p.id = a.posting_id
            WHERE a.id = \(id) FOR NO KEY UPDATE OF a
            """
        ) { row in
            Present(status: try row.get(0), isApplicant: try row.get(1), isMember: try row.get(2))
        }
        guard let found, found.isApplicant || found.isMember else { throw AppError.notFound }
        return found
    }

    private func detail(
        _ id: Application.ID, waking: Bool, in transaction: Transaction
    ) async throws -> ApplicationDetail {
        let select: SQL =
            """
            SELECT \(Columns.application), \(Columns.cv), \(Columns.user),
                   \(Columns.posting), \(Columns.company), \(Columns.logo)
            FROM applications a \(Joins.partsOfApplication)
            JOIN users u ON u.id = a.applicant_id
            JOIN job_postings p ON p.id = a.posting_id \(Joins.companyOfPosting)
            WHERE a.id = \(id)
            """
        // The wake is for the chat: a room has opened.
        return try await transaction.run(select, waking ? ["SELECT pg_notify('martlet_chat', '')"] : []) { rows, _ in
            rows.count > 0 ? try Self.detail(rows[0]) : nil
        }.orNotFound()
    }
}

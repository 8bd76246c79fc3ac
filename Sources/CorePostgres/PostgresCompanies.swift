import Core
import Foundation
import Postgres

public struct PostgresCompanies: CompanyRepository {
    private let db: Database
    private let notify: Bool
    private let quota: Media.Quota

    /// - Parameter quota: of one person's files.
    public init(db: Database, notify: Bool = true, quota: Media.Quota = Media.Quota()) {
        self.db = db
        self.notify = notify
        self.quota = quota
    }

    private static let company: @Sendable (Row) throws -> Company = { row in
        var reader = RowReader(row)
        return try reader.company()
    }

    /// The company of a member, locked for a change.
    private struct Present: Sendable {
        let id: Company.ID
        let name: String
        let logoID: Media.ID?
        let role: String
    }

    public func save(_ draft: Company.Draft, logo: Media.Draft?, representative: User.ID) async throws -> Company {
        try await mapped {
            try await db.transaction { transaction in
                let present = try await lock(of: representative, in: transaction)
                if let present, present.role != "representative" {
                    throw AppError(.forbidden, "Only the company's representative may change it.")
                }
                var logoID: Media.ID?
                if let logo {
                    logoID = try await MediaStatements.add(
                        logo, owner: representative, quota: quota, in: transaction)
                }
                let id =
                    if let present {
                        try await rewrite(present, draft, logo: logoID, in: transaction)
                    } else {
                        try await add(draft, logo: logoID, representative: representative, in: transaction)
                    }
                let action = present == nil ? "company.create" : "company.update"
                var statements: [SQL] = [
                    """
                    INSERT INTO audit_log (actor_id, action, subject, subject_id)
                    VALUES (\(representative), \(action), 'company', \(id))
                    """
                ]
                if let logoID { statements.append(MediaStatements.process(logoID)) }
                if logoID != nil, let former = present?.logoID { statements += MediaStatements.delete([former]) }
                _ = try await transaction.batch(statements)
                return try await transaction.lastFirst(
                    """
                    SELECT \(Columns.company), \(Columns.logo)
                    FROM companies c \(Joins.logoOfCompany) WHERE c.id = \(id)
                    """, waking: notify && logoID != nil, as: Self.company
                ).orNotFound()
            }
        }
    }

    private func lock(of user: User.ID, in transaction: Transaction) async throws -> Present? {
        // The user's row makes two first saves of one person take turns; the second then finds the company.
        let (users, companies) = try await transaction.batch(
            Statement("SELECT id FROM users WHERE id = \(user) FOR NO KEY UPDATE") { try $0.get(0, as: User.ID.self) },
            Statement(
                """
                SELECT c.id, c.name, c.logo_media_id, m.role
                FROM company_members m JOIN companies c ON c.id = m.company_id
                WHERE m.user_id = \(user) FOR UPDATE OF c
                """
            ) { row in
                Present(
                    id: try row.get(0), name: try row.get(1), logoID: try row.get(2, as: Media.ID?.self),
                    role: try row.get(3))
            })
        guard !users.isEmpty else { throw AppError.notFound }
        return companies.first
    }

    private func add(
        _ draft: Company.Draft, logo: Media.ID?, representative: User.ID, in transaction: Transaction
    ) async throws -> Company.ID {
        try await transaction.first(
            """
            WITH added AS (
              INSERT INTO companies (name, email, phone, address, category, bio, website, logo_media_id)
              VALUES (\(draft.name), \(draft.email), \(draft.phone), \(draft.address), \(draft.category), \(draft.bio),
                      \(draft.website), \(logo))
              RETURNING id
            )
            INSERT INTO company_members (company_id, user_id, role)
            SELECT a.id, \(representative)::bigint, 'representative' FROM added a
            RETURNING company_id
            """
        ) { try $0.get(0, as: Company.ID.self) }.orNotFound()
    }

    private func rewrite(
        _ present: Present, _ draft: Company.Draft, logo: Media.ID?, in transaction: Transaction
    ) async throws -> Company.ID {
        let id = present.id
        var statements: [SQL] = [
            """
            UPDATE companies SET
              name = \(draft.name), email = \(draft.email), phone = \(draft.phone), address = \(draft.address),
              category = \(draft.category), bio = \(draft.bio), website = \(draft.website),
              logo_media_id = coalesce(\(logo), logo_media_id), updated_at = now()
            WHERE id = \(id)
            """
        ]
        if present.name != draft.name {
            // Postings are found by their company's name too.
            statements.append(
                """
                SELECT index_postings(ARRAY(
                  SELECT p.id FROM job_postings p WHERE p.company_id = \(id) AND p.state = 'published'))
                """)
        }
        _ = try await transaction.batch(statements)
        return id
    }

    public func own(of user: User.ID) async throws -> Company? {
        try await mapped {
            try await db.short.first(
                """
                SELECT \(Columns.company), \(Columns.logo)
                FROM company_members me JOIN companies c ON c.id = me.company_id \(Joins.logoOfCompany)
                WHERE me.user_id = \(user)
                """, as: Self.company)
        }
    }
}

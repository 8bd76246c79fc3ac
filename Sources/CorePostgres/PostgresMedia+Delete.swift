import Core
import Foundation
import Postgres

extension PostgresMedia {
    /// A use that came while others were being locked makes the deletion begin anew; then somebody is playing.
    static let deleteAttemptsMax = 3

    private struct UseChanged: Error {}

    public func delete(_ id: Media.ID, owner: User.ID) async throws -> Media {
        try await mapped {
            for _ in 0..<Self.deleteAttemptsMax {
                do { return try await deleteOnce(id, owner: owner) } catch is UseChanged { continue }
            }
            throw AppError.unavailable
        }
    }

    /// Locks in the order of those who put a file into its use, first the use, then the file. With the file locked no
    /// use can be added, so what has it now is what had to be locked.
    private func deleteOnce(_ id: Media.ID, owner: User.ID) async throws -> Media {
        try await db.transaction { transaction in
            let (locked, found, uses, applications) = try await transaction.batch(
                Statement(
                    """
                    SELECT c.id FROM companies c JOIN media m ON m.id = c.logo_media_id
                    WHERE m.id = \(id) AND m.owner_id = \(owner) ORDER BY c.id FOR UPDATE OF c
                    """
                ) { try $0.get(0, as: Company.ID.self) },
                Statement(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia)
                    WHERE m.id = \(id) AND m.owner_id = (
                      SELECT u.id FROM users u WHERE u.id = \(owner) FOR NO KEY UPDATE)
                    FOR UPDATE OF m
                    """, as: Self.media),
                Statement("SELECT c.id FROM companies c WHERE c.logo_media_id = \(id) ORDER BY c.id") {
                    try $0.get(0, as: Company.ID.self)
                },
                Statement("SELECT a.id FROM applications a WHERE a.cv_media_id = \(id) LIMIT 1") {
                    try $0.get(0, as: Application.ID.self)
                })
            let media = try found.first.orNotFound().orNotFound()
            guard locked == uses else { throw UseChanged() }
            if let application = applications.first {
                throw AppError(
                    .conflict, "This file is the CV of an application, which others rely on: it stays with it.",
                    location: "/api/applications/\(application)")
            }
            _ = try await transaction.batch(
                Self.release(id, owner: owner, companies: uses) + MediaStatements.delete([id])
                    + (notify ? [Enqueue.wake] : []))
            return media
        }
    }

    private static func release(_ id: Media.ID, owner: User.ID, companies: [Company.ID]) -> [SQL] {
        let own: SQL =
            """
            UPDATE users SET profile_media_id = NULL, updated_at = now()
            WHERE id = \(owner) AND profile_media_id = \(id)
            """
        return companies.flatMap { company -> [SQL] in
            [
                "UPDATE companies SET logo_media_id = NULL, updated_at = now() WHERE id = \(company)",
                """
                INSERT INTO audit_log (actor_id, action, subject, subject_id)
                VALUES (\(owner), 'company.update', 'company', \(company))
                """,
            ]
        } + [own]
    }
}

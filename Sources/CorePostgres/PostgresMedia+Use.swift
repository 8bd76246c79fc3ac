import Core
import Foundation
import Postgres

/// Files and what they are for.
extension PostgresMedia {
    /// What a use has now.
    private struct Place: Sendable {
        let former: Media.ID?
        /// Of an application.
        var status: Application.Status?
    }

    public func add(_ drafts: [Media.Draft], owner: User.ID, use: MediaUse?) async throws -> [Media] {
        try await mapped {
            try await db.transaction { transaction in
                if let use { _ = try await place(of: use, owner: owner, in: transaction) }
                var ids: [Media.ID] = []
                // One by one: ids are to have the order of the files, and there are a handful of them.
                for draft in drafts {
                    ids.append(try await MediaStatements.add(draft, owner: owner, quota: quota, in: transaction))
                }
                _ = try await transaction.batch(ids.map(MediaStatements.process))
                return try await transaction.lastRows(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia)
                    WHERE m.id = ANY (\(ids.map(\.value))) ORDER BY m.id
                    """, waking: notify, as: Self.media
                ).compactMap { $0 }
            }
        }
    }

    public func attach(_ id: Media.ID, to use: MediaUse, owner: User.ID) async throws -> Media {
        try await mapped {
            try await db.transaction { transaction in
                let place = try await place(of: use, owner: owner, in: transaction)
                let state = try await transaction.first(
                    """
                    SELECT m.state FROM media m
                    WHERE m.id = \(id) AND m.owner_id = \(owner) AND m.kind = \(use.kind) AND m.state <> 'rejected'
                    FOR UPDATE
                    """
                ) { try $0.get(0, as: Media.State.self) }.orNotFound()
                var statements = Self.put(id, into: use, owner: owner, isReady: state == .ready)
                if let former = place.former, former != id { statements += MediaStatements.delete([former]) }
                _ = try await transaction.batch(statements)
                return try await transaction.lastFirst(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia) WHERE m.id = \(id)
                    """, waking: notify, as: Self.media
                ).orNotFound().orNotFound()
            }
        }
    }

    private static func put(_ id: Media.ID, into use: MediaUse, owner: User.ID, isReady: Bool) -> [SQL] {
        switch use {
        case .logo(let company):
            [
                "UPDATE companies SET logo_media_id = \(id), updated_at = now() WHERE id = \(company)",
                """
                INSERT INTO audit_log (actor_id, action, subject, subject_id)
                VALUES (\(owner), 'company.update', 'company', \(company))
                """,
            ]
        case .profile(let user):
            ["UPDATE users SET profile_media_id = \(id), updated_at = now() WHERE id = \(user)"]
        case .cv(let application):
            [
                "UPDATE applications SET cv_media_id = \(id), updated_at = now() WHERE id = \(application)",
                // When it is not ready yet, the worker writes the outcome down.
                """
                INSERT INTO application_events (application_id, actor_id, kind)
                SELECT a.id, a.applicant_id, 'cv_ready' FROM applications a
                WHERE a.id = \(application) AND \(isReady)
                """,
            ]
        }
    }

    /// Locks what the file is for. The right to decide is part of the key: whose it is not finds nothing.
    private func place(of use: MediaUse, owner: User.ID, in transaction: Transaction) async throws -> Place {
        switch use {
        case .logo(let company):
            let place = try await transaction.first(
                """
                SELECT c.logo_media_id FROM company_members me JOIN companies c ON c.id = me.company_id
                WHERE me.user_id = \(owner) AND me.company_id = \(company) AND me.role = 'representative'
                FOR UPDATE OF c
                """
            ) { Place(former: try $0.get(0, as: Media.ID?.self)) }
            guard let place else {
                throw AppError(.forbidden, "Only the company's representative may change its logo.")
            }
            return place
        case .profile(let user):
            let place = try await transaction.first(
                """
                SELECT u.profile_media_id FROM users u WHERE u.id = \(user) AND u.id = \(owner) FOR NO KEY UPDATE
                """
            ) { Place(former: try $0.get(0, as: Media.ID?.self)) }
            guard let place else { throw AppError(.forbidden, "Only your own picture may be changed.") }
            return place
        case .cv(let application):
            let place = try await transaction.first(
                """
                SELECT a.cv_media_id, a.status FROM applications a
                WHERE a.id = \(application) AND a.applicant_id = \(owner) FOR UPDATE
                """
            ) { Place(former: try $0.get(0, as: Media.ID?.self), status: try $0.get(1)) }
            guard let place else { throw AppError(.forbidden, "Only the CV of your own application may be changed.") }
            guard place.status == .initiated else { throw Self.decided }
            return place
        }
    }

    private static let decided = AppError(
        .conflict, "The application has been decided or withdrawn: its CV stays as it was sent.")

    public func exchange(_ id: Media.ID, for other: Media.ID, owner: User.ID) async throws -> Media {
        try await mapped {
            try await db.transaction { transaction in
                let (applications, hashes) = try await transaction.batch(
                    Statement(
                        """
                        SELECT a.status FROM applications a JOIN media m ON m.id = a.cv_media_id
                        WHERE m.id = \(id) AND m.owner_id = \(owner) FOR UPDATE OF a
                        """
                    ) { try $0.get(0, as: Application.Status.self) },
                    Statement(
                        """
                        SELECT CASE WHEN m.kind = 'logo' THEN o.hash ELSE m.hash END
                        FROM media m JOIN media o ON o.owner_id = m.owner_id AND o.kind = m.kind AND o.id <> m.id
                        WHERE m.id = \(id) AND o.id = \(other) AND m.owner_id = \(owner) AND o.state = 'ready'
                        FOR UPDATE
                        """
                    ) { try $0.get(0, as: String.self) })
                let hash = try hashes.first.orNotFound()
                guard applications.allSatisfy({ $0 == .initiated }) else { throw Self.decided }
                _ = try await transaction.batch(Self.move(from: other, to: id, hash: hash))
                return try await transaction.lastFirst(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia) WHERE m.id = \(id)
                    """, waking: notify, as: Self.media
                ).orNotFound().orNotFound()
            }
        }
    }

    /// The former content goes first: names of variants and hashes are there once.
    private static func move(from other: Media.ID, to id: Media.ID, hash: String) -> [SQL] {
        [
            MediaStatements.deleteFiles(of: id),
            "DELETE FROM media_variants WHERE media_id = \(id)",
            """
            UPDATE media_variants SET media_id = \(id), hash = name || '_' || \(hash)::text WHERE media_id = \(other)
            """,
            """
            WITH gone AS (
              DELETE FROM media WHERE id = \(other)
              RETURNING name, alternative_text, caption, declared_type, mime, ext, bytes, sha256, storage_key, width,
                        height, page_count, text, text_pages, resume, note
            )
            UPDATE media m SET
              state = 'ready', rejection = NULL, rejection_message = NULL, name = g.name,
              alternative_text = coalesce(g.alternative_text, m.alternative_text),
              caption = coalesce(g.caption, m.caption), declared_type = g.declared_type, mime = g.mime, ext = g.ext,
              hash = \(hash), bytes = g.bytes, sha256 = g.sha256, storage_key = g.storage_key, width = g.width,
              height = g.height, page_count = g.page_count, text = g.text, text_pages = g.text_pages,
              resume = g.resume, note = g.note, updated_at = now()
            FROM gone g WHERE m.id = \(id)
            """,
            """
            INSERT INTO application_events (application_id, actor_id, kind)
            SELECT a.id, a.applicant_id, 'cv_ready' FROM applications a WHERE a.cv_media_id = \(id)
            """,
        ]
    }
}

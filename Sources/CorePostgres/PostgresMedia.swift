import Core
import Foundation
import Postgres

public struct PostgresMedia: MediaRepository {
    let db: Database
    let notify: Bool
    let quota: Media.Quota

    /// - Parameter quota: of one person's files.
    public init(db: Database, notify: Bool = true, quota: Media.Quota = Media.Quota()) {
        self.db = db
        self.notify = notify
        self.quota = quota
    }

    static let media: @Sendable (Row) throws -> Media? = { row in
        var reader = RowReader(row)
        return try reader.media()
    }

    public func create(_ draft: Media.Draft, owner: User.ID) async throws -> Media {
        try await mapped {
            try await db.transaction { transaction in
                // The owner's row makes two new pictures of one person take turns: the first is then a former one.
                let (owners, _, ids) = try await transaction.batch(
                    Statement("SELECT profile_media_id FROM users WHERE id = \(owner) FOR NO KEY UPDATE") {
                        try $0.get(0, as: Media.ID?.self)
                    },
                    Statement(MediaStatements.takeTurns(owner)),
                    Statement(MediaStatements.insert(draft, owner: owner, quota: quota)) {
                        try $0.get(0, as: Media.ID.self)
                    })
                let former = try owners.first.orNotFound()
                guard let id = ids.first else { throw quota.exceeded }
                var statements = [MediaStatements.process(id)]
                if draft.kind == .profile {
                    statements.append(
                        "UPDATE users SET profile_media_id = \(id), updated_at = now() WHERE id = \(owner)")
                    if let former { statements += MediaStatements.delete([former]) }
                }
                _ = try await transaction.batch(statements)
                return try await transaction.lastFirst(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia) WHERE m.id = \(id)
                    """, waking: notify, as: Self.media
                ).orNotFound().orNotFound()
            }
        }
    }

    public func find(_ id: Media.ID) async throws -> Media {
        try await mapped {
            try await db.short.first(
                """
                SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia) WHERE m.id = \(id)
                """, as: Self.media
            ).orNotFound().orNotFound()
        }
    }

    public func find(hash: String) async throws -> Media? {
        try await mapped {
            try await db.short.first(
                """
                SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia)
                WHERE m.id = (SELECT o.id FROM media o WHERE o.hash = \(hash)
                              UNION ALL
                              SELECT v.media_id FROM media_variants v WHERE v.hash = \(hash) LIMIT 1)
                """, as: Self.media) ?? nil
        }
    }

    public func mayRead(_ id: Media.ID, user: User.ID) async throws -> Bool {
        try await mapped {
            try await db.short.first(
                """
                SELECT m.owner_id = \(user) OR CASE m.kind
                  WHEN 'logo' THEN true
                  WHEN 'cv' THEN EXISTS (
                    SELECT FROM applications a
                    JOIN job_postings p ON p.id = a.posting_id
                    JOIN company_members me ON me.company_id = p.company_id AND me.user_id = \(user)
                    WHERE a.cv_media_id = m.id)
                  WHEN 'attachment' THEN EXISTS (
                    SELECT FROM messages x
                    JOIN room_members me ON me.room_id = x.room_id AND me.user_id = \(user)
                    WHERE x.media_id = m.id)
                  ELSE EXISTS (
                    SELECT FROM room_members me
                    JOIN room_members theirs ON theirs.room_id = me.room_id AND theirs.user_id = m.owner_id
                    WHERE me.user_id = \(user))
                  OR EXISTS (
                    SELECT FROM applications a
                    JOIN job_postings p ON p.id = a.posting_id
                    JOIN company_members me ON me.company_id = p.company_id AND me.user_id = \(user)
                    WHERE a.applicant_id = m.owner_id)
                  END
                FROM media m WHERE m.id = \(id)
                """
            ) { try $0.get(0, as: Bool.self) } ?? false
        }
    }

    public func finish(_ id: Media.ID, _ result: MediaResult) async throws -> Bool {
        try await mapped {
            let statement: SQL =
                switch result {
                case .ready(
                    let mime, let ext, let width, let height, let pages, let text, let offsets, let resume, let note,
                    let variants):
                    Self.ready(
                        id, mime: mime, ext: ext, size: (width, height), pages: (pages, text, offsets), resume: resume,
                        note: note, variants: variants)
                case .rejected(let reason, let message): Self.rejected(id, reason: reason, message: message)
                case .infected(let signature):
                    Self.rejected(
                        id, reason: Media.infected.reason, message: Media.infected.message, signature: signature)
                }
            let isReady = if case .ready = result { true } else { false }
            return try await db.write.lastFirst(statement, waking: notify && !isReady) {
                try $0.get(0, as: Media.ID.self)
            } != nil
        }
    }

    /// One statement, so that it is done or not: a worker that lost its lease, or comes twice, finds nothing pending.
    private static func ready(
        _ id: Media.ID, mime: String, ext: String, size: (width: Int?, height: Int?),
        pages: (count: Int?, text: String?, offsets: [Int]), resume: String?, note: String?, variants: [Media.Variant]
    ) -> SQL {
        // PostgreSQL's text has no U+0000, and PDFs have some; a space leaves the pages where they are.
        let text = pages.text.map { text in
            text.utf8.contains(0) ? String(decoding: text.utf8.map { $0 == 0 ? 0x20 : $0 }, as: UTF8.self) : text
        }
        let offsets = "[" + pages.offsets.map(String.init).joined(separator: ",") + "]"
        return """
            WITH done AS (
              UPDATE media SET state = 'ready', mime = \(mime), ext = \(ext), width = \(size.width),
                height = \(size.height), page_count = \(pages.count), text = \(text), text_pages = \(JSONText(offsets)),
                resume = \(resume.map { JSONText($0) }), note = \(note), updated_at = now()
              WHERE id = \(id) AND state = 'pending'
              RETURNING id, kind
            ), added AS (
              INSERT INTO media_variants (media_id, name, storage_key, hash, mime, ext, bytes, width, height)
              SELECT d.id, v.name, v.storage_key, v.hash, v.mime, v.ext, v.bytes, v.width, v.height
              FROM done d CROSS JOIN unnest(
                \(variants.map(\.name))::text[], \(variants.map(\.storageKey))::text[],
                \(variants.map(\.hash))::text[], \(variants.map(\.mime))::text[], \(variants.map(\.ext))::text[],
                \(variants.map(\.bytes))::bigint[], \(variants.map(\.width))::int[], \(variants.map(\.height))::int[]
              ) AS v (name, storage_key, hash, mime, ext, bytes, width, height)
            ), told AS (
              INSERT INTO application_events (application_id, kind)
              SELECT a.id, 'cv_ready' FROM done d JOIN applications a ON a.cv_media_id = d.id WHERE d.kind = 'cv'
            )
            SELECT id FROM done
            """
    }

    /// The object is deleted by the queue, as all are: a backup that runs needs it for as long as its rows name it.
    /// - Parameter signature: what a virus scan found; that is audited, with what finds the file elsewhere.
    private static func rejected(
        _ id: Media.ID, reason: String, message: String, signature: String? = nil
    ) -> SQL {
        """
        WITH done AS (
          UPDATE media SET state = 'rejected', rejection = \(reason), rejection_message = \(message), updated_at = now()
          WHERE id = \(id) AND state = 'pending'
          RETURNING id, kind, owner_id, bytes, sha256, storage_key
        ), emptied AS (
          INSERT INTO work_items (kind, payload, traceparent)
          SELECT \(WorkItem.Kind.deleteFiles.rawValue), jsonb_build_object('keys', jsonb_build_array(d.storage_key)),
                 \(Enqueue.traceparent)::varchar
          FROM done d
        ), noted AS (
          INSERT INTO audit_log (actor_id, action, subject, subject_id, detail)
          SELECT d.owner_id, 'media.infected', 'media', d.id, jsonb_build_object(
            'signature', \(signature)::text, 'kind', d.kind, 'bytes', d.bytes, 'sha256', encode(d.sha256, 'hex'))
          FROM done d WHERE \(signature)::text IS NOT NULL
        ), told AS (
          INSERT INTO application_events (application_id, kind, note)
          SELECT a.id, 'cv_rejected', \(message)::text
          FROM done d JOIN applications a ON a.cv_media_id = d.id WHERE d.kind = 'cv'
        )
        SELECT id FROM done
        """
    }

    public func revokeURLs(of id: Media.ID, owner: User.ID) async throws {
        try await mapped {
            let changed = try await db.write.execute(
                """
                UPDATE media SET url_generation = url_generation + 1, updated_at = now()
                WHERE id = \(id) AND owner_id = \(owner)
                """)
            guard changed == 1 else { throw AppError.notFound }
        }
    }
}

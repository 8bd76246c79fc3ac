import Core
import Foundation
import Postgres

/// Files as such: what a person does with their own.
extension PostgresMedia {
    public func find(_ ids: [Media.ID]) async throws -> [Media] {
        try await mapped {
            try await db.short.rows(
                """
                SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia)
                WHERE m.id = ANY (\(ids.map(\.value))) ORDER BY m.id
                """, as: Self.media
            ).compactMap { $0 }
        }
    }

    public func describe(_ id: Media.ID, _ info: Media.Info, owner: User.ID) async throws -> Media {
        try await mapped {
            let (_, changed) = try await db.write.batch(
                Statement(
                    """
                    UPDATE media SET
                      name = coalesce(\(info.name), name),
                      alternative_text = coalesce(\(info.alternativeText), alternative_text),
                      caption = coalesce(\(info.caption), caption), updated_at = now()
                    WHERE id = \(id) AND owner_id = \(owner)
                    """),
                Statement(
                    """
                    SELECT \(Columns.media) FROM media m \(Joins.variantsOfMedia)
                    WHERE m.id = \(id) AND m.owner_id = \(owner)
                    """, as: Self.media))
            return try changed.first.orNotFound().orNotFound()
        }
    }

    public func discard(_ ids: [Media.ID]) async throws {
        guard !ids.isEmpty else { return }
        try await mapped {
            _ = try await db.write.batch(MediaStatements.delete(ids) + (notify ? [Enqueue.wake] : []))
        }
    }

    public func unknown(keys: [String]) async throws -> [String] {
        guard !keys.isEmpty else { return [] }
        return try await mapped {
            try await db.long.rows(
                """
                SELECT k.key FROM unnest(\(keys)::text[]) AS k (key)
                WHERE NOT EXISTS (SELECT FROM media m WHERE m.storage_key = k.key)
                  AND NOT EXISTS (SELECT FROM media_variants v WHERE v.storage_key = k.key)
                """
            ) { try $0.get(0, as: String.self) }
        }
    }
}

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

    public func stored(in folder: String, after key: String?, max: Int) async throws -> [StoredKey] {
        // The first key that is not in the folder any more: "0" comes after "/".
        let (begin, end) = (key ?? folder, folder.dropLast() + "0")
        return try await mapped {
            try await db.long.rows(
                """
                SELECT k.key, k.id, k.served, CASE
                  WHEN m.state <> 'rejected' THEN 'wanted'
                  WHEN m.rejection = \(Media.lost.reason) AND m.mime IS NOT NULL THEN 'lost'
                  ELSE 'deleted' END
                FROM (
                  (SELECT o.id, o.storage_key AS key, (
                     SELECT u.name FROM media_variants u
                     WHERE u.media_id = o.id AND u.name = 'upright') IS NULL AS served
                   FROM media o
                   WHERE o.storage_key COLLATE "C" > \(begin) AND o.storage_key COLLATE "C" < \(String(end))
                   ORDER BY o.storage_key COLLATE "C" LIMIT \(max))
                  UNION ALL
                  (SELECT v.media_id, v.storage_key, v.name = 'upright'
                   FROM media_variants v
                   WHERE v.storage_key COLLATE "C" > \(begin) AND v.storage_key COLLATE "C" < \(String(end))
                   ORDER BY v.storage_key COLLATE "C" LIMIT \(max))
                ) k JOIN media m ON m.id = k.id
                ORDER BY k.key COLLATE "C" LIMIT \(max)
                """
            ) { row in
                StoredKey(
                    key: try row.get(0), media: try row.get(1), isServed: try row.get(2),
                    standing: StoredKey.Standing(rawValue: try row.get(3)) ?? .deleted)
            }
        }
    }

    public func markLost(_ ids: [Media.ID]) async throws -> [Media.ID] {
        try await mapped {
            try await db.write.rows(
                """
                UPDATE media SET state = 'rejected', rejection = \(Media.lost.reason),
                  rejection_message = \(Media.lost.message), updated_at = now()
                WHERE id = ANY (\(ids.map(\.value))) AND state = 'ready'
                RETURNING id
                """
            ) { try $0.get(0, as: Media.ID.self) }
        }
    }

    /// Only what was ready before has a type.
    public func markFound(_ ids: [Media.ID]) async throws -> [Media.ID] {
        try await mapped {
            try await db.write.rows(
                """
                UPDATE media SET state = 'ready', rejection = NULL, rejection_message = NULL, updated_at = now()
                WHERE id = ANY (\(ids.map(\.value))) AND state = 'rejected' AND rejection = \(Media.lost.reason)
                  AND mime IS NOT NULL
                RETURNING id
                """
            ) { try $0.get(0, as: Media.ID.self) }
        }
    }
}

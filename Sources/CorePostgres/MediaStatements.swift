import Core
import Postgres

/// What several repositories do with media, as parts of their own transactions.
enum MediaStatements {
    /// Storage keys that one `delete_files` item names at most: a big posting's CVs are deleted by several items.
    static let keysPerItemMax = 500
    /// The first number of the advisory locks of `takeTurns`: it keeps them apart from others.
    private static let turnsLock: Int64 = 7410

    /// Before `insert`, as a statement of its own: new files of one person take turns, so that each sees what the ones
    /// before it have taken. Whoever also locks rows does so before.
    static func takeTurns(_ owner: User.ID) -> SQL {
        "SELECT pg_advisory_xact_lock(\(turnsLock)::bigint::int, hashint8(\(owner)))"
    }

    /// A row for a file that is in the object store; gives its id, or nothing when that would be more than the owner
    /// may have (`quota.exceeded`). `process(_:)` belongs in the same transaction.
    static func insert(_ draft: Media.Draft, owner: User.ID, quota: Media.Quota) -> SQL {
        let size = quota.size(ofFile: draft.bytes)
        return """
            INSERT INTO media (owner_id, kind, name, alternative_text, caption, declared_type, hash, bytes, sha256,
                               storage_key)
            SELECT \(owner)::bigint, \(draft.kind)::text, \(draft.name)::text, \(draft.info.alternativeText)::text,
                   \(draft.info.caption)::text, \(draft.declaredType)::text, \(draft.hash)::text,
                   \(draft.bytes)::bigint, \(draft.sha256)::bytea, \(draft.storageKey)::text
            WHERE \(quota.bytes) - \(size)::bigint >= (
              SELECT coalesce(sum(greatest(\(Media.Quota.fileBytesMin), o.bytes + (
                SELECT coalesce(sum(v.bytes), 0) FROM media_variants v WHERE v.media_id = o.id))), 0)
              FROM media o WHERE o.owner_id = \(owner) AND o.state <> 'rejected')
            RETURNING id
            """
    }

    /// As `insert`, in its turn.
    /// - Throws: `quota.exceeded`.
    static func add(
        _ draft: Media.Draft, owner: User.ID, quota: Media.Quota, in transaction: Transaction
    ) async throws -> Media.ID {
        let (_, ids) = try await transaction.batch(
            Statement(takeTurns(owner)),
            Statement(insert(draft, owner: owner, quota: quota)) { try $0.get(0, as: Media.ID.self) })
        guard let id = ids.first else { throw quota.exceeded }
        return id
    }

    /// Has a worker look at the content.
    static func process(_ id: Media.ID) -> SQL {
        Enqueue.item(.processUpload, payload: #"{"media_id":\#(id)}"#)
    }

    /// Deletes rows, and has a worker delete the files: those of variants too. The rows are locked by a statement of
    /// their own: one that waited for a worker who was just writing variants down would not see them.
    static func delete(_ ids: [Media.ID]) -> [SQL] {
        ["SELECT id FROM media WHERE id = ANY (\(ids.map(\.value))) ORDER BY id FOR UPDATE", deleteLocked(ids)]
    }

    private static func deleteLocked(_ ids: [Media.ID]) -> SQL {
        """
        WITH gone AS (
          DELETE FROM media WHERE id = ANY (\(ids.map(\.value))) RETURNING id, storage_key
        ), keys AS (
          SELECT g.storage_key FROM gone g
          UNION ALL
          SELECT v.storage_key FROM media_variants v JOIN gone g ON g.id = v.media_id
        ), pages AS (
          SELECT k.storage_key,
                 (row_number() OVER (ORDER BY k.storage_key) - 1) / \(Self.keysPerItemMax)::bigint AS page
          FROM keys k
        )
        INSERT INTO work_items (kind, payload, traceparent)
        SELECT \(WorkItem.Kind.deleteFiles.rawValue), jsonb_build_object('keys', jsonb_agg(p.storage_key)),
               \(Enqueue.traceparent)::varchar
        FROM pages p GROUP BY p.page
        """
    }

    /// Has a worker delete the files of a row that stays: its own and those of its variants.
    static func deleteFiles(of id: Media.ID) -> SQL {
        """
        INSERT INTO work_items (kind, payload, traceparent)
        SELECT \(WorkItem.Kind.deleteFiles.rawValue), jsonb_build_object('keys', jsonb_agg(k.storage_key)),
               \(Enqueue.traceparent)::varchar
        FROM (SELECT m.storage_key FROM media m WHERE m.id = \(id)
              UNION ALL
              SELECT v.storage_key FROM media_variants v WHERE v.media_id = \(id)) k
        """
    }
}

extension SQLExecutor {
    /// The first row of a statement, with the workers woken after it, in one round trip: how a transaction that put
    /// items in ends.
    func lastFirst<T: Sendable>(
        _ sql: SQL, waking: Bool, as decode: @escaping @Sendable (Row) throws -> T
    ) async throws -> T? {
        try await run(sql, waking ? [Enqueue.wake] : []) { result, _ in
            result.count > 0 ? try decode(result[0]) : nil
        }
    }

    /// As `lastFirst`, with all rows.
    func lastRows<T: Sendable>(
        _ sql: SQL, waking: Bool, as decode: @escaping @Sendable (Row) throws -> T
    ) async throws -> [T] {
        try await run(sql, waking ? [Enqueue.wake] : []) { result, _ in
            try (0..<result.count).map { try decode(result[$0]) }
        }
    }
}

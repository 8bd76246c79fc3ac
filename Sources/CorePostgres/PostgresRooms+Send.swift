import Core
import Foundation
import Postgres

/// Group commit: what was sent by many goes in together.
extension PostgresRooms {
    public func send(_ drafts: [Message.Draft], notify: String?) async throws -> [Message.Outcome] {
        guard !drafts.isEmpty else { return [] }
        precondition(drafts.count <= Self.sendMax, "a batch has at most \(Self.sendMax) drafts")
        let wake = self.notify ? notify.map { [Self.wake($0)] } ?? [] : []
        return try await mapped {
            guard Self.areNew(drafts), !db.configuration.isPooled else {
                return try await sendCarefully(drafts, wake)
            }
            do {
                let insert = drafts.contains { $0.traceparent != nil } ? Self.insertTraced : Self.insertNew
                return try await db.write.run(insert(drafts), wake) { numbered, _ in
                    try (0..<numbered.count).map { try Self.newOutcome(numbered[$0]) }
                }
            } catch let error as PostgresError where error.isUniqueViolation || error.isSerialization {
                // One was stored before, or two instances met in rooms that they took in different orders. Nothing of
                // the batch was stored.
                return try await sendCarefully(drafts, wake)
            }
        }
    }

    /// Texts without files that are not twice in the batch, as nearly all batches are.
    private static func areNew(_ drafts: [Message.Draft]) -> Bool {
        var seen: Set<DraftKey> = []
        return drafts.allSatisfy { $0.isPlain && seen.insert(DraftKey($0)).inserted }
    }

    /// Whatever the drafts are, and whether or not they were stored before.
    private func sendCarefully(_ drafts: [Message.Draft], _ wake: [SQL]) async throws -> [Message.Outcome] {
        let deletions = drafts.filter { $0.kind == .delete }
        let traced = drafts.filter { $0.traceparent != nil }
        let rest =
            [Self.insert(drafts)] + (deletions.isEmpty ? [] : [Self.empty(deletions)])
            + (traced.isEmpty ? [] : [Self.trace(traced)]) + wake
        return try await db.write.run(Self.lock(drafts), rest) { _, rest in
            let inserted = rest[0]
            return try (0..<inserted.count).map { try Self.outcome(inserted[$0]) }
        }
    }

    /// Takes it that none was stored before, so that nothing but membership is to be looked up: the unique constraint
    /// refuses the batch otherwise. The update takes a room's lock, waits for another's batch if need be, and then
    /// counts on from what that one left. Rooms are taken in the order of their ids, as the write lane has no other
    /// way to them. Behind a pooler it has, and two batches could wait for each other: nothing is sent this way there.
    private static func insertNew(_ drafts: [Message.Draft]) -> SQL {
        """
        WITH input AS MATERIALIZED (
          SELECT \(Self.joined)
          FROM unnest(\(drafts.map(\.roomID))::bigint[], \(drafts.map(\.senderID))::bigint[],
                      \(drafts.map(\.clientID))::text[], \(drafts.map(\.body))::text[])
            WITH ORDINALITY AS t (room_id, sender_id, client_id, body, ord)
        ), \(Self.bumped), numbered AS MATERIALIZED (
          SELECT \(Self.counted)
          FROM input i LEFT JOIN bumped b ON b.id = i.joined_id
        ), added AS (
          INSERT INTO messages (room_id, seq, sender_id, client_id, body, created_at)
          SELECT room_id, seq, sender_id, client_id, body, now() FROM numbered WHERE seq IS NOT NULL
        ), \(Self.notedInOrder)
        """
    }

    /// The same for a batch in which something is traced: only such a batch has to pay for it.
    private static func insertTraced(_ drafts: [Message.Draft]) -> SQL {
        """
        WITH input AS MATERIALIZED (
          SELECT \(Self.joined), t.traceparent
          FROM unnest(\(drafts.map(\.roomID))::bigint[], \(drafts.map(\.senderID))::bigint[],
                      \(drafts.map(\.clientID))::text[], \(drafts.map(\.body))::text[],
                      \(drafts.map(\.traceparent))::varchar[])
            WITH ORDINALITY AS t (room_id, sender_id, client_id, body, traceparent, ord)
        ), \(Self.bumped), numbered AS MATERIALIZED (
          SELECT \(Self.counted), i.traceparent
          FROM input i LEFT JOIN bumped b ON b.id = i.joined_id
        ), added AS (
          INSERT INTO messages (room_id, seq, sender_id, client_id, body, created_at, traceparent)
          SELECT room_id, seq, sender_id, client_id, body, now(), traceparent FROM numbered WHERE seq IS NOT NULL
        ), \(Self.notedInOrder)
        """
    }

    /// Of each new draft `t`: with its room where the sender is a member of it.
    private static let joined: SQL =
        """
        t.ord, t.room_id, t.sender_id, t.client_id, t.body,
        (SELECT rm.room_id FROM room_members rm
          WHERE rm.room_id = t.room_id AND rm.user_id = t.sender_id) AS joined_id
        """

    private static let bumped: SQL =
        """
        bumped AS (
          UPDATE rooms r SET last_seq = r.last_seq + f.count
          FROM (SELECT joined_id, count(*) AS count FROM input WHERE joined_id IS NOT NULL
                 GROUP BY joined_id ORDER BY joined_id) f
          WHERE r.id = f.joined_id
          RETURNING r.id, r.last_seq - f.count AS base
        )
        """

    /// Of each new draft `i` with what its room `b` had counted to.
    private static let counted: SQL =
        """
        i.ord, i.room_id, i.sender_id, i.client_id, i.body,
        b.base + row_number() OVER (PARTITION BY i.joined_id ORDER BY i.ord) AS seq
        """

    private static let notedInOrder: SQL =
        """
        noted AS (
          INSERT INTO room_changes (room_ids) SELECT array_agg(id ORDER BY id) FROM bumped HAVING count(*) > 0
        )
        SELECT seq, now() FROM numbered ORDER BY ord
        """

    /// After the careful insert. What was stored before keeps the trace of the send that stored it.
    private static func trace(_ drafts: [Message.Draft]) -> SQL {
        """
        UPDATE messages SET traceparent = t.traceparent
        FROM unnest(\(drafts.map(\.roomID))::bigint[], \(drafts.map(\.senderID))::bigint[],
                    \(drafts.map(\.clientID))::text[], \(drafts.map(\.traceparent))::varchar[])
          AS t (room_id, sender_id, client_id, traceparent)
        WHERE messages.room_id = t.room_id AND messages.sender_id = t.sender_id
          AND messages.client_id = t.client_id AND messages.traceparent IS NULL
          AND messages.created_at = now()
        """
    }

    /// A statement of its own: the next one needs a snapshot taken after the locks are held, or it would number twice.
    ///
    /// Rooms of strangers are not locked: a lock is written to disk, so they could tell by the time whether a room
    /// exists, and they would keep its members waiting. Who becomes a member between the two statements is numbered
    /// without the lock; where that collides the primary key refuses the batch, which is then tried again.
    private static func lock(_ drafts: [Message.Draft]) -> SQL {
        """
        SELECT id FROM rooms WHERE id = ANY (ARRAY(
          SELECT (SELECT rm.room_id FROM room_members rm
                   WHERE rm.room_id = t.room_id AND rm.user_id = t.sender_id)
          FROM unnest(\(drafts.map(\.roomID))::bigint[], \(drafts.map(\.senderID))::bigint[])
            AS t (room_id, sender_id)))
        ORDER BY id FOR NO KEY UPDATE
        """
    }

    /// A text without body and file is one that was deleted. The sub-selects give one value each, by key: an EXISTS may
    /// be planned as a scan of the whole table.
    private static func insert(_ drafts: [Message.Draft]) -> SQL {
        """
        WITH input AS MATERIALIZED (
          SELECT \(Self.known),
                 CASE WHEN k.target_seq IS NOT NULL THEN
                   CASE WHEN (SELECT m.seq FROM messages m
                               WHERE m.room_id = t.room_id AND m.seq = k.target_seq AND m.sender_id = t.sender_id
                                 AND m.kind = 'text' AND (m.body <> '' OR m.media_id IS NOT NULL)) IS NULL
                        THEN 'target'
                        WHEN k.kind = 'edit' AND (
                          SELECT count(*) FROM messages e
                          WHERE e.room_id = t.room_id AND e.target_seq = k.target_seq) >= \(Message.editsMax)
                        THEN 'edits' END
                 WHEN k.media_id IS NOT NULL THEN
                   CASE WHEN (SELECT f.id FROM media f
                               WHERE f.id = k.media_id AND f.owner_id = t.sender_id AND f.kind = 'attachment'
                                 AND f.state <> 'rejected') IS NULL
                        THEN 'media' END
                 END AS refusal
          FROM unnest(\(drafts.map(\.roomID))::bigint[], \(drafts.map(\.senderID))::bigint[],
                      \(drafts.map(\.clientID))::text[], \(drafts.map(\.body))::text[],
                      \(drafts.map(\.kind))::text[], \(drafts.map(\.targetSeq))::bigint[],
                      \(drafts.map(\.mediaID))::bigint[])
            WITH ORDINALITY AS t (room_id, sender_id, client_id, body, kind, target_seq, media_id, ord)
          CROSS JOIN LATERAL (SELECT t.kind, t.target_seq, t.media_id) AS k
        ), fresh AS MATERIALIZED (
          SELECT \(Self.numbered)
            AND (i.target_seq IS NULL OR NOT i.ord > ANY (ARRAY(
              SELECT d.ord FROM input d
              WHERE d.room_id = i.room_id AND d.target_seq = i.target_seq AND d.kind = 'delete'
                AND d.old_seq IS NULL AND d.copy = 1 AND d.refusal IS NULL)))
        \(Self.written)
        """
    }

    /// Of each draft `t` of the kind `k`, and what the room knows of it.
    private static let known: SQL =
        """
        t.ord, t.room_id, t.sender_id, t.client_id, t.body, k.kind, k.target_seq, k.media_id,
        row_number() OVER (PARTITION BY t.room_id, t.sender_id, t.client_id ORDER BY t.ord) AS copy,
        (SELECT r.last_seq FROM rooms r
          WHERE r.id = t.room_id AND EXISTS (
            SELECT FROM room_members rm
            WHERE rm.room_id = t.room_id AND rm.user_id = t.sender_id)) AS base,
        (SELECT m.seq FROM messages m
          WHERE m.room_id = t.room_id AND m.sender_id = t.sender_id AND m.client_id = t.client_id) AS old_seq
        """

    private static let numbered: SQL =
        """
        i.room_id, i.sender_id, i.client_id, i.kind, i.target_seq, i.body, i.media_id, i.ord,
               i.base + row_number() OVER (PARTITION BY i.room_id ORDER BY i.ord) AS seq
        FROM input i
        WHERE i.base IS NOT NULL AND i.old_seq IS NULL AND i.copy = 1 AND i.refusal IS NULL
        """

    private static let written: SQL =
        """
        ), bumped AS (
          UPDATE rooms r SET last_seq = f.seq
          FROM (SELECT room_id, max(seq) AS seq FROM fresh GROUP BY room_id) f
          WHERE r.id = f.room_id
        ), added AS (
          INSERT INTO messages (room_id, seq, sender_id, client_id, kind, target_seq, body, media_id)
          SELECT f.room_id, f.seq, f.sender_id, f.client_id, f.kind, f.target_seq, f.body, f.media_id FROM fresh f
          RETURNING room_id, seq, sender_id, client_id, created_at
        ), noted AS (
          INSERT INTO room_changes (room_ids)
          SELECT array_agg(DISTINCT room_id) FROM fresh HAVING count(*) > 0
        )
        SELECT CASE WHEN i.base IS NULL THEN 'forbidden' WHEN i.old_seq IS NOT NULL THEN 'duplicate'
                    WHEN a.seq IS NULL THEN coalesce(i.refusal, 'target')
                    WHEN i.copy > 1 THEN 'duplicate' ELSE 'sent' END,
               CASE WHEN i.base IS NOT NULL THEN coalesce(i.old_seq, a.seq) END, a.created_at
        FROM input i
        LEFT JOIN added a ON a.room_id = i.room_id AND a.sender_id = i.sender_id AND a.client_id = i.client_id
          AND i.base IS NOT NULL
        ORDER BY i.ord
        """

    /// After the insert, and only where something is to be deleted: of a text whose deletion is stored nothing stays,
    /// in its edits neither, and the addresses of its file that were given out are worthless. Done twice does no harm.
    /// By keys, never by ctid: that is a row's name in its partition only.
    private static func empty(_ deletions: [Message.Draft]) -> SQL {
        """
        WITH targets AS MATERIALIZED (
          SELECT t.room_id, (
            SELECT d.target_seq FROM messages d
            WHERE d.room_id = t.room_id AND d.sender_id = t.sender_id AND d.client_id = t.client_id
              AND d.kind = 'delete') AS seq
          FROM unnest(\(deletions.map(\.roomID))::bigint[], \(deletions.map(\.senderID))::bigint[],
                      \(deletions.map(\.clientID))::text[]) AS t (room_id, sender_id, client_id)
        ), revoked AS (
          UPDATE media SET url_generation = url_generation + 1 WHERE id = ANY (ARRAY(
            SELECT f.media_id FROM targets t CROSS JOIN LATERAL (
              SELECT n.media_id FROM messages n
              WHERE n.room_id = t.room_id AND n.seq = t.seq
              UNION ALL
              SELECT e.media_id FROM messages e
              WHERE e.room_id = t.room_id AND e.target_seq = t.seq AND e.body <> '') f))
        ), emptied AS (
          UPDATE messages e SET body = '', media_id = NULL FROM targets t
          WHERE e.room_id = t.room_id AND e.target_seq = t.seq AND e.body <> ''
        )
        UPDATE messages n SET body = '', media_id = NULL FROM targets t
        WHERE n.room_id = t.room_id AND n.seq = t.seq AND (n.body <> '' OR n.media_id IS NOT NULL)
        """
    }

    private static let newOutcome: @Sendable (Row) throws -> Message.Outcome = { row in
        guard let seq = try row.get(0, as: Int64?.self) else { return .forbidden }
        return try .sent(seq: seq, createdAt: row.get(1))
    }

    private static let outcome: @Sendable (Row) throws -> Message.Outcome = { row in
        switch try row.get(0, as: String.self) {
        case "sent": try .sent(seq: row.get(1), createdAt: row.get(2))
        case "duplicate": try .duplicate(seq: row.get(1))
        case let word: Message.Refusal(rawValue: word).map { .refused($0) } ?? .forbidden
        }
    }
}

/// By what a sender knows a message again.
private struct DraftKey: Hashable {
    let room: Room.ID
    let sender: User.ID
    let client: String

    init(_ draft: Message.Draft) {
        room = draft.roomID
        sender = draft.senderID
        client = draft.clientID
    }
}

extension Message.Draft {
    fileprivate var isPlain: Bool { kind == .text && mediaID == nil }
}

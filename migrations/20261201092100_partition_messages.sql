-- migrate:up
-- Messages by the hash of their room, in four tables, whose indexes are vacuumed and rebuilt one at a time and may be
-- moved to a disk of their own. A room is in one of them, so nothing is looked up in two.
-- Rooms first, as every send takes them before it touches a message: an edit or a repeat reads messages before it
-- writes them, and one that waited in between would hold what is dropped below, each waiting for the other.
-- safe: sends wait while the rows are moved, seconds a million; reads do not, until the end.
LOCK TABLE rooms IN EXCLUSIVE MODE;
-- safe: the same; who writes messages has the room.
LOCK TABLE messages IN SHARE ROW EXCLUSIVE MODE;

-- Who reads the table for long, as a backup does, makes this fail now and not after the rows are moved.
SAVEPOINT probe;
-- safe: for a moment.
LOCK TABLE messages IN ACCESS EXCLUSIVE MODE;
ROLLBACK TO SAVEPOINT probe;

-- As CHECKs of the table these would be read from their text again for each partition that a batch writes to, which
-- cost a tenth of a send. Of a domain they are made once a connection.
CREATE DOMAIN message_client_id AS text
  CONSTRAINT messages_client_id_length CHECK (char_length(VALUE) BETWEEN 1 AND 64);
CREATE DOMAIN message_kind AS text
  CONSTRAINT messages_kind_known CHECK (VALUE IN ('text', 'system', 'edit', 'delete'));
CREATE DOMAIN message_body AS text
  CONSTRAINT messages_body_length CHECK (octet_length(VALUE) <= 65536);

CREATE TABLE messages_moved (LIKE messages INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (room_id);
ALTER TABLE messages_moved
  DROP CONSTRAINT messages_client_id_length, DROP CONSTRAINT messages_kind_known,
  DROP CONSTRAINT messages_body_length,
  ALTER COLUMN client_id TYPE message_client_id, ALTER COLUMN kind TYPE message_kind,
  ALTER COLUMN body TYPE message_body;
CREATE TABLE messages_0 PARTITION OF messages_moved FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE messages_1 PARTITION OF messages_moved FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE messages_2 PARTITION OF messages_moved FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE messages_3 PARTITION OF messages_moved FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO messages_moved SELECT * FROM messages;
ALTER TABLE messages_moved
  ADD CONSTRAINT messages_moved_pkey PRIMARY KEY (room_id, seq),
  ADD CONSTRAINT messages_moved_client_id_key UNIQUE (room_id, sender_id, client_id);
CREATE INDEX messages_moved_media_id ON messages_moved (media_id) WHERE media_id IS NOT NULL;
CREATE INDEX messages_moved_target_seq ON messages_moved (room_id, target_seq, seq) WHERE target_seq IS NOT NULL;
-- Autovacuum looks after the four, never after the whole.
ANALYZE messages_moved;

-- Longer than any list is read for.
SET LOCAL lock_timeout = '3s';
-- safe: one of the same name with the same columns and rows is there before anybody looks.
DROP TABLE messages;
-- safe: the same.
ALTER TABLE messages_moved RENAME TO messages;
ALTER TABLE messages RENAME CONSTRAINT messages_moved_pkey TO messages_pkey;
ALTER TABLE messages RENAME CONSTRAINT messages_moved_client_id_key TO messages_client_id_key;
ALTER INDEX messages_moved_media_id RENAME TO messages_media_id;
ALTER INDEX messages_moved_target_seq RENAME TO messages_target_seq;

-- 0.1.0 empties deleted texts by their ctid, which was one row's and now is one of each partition: without this it
-- would empty other people's messages. Only what a stored deletion names may go that way. To be dropped when nobody
-- can be running 0.1.0 any more.
CREATE FUNCTION empty_deleted_messages_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF position('ctid' IN current_query()) > 0 AND NOT EXISTS (
    SELECT FROM messages d
    WHERE d.room_id = OLD.room_id AND d.target_seq = coalesce(OLD.target_seq, OLD.seq) AND d.kind = 'delete')
  THEN RETURN NULL; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER messages_emptied BEFORE UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION empty_deleted_messages_only();

-- migrate:down
LOCK TABLE rooms IN EXCLUSIVE MODE;
LOCK TABLE messages IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE messages_moved (LIKE messages INCLUDING ALL EXCLUDING INDEXES);
ALTER TABLE messages_moved
  ALTER COLUMN client_id TYPE text, ALTER COLUMN kind TYPE text, ALTER COLUMN body TYPE text,
  ADD CONSTRAINT messages_client_id_length CHECK (char_length(client_id) BETWEEN 1 AND 64),
  ADD CONSTRAINT messages_kind_known CHECK (kind IN ('text', 'system', 'edit', 'delete')),
  ADD CONSTRAINT messages_body_length CHECK (octet_length(body) <= 65536);
INSERT INTO messages_moved SELECT * FROM messages;
DROP TABLE messages;
DROP FUNCTION empty_deleted_messages_only;
DROP DOMAIN message_client_id, message_kind, message_body;
ALTER TABLE messages_moved RENAME TO messages;
ALTER TABLE messages
  ADD CONSTRAINT messages_pkey PRIMARY KEY (room_id, seq),
  ADD CONSTRAINT messages_client_id_key UNIQUE (room_id, sender_id, client_id);
CREATE INDEX messages_media_id ON messages (media_id) WHERE media_id IS NOT NULL;
CREATE INDEX messages_target_seq ON messages (room_id, target_seq, seq) WHERE target_seq IS NOT NULL;
ANALYZE messages;

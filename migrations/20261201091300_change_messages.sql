-- migrate:up
-- What was said about a text later, the newest last: edits and deletions. Few messages are in it.
CREATE INDEX messages_target_seq ON messages (room_id, target_seq, seq) WHERE target_seq IS NOT NULL;

-- migrate:down
DROP INDEX messages_target_seq;

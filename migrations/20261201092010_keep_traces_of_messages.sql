-- migrate:up
-- As of work. A file of its own: work does not wait for a lock of messages.
ALTER TABLE messages ADD COLUMN traceparent varchar(55);

-- migrate:down
ALTER TABLE messages DROP COLUMN traceparent;

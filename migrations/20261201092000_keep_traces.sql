-- migrate:up
-- The trace that work and messages belong to, as `traceparent` of W3C Trace Context. NULL where nothing is traced; code
-- that does not know the columns works as before. The length is the type's, as a CHECK would be run for each message.
ALTER TABLE work_items ADD COLUMN traceparent varchar(55);
ALTER TABLE messages ADD COLUMN traceparent varchar(55);

-- migrate:down
ALTER TABLE messages DROP COLUMN traceparent;
ALTER TABLE work_items DROP COLUMN traceparent;

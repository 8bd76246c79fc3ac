-- migrate:up
-- The trace that work belongs to, as `traceparent` of W3C Trace Context. NULL where nothing is traced; code that does
-- not know the column works as before. The length is the type's, as a CHECK would be run for each row.
ALTER TABLE work_items ADD COLUMN traceparent varchar(55);

-- migrate:down
ALTER TABLE work_items DROP COLUMN traceparent;

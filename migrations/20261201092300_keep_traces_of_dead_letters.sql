-- migrate:up
-- The trace that a dead letter's work belongs to: retried, it goes on. NULL where nothing was traced, and in letters
-- that the release before buried.
ALTER TABLE work_dead ADD COLUMN traceparent varchar(55);

-- migrate:down
ALTER TABLE work_dead DROP COLUMN traceparent;

-- migrate:up
-- How often an item was put off because something it needs was away. Such attempts do not count; the pauses grow by it.
ALTER TABLE work_items ADD COLUMN postponed integer NOT NULL DEFAULT 0;

-- migrate:down
ALTER TABLE work_items DROP COLUMN postponed;

-- migrate:up transaction:false
-- Of whoever is erased: their notes are emptied, and their row's foreign key looks here.
CREATE INDEX CONCURRENTLY application_events_actor_id ON application_events (actor_id) WHERE actor_id IS NOT NULL;

-- migrate:down transaction:false
DROP INDEX CONCURRENTLY application_events_actor_id;

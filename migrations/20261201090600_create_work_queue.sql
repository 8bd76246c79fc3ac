-- migrate:up
CREATE SEQUENCE work_fence;
CREATE TABLE work_items (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT work_items_pkey PRIMARY KEY,
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  run_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  leased_until timestamptz,
  fence bigint,
  attempts smallint NOT NULL DEFAULT 0,
  waiting boolean NOT NULL DEFAULT false,
  kind text NOT NULL,
  worker text,
  last_error text,
  unique_key text,
  payload jsonb NOT NULL
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
-- No index may name leased_until, fence, worker or attempts: a claim stays HOT.
CREATE INDEX work_items_ready ON work_items (tx, id) WHERE NOT waiting;
CREATE INDEX work_items_waiting ON work_items (run_at) WHERE waiting;
-- One of a kind until it is done: an enqueue of the same key while one is there does nothing.
CREATE UNIQUE INDEX work_items_unique_key_key ON work_items (unique_key) WHERE unique_key IS NOT NULL;

CREATE TABLE work_dead (LIKE work_items, died_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX work_dead_died_at ON work_dead (died_at);

-- The last firing of every schedule: whoever moves it forward puts the item in, in the same transaction.
CREATE TABLE work_schedules (
  name text CONSTRAINT work_schedules_pkey PRIMARY KEY,
  fired_for timestamptz NOT NULL
);

-- migrate:down
DROP TABLE work_schedules, work_dead, work_items;
DROP SEQUENCE work_fence;
